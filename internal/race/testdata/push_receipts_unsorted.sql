-- Receipts are written in the order in which their messages came.
SELECT pg_temp.edit('fila_push', 'ORDER BY n.project, n.message_id', 'ORDER BY n.id');
