-- The steps of the schema's history that were applied, and when.
SELECT version_id, max(tstamp)::timestamptz FROM goose_db_version WHERE is_applied GROUP BY version_id;
