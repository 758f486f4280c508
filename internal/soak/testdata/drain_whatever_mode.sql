-- The drain does not ask who has the floor.
SELECT pg_temp.edit('fila_drain', 'WHEN c.mode <> ''agent'' THEN c.mode', 'WHEN false THEN ''human''');
