-- Accepted messages that are in no fate. Always empty; a row here is an alarm.
SELECT * FROM fila_lost LIMIT 200;
