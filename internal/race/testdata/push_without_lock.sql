-- The push does not lock the conversation: a number may be drawn long before it is committed.
SELECT pg_temp.edit('fila_push', 'DO UPDATE SET
            address = excluded.address,
            contact_name = coalesce(excluded.contact_name, c.contact_name),
            session_id = coalesce(excluded.session_id, c.session_id)
        -- Locked in any case. One that is not returned is the agent''s, and nothing about it has changed.
        WHERE c.address <> excluded.address OR c.contact_name IS DISTINCT FROM coalesce(excluded.contact_name, c.contact_name)
            OR c.session_id IS DISTINCT FROM coalesce(excluded.session_id, c.session_id) OR fila_mode(c.mode, c.until) <> ''agent''
', 'DO NOTHING
');
