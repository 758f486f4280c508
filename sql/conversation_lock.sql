-- Holds the conversation of a phone in any of its forms, made if need be, until the end of the transaction; answers its key.
SELECT (fila_lock($1, $2)).phone;
