-- How big the database is, which of its tables are the biggest, and how much of the write-ahead log a replication slot that nobody
-- reads from keeps on the disk.
SELECT
    pg_size_pretty(pg_database_size(current_database())),
    coalesce((
        SELECT string_agg(b.relname || ' ' || pg_size_pretty(b.size), ', ' ORDER BY b.size DESC)
        FROM (
            SELECT c.relname, pg_total_relation_size(c.oid) AS size
            FROM pg_class c
            WHERE c.relkind = 'r' AND c.relnamespace = ANY (current_schemas(false)::regnamespace[])
            ORDER BY 2 DESC
            LIMIT 3
        ) b
    ), 'none'),
    coalesce((
        SELECT max(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, s.restart_lsn))
        FROM pg_replication_slots s
        WHERE NOT s.active
    ), 0)::bigint;
