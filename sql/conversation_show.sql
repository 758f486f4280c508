-- One conversation as one JSON document, without its turns; no row where the project is unknown. A phone that never wrote has
-- an empty one. The due time is the drain's own rule. $1 project, $2 phone in any of its forms.
SELECT jsonb_build_object(
    'phone', k.key,
    'mode', coalesce(fila_mode(c.mode, c.until), 'agent'),
    'until', CASE WHEN fila_mode(c.mode, c.until) = 'human' THEN fila_time(c.until) END,
    'waiting', w.number,
    'first_at', fila_time(w.first_at),
    'last_at', fila_time(w.last_at),
    'due_at', fila_time(CASE WHEN w.number > 0 THEN least(
        CASE WHEN c.due_now_at IS NOT NULL THEN greatest(c.due_now_at, w.fresh_first_at) END,
        greatest(w.fresh_last_at, c.typing_at) + p.debounce,
        CASE WHEN p.debounce > interval '0' THEN w.fresh_first_at + p.max_wait END,
        w.full_at
    ) END),
    'active_turn', (SELECT t.id::text FROM turns t WHERE t.project = p.name AND t.phone = k.key AND t.open)
)
FROM projects p
CROSS JOIN LATERAL (SELECT fila_key($2, p.country)) AS k (key)
LEFT JOIN conversations c ON c.project = p.name AND c.phone = k.key
CROSS JOIN LATERAL (
    SELECT
        count(*) AS number,
        min(q.timestamp) AS first_at,
        max(q.timestamp) AS last_at,
        coalesce(min(q.timestamp) FILTER (WHERE NOT q.superseded), min(q.timestamp)) AS fresh_first_at,
        coalesce(max(q.timestamp) FILTER (WHERE NOT q.superseded), min(q.timestamp)) AS fresh_last_at,
        max(q.timestamp) FILTER (WHERE NOT q.superseded AND q.place = p.max_messages) AS full_at
    FROM (
        SELECT m.timestamp, m.superseded, row_number() OVER (PARTITION BY m.superseded ORDER BY m.id) AS place
        FROM fila_mensagens m
        WHERE m.projeto = p.name AND m.telefone = k.key
    ) q
) w
WHERE p.name = $1;
