-- The lock is taken in the statement that drains: whoever waited for it goes on with the snapshot from before the wait.
CREATE OR REPLACE FUNCTION fila_drain(p_project text, p_phones text[], p_instance text, p_lease double precision)
RETURNS TABLE (
    phone text, verdict text, wait_seconds double precision, first_seconds double precision, waiting integer, turn_id bigint, fired_by text, address text, contact_name text,
    session_id text, messages jsonb, body text, superseded_turns bigint[], message_count integer,
    late_seconds double precision
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH locked AS MATERIALIZED (
        SELECT c.phone FROM conversations c
        WHERE c.project = p_project AND c.phone = ANY (p_phones)
        ORDER BY c.phone
        FOR NO KEY UPDATE
    ), due AS (
        SELECT q.telefone
        FROM fila_mensagens q
        JOIN locked l ON l.phone = q.telefone
        JOIN projects p ON p.name = q.projeto
        WHERE q.projeto = p_project
        GROUP BY q.telefone
        HAVING max(q.timestamp) < clock_timestamp() - max(p.debounce)
    ), taken AS (
        DELETE FROM fila_mensagens q USING due d WHERE q.projeto = p_project AND q.telefone = d.telefone RETURNING q.*
    ), begun AS (
        INSERT INTO turns AS t (
            project, phone, state, fired_by, address, session_id, message_ids, messages, text, instance, lease_until, first_at, due_at
        )
        SELECT
            p_project, o.telefone, 'running', 'quiet', o.telefone, o.telefone, array_agg(o.id ORDER BY o.id),
            jsonb_agg(jsonb_build_object('id', o.id_mensagem, 'text', o.mensagem) ORDER BY o.id), string_agg(o.mensagem, ' ' ORDER BY o.id),
            p_instance, clock_timestamp() + make_interval(secs => p_lease), min(o.timestamp), clock_timestamp()
        FROM taken o
        GROUP BY o.telefone
        RETURNING t.*
    )
    SELECT
        asked.phone, CASE WHEN n.id IS NULL THEN 'early' ELSE 'drained' END, 0::double precision, 0::double precision, 0, n.id, n.fired_by,
        n.address, n.contact_name, n.session_id, n.messages, n.text, n.superseded_turns, cardinality(n.message_ids), 0::double precision
    FROM unnest(p_phones) AS asked (phone)
    LEFT JOIN begun n ON n.phone = asked.phone;
END
$$;
