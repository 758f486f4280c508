-- What died and why: the dead letters that nobody has redriven or discarded, the latest first.
SELECT
    t.id, t.project, t.phone, t.stage, t.reason, t.attempt, t.agent_failures, t.delivery_failures, t.crashes,
    t.first_at, t.finished_at,
    cardinality(t.message_ids) AS messages,
    (SELECT count(*) FROM deliveries d WHERE d.turn_id = t.id AND d.part > 0 AND d.state = 'sent') AS parts_sent
FROM turns t
WHERE t.dead
ORDER BY t.id DESC
LIMIT 200;
