-- What goes out is not written down before it does.
SELECT pg_temp.edit('fila_reply', 'WHEN place = 1 AND verdict = ''send'' THEN ''sending''', 'WHEN place = 1 AND verdict = ''send'' THEN ''pending''');
SELECT pg_temp.edit('fila_send', 'UPDATE deliveries SET state = ''sending'', attempts', 'UPDATE deliveries SET attempts');
