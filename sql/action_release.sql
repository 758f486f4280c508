-- The conversation is the agent's again, and its key.
SELECT status, (SELECT fila_key($2, p.country) FROM projects p WHERE p.name = $1)
FROM fila_release($1, $2, $3) AS status;
