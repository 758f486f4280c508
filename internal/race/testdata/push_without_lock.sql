-- The push does not lock the conversation: a number may be drawn long before it is committed.
SELECT pg_temp.edit('fila_push', 'DO UPDATE SET
            address = excluded.address,
            contact_name = coalesce(excluded.contact_name, c.contact_name),
            session_id = coalesce(excluded.session_id, c.session_id)
', 'DO NOTHING
');
