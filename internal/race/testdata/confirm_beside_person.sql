-- The confirmation does not ask who has the conversation.
SELECT pg_temp.edit('fila_confirm', 't.silenced OR fila_mode(c.mode, c.until) <> ''agent''', 'false');
