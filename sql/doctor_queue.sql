-- What the checkup needs to know of the work: turns whose instance went away over a minute ago and that nobody took over, rows of
-- other programs that nobody took up for a minute, turns that wait for a person and the conversations with messages behind
-- them, dead turns, conversations that one of these suspended.
SELECT
    (
        SELECT count(*) FROM turns t
        JOIN conversations c ON c.project = t.project AND c.phone = t.phone
        WHERE t.open AND c.mode <> 'suspended' AND t.lease_until < clock_timestamp() - interval '1 minute'
    ),
    (SELECT count(*) FROM fila_mensagens q WHERE NOT q.registered AND q.timestamp < clock_timestamp() - interval '1 minute'),
    (SELECT count(*) FROM turns t WHERE t.open AND t.state = 'unknown' AND t.next_attempt_at IS NULL),
    (
        SELECT count(*) FROM turns t
        WHERE t.open AND t.state = 'unknown' AND t.next_attempt_at IS NULL
            AND EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = t.project AND q.telefone = t.phone)
    ),
    (SELECT count(*) FROM turns t WHERE t.dead),
    (SELECT count(*) FROM conversations c WHERE c.mode <> 'agent' AND c.mode = 'suspended' AND c.suspended_by IS NOT NULL);
