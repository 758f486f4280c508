-- Forgets a patient: the counts of removed rows, and the conversation's key.
SELECT counts::text, (SELECT fila_key($2, p.country) FROM projects p WHERE p.name = $1)
FROM fila_erase($1, $2, $3) AS counts;
