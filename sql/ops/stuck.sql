-- What is stuck and who holds it: outcomes that a person must resolve, leases that ran out, replies that are held, agents
-- that are late to call back.
SELECT
    t.id, t.project, t.phone, t.state, t.instance,
    CASE
        WHEN t.state = 'unknown' AND t.next_attempt_at IS NULL THEN 'nobody knows whether it happened: resolve it'
        WHEN t.state = 'replied' THEN 'the reply is kept: the conversation is suspended, resume it'
        WHEN t.lease_until < clock_timestamp() THEN 'its instance is gone: the next sweep takes it over'
        WHEN t.reply_until < clock_timestamp() THEN 'the agent has not called back in time'
    END AS why,
    date_trunc('seconds', clock_timestamp() - t.drained_at) AS open_for,
    (SELECT count(*) FROM fila_mensagens q WHERE q.projeto = t.project AND q.telefone = t.phone) AS messages_behind,
    t.reason AS last_trouble
FROM turns t
WHERE t.open AND (
    (t.state = 'unknown' AND t.next_attempt_at IS NULL)
    OR (t.state = 'replied' AND t.lease_until IS NULL)
    OR t.lease_until < clock_timestamp()
    OR t.reply_until < clock_timestamp()
)
ORDER BY t.drained_at
LIMIT 200;
