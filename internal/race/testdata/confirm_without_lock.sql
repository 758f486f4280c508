-- The confirmation does not wait for whoever is deciding about the conversation.
SELECT pg_temp.edit('fila_lock_turn', 'PERFORM FROM conversations c WHERE c.project = t.project AND c.phone = t.phone FOR NO KEY UPDATE;', '');
