-- Bursts that are due become turns; for the others, why not and how long to wait.
SELECT
    phone, verdict, wait_seconds, turn_id, fired_by, address, contact_name, session_id, messages, body, superseded_turns, late_seconds
FROM fila_drain($1, $2, $3, $4);
