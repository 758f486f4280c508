-- What autovacuum would have done since.
VACUUM (ANALYZE) receipts, turns, deliveries;
