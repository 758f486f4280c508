-- A conflict behind the DELETE is swallowed: the messages are gone and no turn has them.
SELECT pg_temp.edit('fila_drain', 'HAVING count(*) > 0', 'HAVING count(*) > 0 ON CONFLICT DO NOTHING');
