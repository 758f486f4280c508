-- Each project's window against how its patients write, over its last 500 turns: messages a turn, pauses within a burst, and the
-- share of turns whose patient went on within 30 s of their start. Many of those: the window is too short. Pauses far
-- below the window: it could be shorter. For one project, over its last 3,000: psql -v project=clinfeto -f windows.sql
\if :{?project}
    \set turns 3000
    \set its 'x.project = ' :'project'
\else
    \set project ''
    \set turns 500
    -- A range, and not an equation: else a project without turns would have those of all others read, by their number.
    \set its 'x.project >= p.name AND x.project <= p.name'
\endif
SELECT
    p.name AS project,
    extract(epoch FROM p.debounce)::double precision AS window_seconds,
    count(*) AS turns,
    round(avg(t.messages), 2) AS messages_a_turn,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY t.pause) AS longest_pause_p50,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY t.pause) AS longest_pause_p95,
    round(100.0 * count(*) FILTER (WHERE t.went_on) / count(*), 1) AS went_on_percent,
    count(*) FILTER (WHERE t.fired_by = 'ceiling') AS by_ceiling,
    count(*) FILTER (WHERE t.fired_by = 'count') AS by_count
FROM projects p
CROSS JOIN LATERAL (
    SELECT
        l.fired_by,
        cardinality(l.message_ids) AS messages,
        g.pause,
        EXISTS (
            SELECT FROM turns n
            WHERE n.project = l.project AND n.phone = l.phone AND n.id > l.id AND n.first_at < l.drained_at + interval '30 seconds'
        ) AS went_on
    FROM (
        SELECT x.id, x.project, x.phone, x.fired_by, x.message_ids, x.drained_at FROM turns x
        WHERE :its
        ORDER BY x.project DESC, x.id DESC
        LIMIT :turns
    ) l
    CROSS JOIN LATERAL (
        SELECT extract(epoch FROM max(r.pause))::double precision AS pause
        FROM (
            SELECT m.received_at - lag(m.received_at) OVER (ORDER BY m.id) AS pause
            FROM receipts m
            WHERE m.id = ANY (l.message_ids)
        ) r
    ) g
) t
WHERE :'project' IN ('', p.name)
GROUP BY p.name, p.debounce
ORDER BY p.name;
