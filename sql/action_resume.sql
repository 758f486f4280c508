-- A suspension ends, and what becomes of the messages; the conversation's key.
SELECT status, (SELECT fila_key($2, p.country) FROM projects p WHERE p.name = $1)
FROM fila_resume($1, $2, $3, $4) AS status;
