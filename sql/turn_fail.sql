-- Something did not work, and what the policy makes of it.
SELECT fila_fail($1, $2, $3, $4, $5, $6, $7, $8);
