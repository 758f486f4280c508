-- What a benchmark counts of its database: transactions, rows written, bytes of the write-ahead log (of the whole server), batches of
-- messages. The statistics of a session are known a second after it did something.
SELECT
    d.xact_commit + d.xact_rollback,
    d.tup_inserted + d.tup_updated + d.tup_deleted,
    pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint,
    coalesce((SELECT sum(f.calls) FROM pg_stat_user_functions f WHERE f.funcname = 'fila_push'), 0)::bigint
FROM pg_stat_database d
WHERE d.datname = current_database();
