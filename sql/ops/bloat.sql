-- Whether the tables stay small, and what keeps vacuum from cleaning up: first the tables with their dead rows and last vacuum, then
-- who holds the oldest snapshot (a transaction, a prepared one, a replication slot), then indexes that nothing has used.
SELECT
    s.relname AS table,
    pg_size_pretty(pg_total_relation_size(s.relid)) AS size,
    pg_size_pretty(pg_indexes_size(s.relid)) AS indexes,
    s.n_live_tup AS rows,
    s.n_dead_tup AS dead_rows,
    round(100.0 * s.n_dead_tup / nullif(s.n_live_tup + s.n_dead_tup, 0), 1) AS dead_percent,
    round(100.0 * s.n_tup_hot_upd / nullif(s.n_tup_upd, 0), 1) AS hot_percent,
    date_trunc('seconds', clock_timestamp() - greatest(s.last_autovacuum, s.last_vacuum)) AS vacuumed_ago,
    date_trunc('seconds', clock_timestamp() - greatest(s.last_autoanalyze, s.last_analyze)) AS analyzed_ago
FROM pg_stat_user_tables s
WHERE s.schemaname = ANY (current_schemas(false))
ORDER BY pg_total_relation_size(s.relid) DESC
LIMIT 50;

SELECT h.holder, h.who, age(h.xmin) AS transactions_old, date_trunc('seconds', clock_timestamp() - h.since) AS held_for
FROM (
    SELECT 'transaction' AS holder, concat_ws(' ', a.pid::text, a.application_name, a.state) AS who, coalesce(a.backend_xmin, a.backend_xid) AS xmin, a.xact_start AS since
    FROM pg_stat_activity a
    WHERE coalesce(a.backend_xmin, a.backend_xid) IS NOT NULL AND a.pid <> pg_backend_pid()
    UNION ALL
    SELECT 'prepared transaction', x.gid, x.transaction, x.prepared FROM pg_prepared_xacts x
    UNION ALL
    SELECT 'replication slot', s.slot_name, coalesce(s.xmin, s.catalog_xmin), NULL FROM pg_replication_slots s WHERE coalesce(s.xmin, s.catalog_xmin) IS NOT NULL
) h
ORDER BY age(h.xmin) DESC
LIMIT 20;

SELECT i.relname AS table, i.indexrelname AS unused_index, pg_size_pretty(pg_relation_size(i.indexrelid)) AS size
FROM pg_stat_user_indexes i
JOIN pg_index x ON x.indexrelid = i.indexrelid
WHERE i.schemaname = ANY (current_schemas(false)) AND i.idx_scan = 0 AND NOT x.indisunique
ORDER BY pg_relation_size(i.indexrelid) DESC
LIMIT 20;
