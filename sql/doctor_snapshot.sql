-- Who keeps vacuum from removing dead rows for longest: a transaction, a prepared one, a replication slot. Its age in seconds
-- where that is known, and in transactions.
SELECT h.holder, coalesce(extract(epoch FROM clock_timestamp() - h.since), 0)::double precision, age(h.xmin)::bigint
FROM (
    SELECT
        format('process %s (%s, %s)', a.pid, coalesce(nullif(a.application_name, ''), 'no name'), a.state) AS holder,
        coalesce(a.backend_xmin, a.backend_xid) AS xmin, a.xact_start AS since
    FROM pg_stat_activity a
    WHERE coalesce(a.backend_xmin, a.backend_xid) IS NOT NULL AND a.pid <> pg_backend_pid()
    UNION ALL
    SELECT 'prepared transaction ' || x.gid, x.transaction, x.prepared FROM pg_prepared_xacts x
    UNION ALL
    SELECT 'replication slot ' || s.slot_name, coalesce(s.xmin, s.catalog_xmin), NULL
    FROM pg_replication_slots s
    WHERE coalesce(s.xmin, s.catalog_xmin) IS NOT NULL
) h
ORDER BY age(h.xmin) DESC
LIMIT 1;
