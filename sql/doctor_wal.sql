-- How many bytes the write-ahead log takes, and how many it usually takes at most. Only who may monitor the server may look.
SELECT coalesce(sum(w.size), 0)::bigint, pg_size_bytes(current_setting('max_wal_size')) FROM pg_ls_waldir() w;
