-- The drain waits for whoever holds one of its conversations, and the others wait with it.
SELECT pg_temp.edit('fila_drain', 'FOR NO KEY UPDATE SKIP LOCKED', 'FOR NO KEY UPDATE');
