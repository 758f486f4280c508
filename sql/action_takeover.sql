-- A person has the conversation: how long, and its key.
SELECT status, (SELECT fila_key($2, p.country) FROM projects p WHERE p.name = $1)
FROM fila_takeover($1, $2, $3, $4, $5) AS status;
