-- What is stuck and who holds it: outcomes that a person must resolve, leases that ran out, replies that are held, agents
-- that are late to call back; and conversations that are suspended or with a person while messages wait.
-- For one project: psql -v project=clinfeto -f stuck.sql
\if :{?project}
\else
    \set project ''
\endif
SELECT
    t.project, t.phone, t.id AS turn, t.state, t.instance,
    CASE
        WHEN t.state = 'unknown' AND t.next_attempt_at IS NULL THEN 'nobody knows whether it happened: resolve it'
        WHEN t.state = 'replied' THEN 'the reply is kept: the conversation is suspended, resume it'
        WHEN t.lease_until < clock_timestamp() THEN 'its instance is gone: the next sweep takes it over'
        WHEN t.reply_until < clock_timestamp() THEN 'the agent has not called back in time'
    END AS why,
    date_trunc('seconds', clock_timestamp() - t.drained_at) AS since,
    (SELECT count(*) FROM fila_mensagens q WHERE q.projeto = t.project AND q.telefone = t.phone) AS messages_behind,
    t.reason AS last_trouble
FROM turns t
WHERE t.open AND (:'project' = '' OR t.project = :'project') AND (
    (t.state = 'unknown' AND t.next_attempt_at IS NULL)
    OR (t.state = 'replied' AND t.lease_until IS NULL)
    OR t.lease_until < clock_timestamp()
    OR t.reply_until < clock_timestamp()
)
UNION ALL
SELECT
    c.project, c.phone, c.suspended_by, NULL, NULL,
    CASE
        WHEN c.mode = 'human' THEN 'a person has it until ' || fila_time(c.until)
        WHEN c.suspended_by IS NULL THEN 'a person suspended it: resume it'
        ELSE 'a turn died and suspended it: redrive or discard the turn, then resume it'
    END,
    date_trunc('seconds', clock_timestamp() - w.first_at), w.messages, NULL
FROM conversations c
CROSS JOIN LATERAL (
    SELECT count(*) AS messages, min(q.timestamp) AS first_at FROM fila_mensagens q WHERE q.projeto = c.project AND q.telefone = c.phone
) w
WHERE c.mode <> 'agent' AND fila_mode(c.mode, c.until) <> 'agent' AND (:'project' = '' OR c.project = :'project') AND w.messages > 0
ORDER BY since DESC
LIMIT 200;
