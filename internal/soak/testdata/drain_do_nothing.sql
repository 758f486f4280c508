-- The drain meets the open turn only behind the DELETE, and swallows the conflict.
SELECT pg_temp.edit('fila_drain', 'WHEN o.id IS NOT NULL THEN ''open''', 'WHEN false THEN ''open''');
SELECT pg_temp.edit('fila_drain', 'HAVING count(*) > 0', 'HAVING count(*) > 0 ON CONFLICT DO NOTHING');
