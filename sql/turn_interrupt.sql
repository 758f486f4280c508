-- The newer burst has fallen due while the agent thinks.
SELECT fila_interrupt($1, $2);
