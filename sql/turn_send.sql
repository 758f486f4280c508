-- The gate before part $3, and the intent to send it.
SELECT fila_send($1, $2, $3);
