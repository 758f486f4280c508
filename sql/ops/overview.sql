-- The handover: a row a project with what waits, runs, is tried again, unknown, suspended, with a person, dead.
SELECT
    project, waiting, waiting_conversations, oldest_wait_seconds, active_turns, retrying, unknown, suspended, human, dead,
    round((1000 * lateness_p99_seconds)::numeric, 1) AS lateness_p99_ms
FROM fila_overview
ORDER BY project;
