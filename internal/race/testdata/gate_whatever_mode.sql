-- Neither gate asks who has the conversation.
SELECT pg_temp.edit('fila_reply', 'WHEN held.mode = ''human'' THEN ''discarded''', 'WHEN false THEN ''discarded''');
SELECT pg_temp.edit('fila_reply', 'WHEN held.mode = ''suspended'' OR NOT p_send', 'WHEN NOT p_send');
SELECT pg_temp.edit('fila_send', 'ELSIF t.silenced OR mode = ''human'' THEN', 'ELSIF false THEN');
SELECT pg_temp.edit('fila_send', 'ELSIF mode = ''suspended'' THEN', 'ELSIF false THEN');
