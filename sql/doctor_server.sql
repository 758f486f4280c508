-- What the checkup needs to know of the server: its version, whether it can write, what a commit promises, its time, and
-- whether its schema is there.
SELECT
    current_setting('server_version_num')::integer,
    current_setting('server_version'),
    NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off',
    current_setting('synchronous_commit'),
    current_setting('fsync'),
    extract(epoch FROM clock_timestamp())::double precision;
