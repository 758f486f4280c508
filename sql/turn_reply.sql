-- The agent's answer, and what the gate makes of it.
SELECT verdict
FROM fila_reply($1, $2, $3, $4, $5, $6, $7, $8, $9);
