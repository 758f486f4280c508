-- What new turns begin behind.
SELECT setval(pg_get_serial_sequence('turns', 'id'), (SELECT max(t.id) FROM turns t));
