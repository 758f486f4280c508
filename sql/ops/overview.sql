-- The handover, a row a project: the backlog, what is in flight, what is isolated (suspended by a person or by a dead turn, or with a
-- person), what is unknown, which unknown outcomes were settled in the last day, by a person or by asking the receiver, and
-- what is dead. For one project: psql -v project=clinfeto -f overview.sql
\if :{?project}
\else
    \set project ''
\endif
SELECT
    o.project, o.waiting, o.waiting_conversations, o.oldest_wait_seconds, o.active_turns AS in_flight, o.retrying,
    o.suspended - o.suspended_by_dead AS suspended_by_person, o.suspended_by_dead, o.human, o.unknown,
    count(a.id) FILTER (WHERE a.action = 'resolve') AS resolved_today, count(a.id) FILTER (WHERE a.action = 'reconcile') AS reconciled_today,
    o.dead, round((1000 * o.lateness_p99_seconds)::numeric, 1) AS lateness_p99_ms
FROM fila_overview o
LEFT JOIN (
    -- The latest actions only: the audit trail is kept for good.
    SELECT l.id, l.project, l.action, l.at FROM audit l ORDER BY l.id DESC LIMIT 20000
) a ON a.project = o.project AND a.action IN ('resolve', 'reconcile') AND a.at > clock_timestamp() - interval '1 day'
WHERE :'project' IN ('', o.project)
GROUP BY
    o.project, o.waiting, o.waiting_conversations, o.oldest_wait_seconds, o.active_turns, o.retrying, o.suspended, o.suspended_by_dead,
    o.human, o.unknown, o.dead, o.lateness_p99_seconds
ORDER BY o.project;
