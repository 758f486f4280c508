-- The slowest of the last 10,000 turns: how late each began, how long the agent took, how long the delivery, and the whole from the
-- first message to the end. For one project: psql -v project=clinfeto -f slowest.sql
\if :{?project}
\else
    \set project ''
\endif
SELECT
    t.id, t.project, t.phone, t.state, t.attempt, t.fired_by, t.drained_at,
    round(extract(epoch FROM t.due_at - t.first_at), 3) AS window_seconds,
    round(extract(epoch FROM t.drained_at - t.due_at), 3) AS late_seconds,
    round(extract(epoch FROM t.replied_at - t.drained_at), 3) AS agent_seconds,
    round(extract(epoch FROM t.finished_at - t.replied_at), 3) AS delivery_seconds,
    round(extract(epoch FROM t.finished_at - t.first_at), 3) AS whole_seconds,
    jsonb_array_length(t.errors) AS troubles
FROM (
    SELECT
        l.id, l.project, l.phone, l.state, l.attempt, l.fired_by, l.first_at, l.due_at, l.drained_at, l.replied_at, l.finished_at, l.errors
    FROM turns l
    WHERE :'project' = '' OR l.project = :'project'
    ORDER BY l.id DESC
    LIMIT 10000
) t
WHERE t.finished_at IS NOT NULL
ORDER BY t.finished_at - t.due_at DESC
LIMIT 50;
