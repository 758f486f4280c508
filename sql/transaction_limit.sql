-- For the statements behind it in the same round trip: give up on the server's side before the caller does, so that what was
-- reported as not done is not done a moment later.
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true);
