-- Which receipts behind $1, at most $3 of them, and which of those in $2, have ended in no turn: whether they are lost,
-- and whether they are old enough to be passed. A receipt of the last minute is not: a lower number than its own may
-- still be on its way to its commit. The last row tells how far the look may count as done, and whether more follow.
WITH looked AS MATERIALIZED (
    (
        SELECT r.id, r.project, r.phone, r.status, r.received_at < clock_timestamp() - interval '1 minute' AS settled, true AS new
        FROM receipts r
        WHERE r.id > $1
        ORDER BY r.id
        LIMIT $3
    )
    UNION ALL
    SELECT r.id, r.project, r.phone, r.status, true, false
    FROM receipts r
    WHERE r.id = ANY ($2::bigint[])
), passed AS (
    SELECT coalesce(max(l.id), $1) AS id
    FROM looked l
    WHERE l.new AND l.settled AND l.id < coalesce((SELECT min(y.id) FROM looked y WHERE NOT y.settled), l.id + 1)
)
SELECT
    l.id,
    l.project,
    NOT EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = l.project AND q.telefone = l.phone AND q.id = l.id)
        AND NOT EXISTS (SELECT FROM turns t WHERE t.project = l.project AND t.phone = l.phone AND t.open AND l.id = ANY (t.message_ids)) AS lost,
    l.id <= p.id OR NOT l.new AS settled,
    false AS full
FROM looked l
CROSS JOIN passed p
WHERE l.status = 'queued'
    AND NOT EXISTS (
        SELECT FROM turns t
        WHERE t.project = l.project AND t.phone = l.phone AND NOT t.open AND l.id = ANY (t.message_ids) AND t.state <> 'superseded'
    )
UNION ALL
SELECT p.id, NULL, false, false, (SELECT count(*) FROM looked l WHERE l.new) = $3
FROM passed p;
