-- Whether the project is known; no row where it is not.
SELECT true FROM projects WHERE name = $1;
