-- The step in company does not ask who has the conversation.
SELECT pg_temp.edit('fila_advance', 'NOT a.replied OR fila_mode(v.mode, v.until) = ''agent''', 'true');
SELECT pg_temp.edit('fila_advance', ' AND NOT t.silenced', '');
