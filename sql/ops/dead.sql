-- What died, why, and how long it is still kept: the dead letters that nobody has redriven or discarded, the latest first.
-- For one project: psql -v project=clinfeto -f dead.sql
\if :{?project}
\else
    \set project ''
\endif
SELECT
    t.id, t.project, t.phone, t.stage, t.reason, t.attempt, t.agent_failures, t.delivery_failures, t.crashes,
    t.first_at, t.finished_at,
    date_trunc('minutes', t.first_at + p.keep_dead - clock_timestamp()) AS kept_for,
    cardinality(t.message_ids) AS messages,
    (SELECT count(*) FROM deliveries d WHERE d.turn_id = t.id AND d.part > 0 AND d.state = 'sent') AS parts_sent,
    (SELECT coalesce(c.suspended_by = t.id, false) FROM conversations c WHERE c.project = t.project AND c.phone = t.phone) AS suspends
FROM turns t
JOIN projects p ON p.name = t.project
WHERE t.dead AND (:'project' = '' OR t.project = :'project')
ORDER BY t.id DESC
LIMIT 200;
