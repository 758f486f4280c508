-- An answer is taken under whatever attempt it comes.
SELECT pg_temp.edit('fila_reply', 't.attempt <> coalesce(p_attempt, t.attempt)', 'false');
SELECT pg_temp.edit('fila_reply', 't.state NOT IN (''running'', ''retrying'', ''unknown'') OR t.stage <> ''agent''', 'false');
SELECT pg_temp.edit('fila_reply', 'INSERT INTO deliveries', 'DELETE FROM deliveries d WHERE d.turn_id = p_turn; INSERT INTO deliveries');
