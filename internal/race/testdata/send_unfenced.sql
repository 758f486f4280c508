-- The gate lets through whoever once had the turn.
SELECT pg_temp.edit('fila_send', 't.attempt IS DISTINCT FROM p_attempt OR ', '');
