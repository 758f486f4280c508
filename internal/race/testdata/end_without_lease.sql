-- The end of a turn forgets that its call still runs.
SELECT pg_temp.edit('fila_discard_turn', 'CASE WHEN t.state <> ''unknown'' THEN lease_until END', 'NULL');
SELECT pg_temp.edit('fila_erase', 'e.lease_until > clock_timestamp()', 'false');
