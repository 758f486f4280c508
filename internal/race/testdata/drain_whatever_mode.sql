-- The drain does not ask who has the conversation.
SELECT pg_temp.edit('fila_drain', 'WHEN c.mode <> ''agent'' THEN c.mode', '');
