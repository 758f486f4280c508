-- A failure is taken from whoever once had the turn.
SELECT pg_temp.edit('fila_fail', 't.attempt IS DISTINCT FROM p_attempt OR ', '');
