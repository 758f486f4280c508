-- One conversation as one JSON document, without its turns; no row where the project is unknown. A phone that never wrote has
-- an empty one. The due time is the drain's own rule. $1 project, $2 phone in any of its forms.
SELECT jsonb_build_object(
    'phone', k.key,
    'mode', coalesce(fila_mode(c.mode, c.until), 'agent'),
    'until', CASE WHEN fila_mode(c.mode, c.until) = 'human' THEN fila_time(c.until) END,
    'waiting', w.number,
    'first_at', fila_time(w.first_at),
    'last_at', fila_time(w.last_at),
    'due_at', fila_time(w.due_at),
    'active_turn', (SELECT t.id::text FROM turns t WHERE t.project = p.name AND t.phone = k.key AND t.open)
)
FROM projects p
CROSS JOIN LATERAL (SELECT fila_key($2, p.country)) AS k (key)
LEFT JOIN conversations c ON c.project = p.name AND c.phone = k.key
CROSS JOIN LATERAL fila_burst(p, c, k.key) w
WHERE p.name = $1;
