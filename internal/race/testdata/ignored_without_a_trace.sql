-- What waits is thrown away, and its receipts go on saying that it was accepted.
SELECT pg_temp.edit('fila_ignore_waiting', 'SET status = ''ignored'', reason = p_reason', 'SET status = r.status');
