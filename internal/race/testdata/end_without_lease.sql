-- The end of a turn forgets that its call still runs.
SELECT pg_temp.edit('fila_hang', 'p_lease_until > clock_timestamp()', 'false');
SELECT pg_temp.edit('fila_erase', 'e.lease_until > clock_timestamp()', 'false');
