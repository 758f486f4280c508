-- What waits and since when: a row a conversation, the longest wait first.
SELECT
    q.projeto,
    q.telefone,
    count(*) AS messages,
    date_trunc('milliseconds', clock_timestamp() - min(q.timestamp)) AS waits_for,
    date_trunc('milliseconds', clock_timestamp() - max(q.timestamp)) AS quiet_for,
    fila_mode(c.mode, c.until) AS mode,
    t.id AS behind_turn,
    t.state AS behind_state
FROM fila_mensagens q
LEFT JOIN conversations c ON c.project = q.projeto AND c.phone = q.telefone
LEFT JOIN turns t ON t.project = q.projeto AND t.phone = q.telefone AND t.open
GROUP BY q.projeto, q.telefone, c.mode, c.until, t.id, t.state
ORDER BY min(q.timestamp)
LIMIT 200;
