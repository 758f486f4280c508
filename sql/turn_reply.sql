-- The agent's answer, and what the gate makes of it.
SELECT coalesce(verdict, ''), coalesce(attempt, 0)
FROM fila_reply($1, $2, $3, $4, $5, $6, $7, $8);
