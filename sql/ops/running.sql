-- What runs, for how long, and on which instance: open turns, the oldest first.
-- For one project: psql -v project=clinfeto -f running.sql
\if :{?project}
\else
    \set project ''
\endif
SELECT
    t.id, t.project, t.phone, t.state, t.stage, t.attempt,
    date_trunc('milliseconds', clock_timestamp() - t.drained_at) AS open_for,
    t.instance,
    date_trunc('milliseconds', t.lease_until - clock_timestamp()) AS lease_left,
    t.next_attempt_at, t.reply_until, t.reason
FROM turns t
WHERE t.open AND (:'project' = '' OR t.project = :'project')
ORDER BY t.drained_at
LIMIT 200;
