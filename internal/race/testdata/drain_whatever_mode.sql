-- The drain does not ask who has the conversation.
SELECT pg_temp.edit('fila_drain', 'WHEN fila_mode(c.mode, c.until) <> ''agent'' THEN fila_mode(c.mode, c.until)', '');
