-- A redrive leaves it to the index that another turn of the conversation is open.
SELECT pg_temp.edit('fila_redrive', 'WHERE o.project = t.project AND o.phone = t.phone AND o.open)', 'WHERE false)');
