-- A batch of messages, whole or not at all: one status and one reason a message, in the order given.
SELECT statuses, reasons
FROM fila_push($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
