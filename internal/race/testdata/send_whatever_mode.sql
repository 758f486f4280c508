-- The gate before a part does not ask who has the conversation.
SELECT pg_temp.edit('fila_send', 'ELSIF t.silenced OR mode = ''human'' THEN', 'ELSIF false THEN');
SELECT pg_temp.edit('fila_send', 'ELSIF mode = ''suspended'' THEN', 'ELSIF false THEN');
