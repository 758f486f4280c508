-- The agent asks before an effect that can't be undone: the answer, and the turn's phone.
SELECT answer, (SELECT t.phone FROM turns t WHERE t.id = $2)
FROM fila_confirm($1, $2, $3) AS answer;
