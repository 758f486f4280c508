-- The drain does not ask whether a turn is open, and nothing else does.
SELECT pg_temp.edit('fila_drain', 'WHEN o.id IS NOT NULL THEN ''open''', 'WHEN false THEN ''open''');
DROP INDEX turns_open;
