-- The safety net, one round trip: what another process asked for, where another program inserted rows, where turns
-- have nobody, and which bursts are overdue although no timer may stand for them. $1 names the projects, $2 the phone
-- after which each project's page of the queue begins, $3 the page's length.
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[]) AS w (project, after)
), wakeup AS (
    DELETE FROM wakeups w
    USING (
        SELECT k.project, k.phone FROM wakeups k
        WHERE k.project = ANY ($1::text[])
        FOR UPDATE SKIP LOCKED
    ) taken
    WHERE w.project = taken.project AND w.phone = taken.phone
    RETURNING w.project, w.phone
), page AS MATERIALIZED (
    SELECT w.project, p.telefone, p.timestamp
    FROM wanted w
    CROSS JOIN LATERAL (
        SELECT q.telefone, q.timestamp
        FROM fila_mensagens q
        WHERE q.projeto = w.project AND q.telefone > w.after
        ORDER BY q.telefone, q.id
        LIMIT $3
    ) p
)
SELECT 'wakeup' AS kind, u.project, u.phone, 0 AS rows
FROM wakeup u
UNION ALL
SELECT 'foreign', w.project, '', 0
FROM wanted w
WHERE EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = w.project AND NOT q.registered)
UNION ALL
SELECT 'turn', w.project, '', 0
FROM wanted w
WHERE EXISTS (
    SELECT FROM turns t
    JOIN conversations c ON c.project = t.project AND c.phone = t.phone
    WHERE t.project = w.project AND t.open AND c.mode <> 'suspended' AND (
        (t.state IN ('retrying', 'unknown') AND t.next_attempt_at <= clock_timestamp())
        OR (t.state IN ('running', 'sending') AND t.lease_until < clock_timestamp())
        OR (t.state = 'running' AND t.reply_until < clock_timestamp())
        OR (t.state = 'replied' AND coalesce(t.lease_until < clock_timestamp(), true))
    )
)
UNION ALL
SELECT 'overdue', g.project, g.telefone, 0
FROM page g
JOIN projects p ON p.name = g.project
JOIN conversations c ON c.project = g.project AND c.phone = g.telefone
WHERE fila_mode(c.mode, c.until) = 'agent'
    AND NOT EXISTS (SELECT FROM turns t WHERE t.project = g.project AND t.phone = g.telefone AND t.open)
GROUP BY g.project, g.telefone
HAVING max(g.timestamp) < clock_timestamp() - max(p.debounce) OR min(g.timestamp) < clock_timestamp() - max(p.max_wait)
UNION ALL
SELECT 'page', g.project, max(g.telefone), count(*)::integer
FROM page g
GROUP BY g.project;
