-- Turns, newest first, each as one JSON document. Null parameters do not narrow: $1 project, $2 phone in any of its forms,
-- $3 state, $4 the turn alone, $5 only older than this turn; $6 how many.
--
-- `open` and `dead` follow from the state; naming them lets the partial indexes serve.
SELECT jsonb_build_object(
    'id', t.id::text,
    'project', t.project,
    'phone', t.phone,
    'state', t.state,
    'fired_by', t.fired_by,
    'messages', t.messages,
    'text', t.text,
    'reply', t.reply,
    'parts', coalesce(sent.parts, '[]'),
    'attempt', t.attempt,
    'first_at', fila_time(t.first_at),
    'due_at', fila_time(t.due_at),
    'drained_at', fila_time(t.drained_at),
    'replied_at', fila_time(t.replied_at),
    'finished_at', fila_time(t.finished_at),
    'kept_until', CASE WHEN t.dead THEN fila_time(t.first_at + p.keep_dead) END,
    'next_attempt_at', fila_time(t.next_attempt_at),
    'superseded_by', t.superseded_by::text,
    'reason', t.reason,
    'errors', t.errors,
    'instance', t.instance
)
FROM turns t
JOIN projects p ON p.name = t.project
LEFT JOIN LATERAL (
    SELECT jsonb_agg(
        jsonb_build_object(
            'part', d.part, 'text', d.text, 'state', d.state, 'provider_id', d.provider_id, 'attempts', d.attempts
        ) ORDER BY d.part
    ) AS parts
    FROM deliveries d
    WHERE d.turn_id = t.id
) sent ON true
WHERE ($1::text IS NULL OR t.project = $1)
    AND ($2::text IS NULL OR t.phone = fila_key($2, p.country))
    AND ($3::text IS NULL OR t.state = $3)
    AND ($3::text IS DISTINCT FROM 'dead' OR t.dead)
    AND ($3::text IS NULL OR $3 NOT IN ('running', 'retrying', 'replied', 'sending', 'unknown') OR t.open)
    AND ($4::bigint IS NULL OR t.id = $4)
    AND ($5::bigint IS NULL OR t.id < $5)
ORDER BY t.id DESC
LIMIT $6;
