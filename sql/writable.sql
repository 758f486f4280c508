-- Whether this server takes writes: neither a standby nor set to read only.
SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off';
