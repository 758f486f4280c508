-- Everything that is held about one phone, as one JSON document, and whether that is anything at all. $1 project, $2 the
-- conversation's key, $3 who asks. The lock made a conversation if there was none, which is not shown. A row that another program inserted a moment ago still has its phone as it came.
WITH mine AS MATERIALIZED (
    SELECT q.*
    FROM fila_mensagens q
    JOIN projects p ON p.name = q.projeto
    WHERE q.projeto = $1 AND (q.telefone = $2 OR (NOT q.registered AND fila_key(q.telefone, p.country) = $2))
), turn AS MATERIALIZED (
    SELECT t.* FROM turns t WHERE t.project = $1 AND t.phone = $2
), receipt AS MATERIALIZED (
    SELECT r.* FROM receipts r WHERE r.project = $1 AND r.phone = $2
), intervention AS MATERIALIZED (
    SELECT a.* FROM audit a WHERE a.project = $1 AND a.phone = $2
), held AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM mine) OR EXISTS (SELECT FROM turn) OR EXISTS (SELECT FROM receipt) OR EXISTS (SELECT FROM intervention) AS any
)
SELECT
    json_build_object(
        'project', $1::text,
        'phone', $2::text,
        'exported_at', fila_time(clock_timestamp()),
        'exported_by', $3::text,
        'conversation', (SELECT row_to_json(c) FROM conversations c WHERE c.project = $1 AND c.phone = $2 AND held.any),
        'waiting', (SELECT coalesce(json_agg(row_to_json(m) ORDER BY m.id), '[]') FROM mine m),
        'turns', (
            SELECT coalesce(json_agg(json_build_object('turn', row_to_json(t), 'parts', (
                SELECT coalesce(json_agg(row_to_json(d) ORDER BY d.part), '[]') FROM deliveries d WHERE d.turn_id = t.id
            )) ORDER BY t.id), '[]')
            FROM turn t
        ),
        'receipts', (SELECT coalesce(json_agg(row_to_json(r) ORDER BY r.id), '[]') FROM receipt r),
        'audit', (SELECT coalesce(json_agg(row_to_json(a) ORDER BY a.id), '[]') FROM intervention a)
    ),
    held.any
FROM held;
