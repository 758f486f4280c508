-- How many rows were inserted.
SELECT count(*) FROM fila_mensagens_old;
