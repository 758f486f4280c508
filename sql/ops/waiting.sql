-- What waits and since when: a row a conversation, the longest wait first.
-- For one project: psql -v project=clinfeto -f waiting.sql
\if :{?project}
\else
    \set project ''
\endif
SELECT
    q.projeto,
    q.telefone,
    q.messages,
    date_trunc('milliseconds', clock_timestamp() - q.first_at) AS waits_for,
    date_trunc('milliseconds', clock_timestamp() - q.last_at) AS quiet_for,
    fila_mode(c.mode, c.until) AS mode,
    t.id AS behind_turn,
    t.state AS behind_state
FROM (
    SELECT m.projeto, m.telefone, count(*) AS messages, min(m.timestamp) AS first_at, max(m.timestamp) AS last_at
    FROM fila_mensagens m
    WHERE :'project' = '' OR m.projeto = :'project'
    GROUP BY m.projeto, m.telefone
    ORDER BY min(m.timestamp)
    LIMIT 200
) q
LEFT JOIN LATERAL (SELECT v.mode, v.until FROM conversations v WHERE v.project = q.projeto AND v.phone = q.telefone LIMIT 1) c ON true
LEFT JOIN LATERAL (SELECT o.id, o.state FROM turns o WHERE o.project = q.projeto AND o.phone = q.telefone AND o.open LIMIT 1) t ON true
ORDER BY q.first_at;
