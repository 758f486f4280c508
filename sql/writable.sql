-- Whether this server takes writes (neither a standby nor set to read only) and knows the projects in $1.
SELECT
    NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off',
    (SELECT count(*) FROM projects p WHERE p.name = ANY ($1::text[])) = cardinality($1::text[]);
