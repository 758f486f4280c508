-- Bursts that are due become turns; for the others, why not and how long to wait.
SELECT
    phone, verdict, wait_seconds, first_seconds, waiting, turn_id, fired_by, address, contact_name, session_id, messages, body, superseded_turns,
    message_count, late_seconds
FROM fila_drain($1, $2, $3, $4);
