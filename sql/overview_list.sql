-- One row a project: what a shift hands over to the next.
SELECT to_jsonb(o) FROM fila_overview o ORDER BY o.project;
