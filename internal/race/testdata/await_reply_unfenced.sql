-- "Later" is taken from whoever once had the turn.
SELECT pg_temp.edit('fila_await_reply', 'AND attempt = p_attempt ', '');
