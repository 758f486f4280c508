-- Whether a project takes messages; no row where it is unknown.
SELECT active FROM projects WHERE name = $1;
