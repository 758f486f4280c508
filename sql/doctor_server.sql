-- What the checkup needs to know of the server: its version, whether it can write, what a commit promises, its time, whether
-- vacuum runs, and how much room there is for connections and locks.
SELECT
    current_setting('server_version_num')::integer,
    current_setting('server_version'),
    NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off',
    current_setting('synchronous_commit'),
    current_setting('fsync'),
    current_setting('full_page_writes'),
    extract(epoch FROM clock_timestamp())::double precision,
    -- Without its counters vacuum never comes by itself.
    CASE WHEN current_setting('track_counts') = 'off' THEN 'off' ELSE current_setting('autovacuum') END,
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer,
    (SELECT count(*) FROM pg_stat_activity a WHERE a.backend_type = 'client backend')::integer,
    -- Each of max_connections gets its share of the one table that all locks are in.
    current_setting('max_locks_per_transaction')::integer * (current_setting('max_connections')::integer + current_setting('max_prepared_transactions')::integer);
