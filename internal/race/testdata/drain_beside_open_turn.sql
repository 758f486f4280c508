-- The drain does not look whether a turn is open, and the conflict that follows is swallowed.
SELECT pg_temp.edit('fila_drain', 'WHEN o.id IS NOT NULL THEN ''open''', '');
SELECT pg_temp.edit('fila_drain', 'HAVING count(*) > 0', 'HAVING count(*) > 0 ON CONFLICT DO NOTHING');
