-- Neither gate asks who has the conversation.
SELECT pg_temp.edit('fila_reply', 'IF mode = ''human'' THEN', 'IF false THEN');
SELECT pg_temp.edit('fila_reply', 'CASE WHEN mode = ''suspended'' OR NOT p_send', 'CASE WHEN NOT p_send');
SELECT pg_temp.edit('fila_send', 'ELSIF mode = ''human'' THEN', 'ELSIF false THEN');
SELECT pg_temp.edit('fila_send', 'ELSIF mode = ''suspended'' THEN', 'ELSIF false THEN');
