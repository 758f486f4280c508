-- Whether a project was ever served from this database; no row where not.
SELECT true FROM projects WHERE name = $1;
