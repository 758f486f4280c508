-- Messages wait until somebody resumes the conversation; its key.
SELECT status, (SELECT fila_key($2, p.country) FROM projects p WHERE p.name = $1)
FROM fila_suspend($1, $2, $3, $4) AS status;
