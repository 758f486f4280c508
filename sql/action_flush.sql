-- What waits is due now; the conversation's key.
SELECT status, (SELECT fila_key($2, p.country) FROM projects p WHERE p.name = $1)
FROM fila_flush($1, $2, $3) AS status;
