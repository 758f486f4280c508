-- The drain does not ask who has the floor.
SELECT pg_temp.edit('fila_drain', 'WHEN fila_mode(c.mode, c.until) <> ''agent'' THEN fila_mode(c.mode, c.until)', 'WHEN false THEN ''human''');
