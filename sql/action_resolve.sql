-- How an unknown outcome turned out: the turn's state, and its phone.
SELECT state, (SELECT t.phone FROM turns t WHERE t.id = $2)
FROM fila_resolve($2, $3, $4, $5, $1) AS state;
