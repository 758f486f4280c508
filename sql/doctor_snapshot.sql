-- Who keeps vacuum from removing dead rows of this database for longest: a transaction, a prepared one, a replication slot, a
-- standby. Its age in seconds where that is known, and in transactions. First whether this role sees how long others' transactions
-- have lasted; the rest is null where nobody keeps anything.
SELECT pg_has_role('pg_read_all_stats', 'USAGE'), h.holder, extract(epoch FROM clock_timestamp() - h.since)::double precision, age(h.xmin)::bigint
FROM (VALUES (true)) AS always
LEFT JOIN LATERAL (
    SELECT k.holder, k.xmin, k.since
    FROM (
        SELECT
            format('process %s (%s, %s)', a.pid, coalesce(nullif(a.application_name, ''), 'no name'), coalesce(a.state, a.backend_type, 'unknown')) AS holder,
            coalesce(a.backend_xmin, a.backend_xid) AS xmin, a.xact_start AS since
        FROM pg_stat_activity a
        WHERE coalesce(a.backend_xmin, a.backend_xid) IS NOT NULL AND a.pid <> pg_backend_pid()
            -- Vacuum does not wait for vacuum, nor for other databases. A standby's sender has no database.
            AND (a.datid IS NULL OR a.datname = current_database()) AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
        UNION ALL
        SELECT 'prepared transaction ' || x.gid, x.transaction, x.prepared FROM pg_prepared_xacts x WHERE x.database = current_database()
        UNION ALL
        SELECT 'replication slot ' || s.slot_name, coalesce(s.xmin, s.catalog_xmin), NULL
        FROM pg_replication_slots s
        WHERE coalesce(s.xmin, s.catalog_xmin) IS NOT NULL
    ) k
    ORDER BY age(k.xmin) DESC, k.since
    LIMIT 1
) h ON true;
