-- Turns that have nobody and may go on, at most $2 of each project in $1.
SELECT
    turn_id, project, phone, state, stage, why, attempt, fired_by, address, contact_name, session_id, messages, body, superseded_turns,
    message_count, agent_failures, delivery_failures, crashes, reconcile_seconds, doubtful_part
FROM fila_claim($1, $2, $3, $4);
