-- A dead turn begins again: its state, and its phone.
SELECT state, (SELECT t.phone FROM turns t WHERE t.id = $2)
FROM fila_redrive($2, $3, $4, $1, $5) AS state;
