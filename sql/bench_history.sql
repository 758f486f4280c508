-- $1 messages of the past, in answered turns of four, with their receipts and parts.
WITH past AS MATERIALIZED (
    SELECT nextval('fila_mensagens_id_seq') AS id, 1 + n / 4 AS turn, '55317' || 10000000 + n / 4 % 100000 AS phone FROM generate_series(0, $1::integer - 1) n
), receipt AS (
    INSERT INTO receipts (id, project, message_id, phone, status) SELECT p.id, 'parked', 'wamid.HBgNNTUzMTk5OTk5MDAwMRUCABIYF' || p.id, p.phone, 'queued' FROM past p
), conversation AS (
    INSERT INTO conversations (project, phone, address) SELECT DISTINCT 'parked', p.phone, p.phone FROM past p
), part AS (
    INSERT INTO deliveries (turn_id, part, project, text, state, attempts, provider_id, intended_at, sent_at)
    SELECT DISTINCT p.turn, 1, 'parked', 'Fazemos, sim.', 'sent', 1, 'wamid.sent.' || p.turn, now(), now() FROM past p
)
INSERT INTO turns (
    id, project, phone, fired_by, address, session_id, message_ids, messages, text, first_at, due_at, state, stage, reply, replied_at, finished_at
) OVERRIDING SYSTEM VALUE
SELECT
    p.turn, 'parked', p.phone, 'quiet', p.phone, 'parked:' || p.phone, array_agg(p.id ORDER BY p.id),
    jsonb_agg(jsonb_build_object('id', 'wamid.HBgNNTUzMTk5OTk5MDAwMRUCABIYF' || p.id, 'text', 'queria saber sobre ultrassom', 'kind', 'text', 'media', NULL,
        'received_at', fila_time(now()), 'sent_at', NULL, 'metadata', '{}'::jsonb)),
    'oi', now(), now(), 'done', 'delivery', 'Fazemos, sim.', now(), now()
FROM past p
GROUP BY p.turn, p.phone;
