-- The push knows no receipt: whatever comes again is new again.
SELECT pg_temp.edit('fila_push', 'm.message_id IS NULL OR (m.copy = 1 AND r.id IS NULL AND e.project IS NULL) AS is_new', 'true AS is_new');
SELECT pg_temp.edit('fila_push', 'ON CONFLICT (project, message_id) DO NOTHING', '');
DROP INDEX receipts_message;
