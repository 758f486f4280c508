-- What the metrics show of every project: what waits and for how long, open turns by state, dead letters, suspended
-- conversations by who suspended them.
SELECT
    p.name,
    coalesce(q.waiting, 0),
    coalesce(q.oldest, 0)::double precision,
    coalesce(t.running, 0),
    coalesce(t.retrying, 0),
    coalesce(t.replied, 0),
    coalesce(t.sending, 0),
    coalesce(t.unknown, 0),
    (SELECT count(*) FROM turns d WHERE d.project = p.name AND d.dead),
    coalesce(c.by_person, 0),
    coalesce(c.by_dead, 0)
FROM projects p
LEFT JOIN (
    SELECT m.projeto, count(*) AS waiting, extract(epoch FROM clock_timestamp() - min(m.timestamp)) AS oldest
    FROM fila_mensagens m
    GROUP BY m.projeto
) q ON q.projeto = p.name
LEFT JOIN (
    SELECT h.project, count(*) FILTER (WHERE h.suspended_by IS NULL) AS by_person, count(h.suspended_by) AS by_dead
    FROM conversations h
    WHERE h.mode <> 'agent' AND h.mode = 'suspended'
    GROUP BY h.project
) c ON c.project = p.name
LEFT JOIN (
    SELECT
        o.project,
        count(*) FILTER (WHERE o.state = 'running') AS running,
        count(*) FILTER (WHERE o.state = 'retrying') AS retrying,
        count(*) FILTER (WHERE o.state = 'replied') AS replied,
        count(*) FILTER (WHERE o.state = 'sending') AS sending,
        count(*) FILTER (WHERE o.state = 'unknown') AS unknown
    FROM turns o
    WHERE o.open
    GROUP BY o.project
) t ON t.project = p.name;
