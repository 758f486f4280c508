-- "Later" is taken from whoever once had the turn.
SELECT pg_temp.edit('fila_await_reply', 't.attempt IS DISTINCT FROM p_attempt OR ', '');
