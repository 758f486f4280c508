-- What waits is due now: project, phone, by.
SELECT fila_flush($1, $2, $3);
