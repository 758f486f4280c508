-- A turn is settled without an answer: its state, and its phone.
SELECT state, (SELECT t.phone FROM turns t WHERE t.id = $2)
FROM fila_discard($2, $3, $4, $1) AS state;
