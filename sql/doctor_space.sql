-- How big the database is, which of its tables is the biggest, and how much of the write-ahead log a replication slot that nobody
-- reads from keeps on the disk.
SELECT
    pg_size_pretty(pg_database_size(current_database())),
    coalesce((
        SELECT c.relname || ', ' || pg_size_pretty(pg_total_relation_size(c.oid))
        FROM pg_class c
        WHERE c.relkind = 'r' AND c.relnamespace = ANY (current_schemas(false)::regnamespace[])
        ORDER BY pg_total_relation_size(c.oid) DESC
        LIMIT 1
    ), 'none'),
    coalesce((
        SELECT max(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, s.restart_lsn))
        FROM pg_replication_slots s
        WHERE NOT s.active
    ), 0)::bigint;
