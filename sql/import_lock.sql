-- One import of a table at a time, or two would mix up its order. $1 is its quoted name.
SELECT pg_advisory_xact_lock(hashtextextended('fila_import:' || to_regclass($1)::oid, 7302));
