-- A ledger of :turns turns of two messages and one part each, of five projects and as many conversations as a fifth of the turns, over the
-- last month, with a few dead, unknown, waiting and suspended. The order of statements keeps the law of conservation.
SELECT fila_open_project(name, 'BR', 10, 50, 100, ' ', 'queue', 3, 'suspend', true, 3600, 'ignore', '', false)
FROM unnest(ARRAY['one', 'two', 'three', 'four', 'five', 'without_turns']) AS p (name);

INSERT INTO conversations (project, phone, address)
SELECT (ARRAY['one', 'two', 'three', 'four', 'five'])[1 + n % 5], '55319' || 80000000 + n, '55319' || 80000000 + n
FROM generate_series(0, :turns / 5 - 1) n;

INSERT INTO turns (
    project, phone, state, fired_by, address, session_id, message_ids, messages, text, reply, first_at, due_at, drained_at, replied_at, finished_at, reason
)
SELECT
    c.project, c.phone,
    CASE n % 5000 WHEN 7 THEN 'dead' ELSE 'done' END,
    CASE n % 10 WHEN 0 THEN 'ceiling' ELSE 'quiet' END, c.phone, c.project || ':' || c.phone, ARRAY[2 * n + 1, 2 * n + 2],
    jsonb_build_array(jsonb_build_object('id', 'wamid.' || md5(n::text), 'text', 'oi'), jsonb_build_object('id', 'wamid.' || md5((-n)::text), 'text', 'queria saber sobre ultrassom')),
    'oi queria saber sobre ultrassom', 'Fazemos, sim. Qual o dia que prefere?',
    t.at, t.at + interval '12 s', t.at + interval '12.01 s', t.at + interval '15 s', t.at + interval '16 s', CASE n % 5000 WHEN 7 THEN 'answered 400' END
FROM generate_series(0, :turns - 1) n
CROSS JOIN LATERAL (SELECT clock_timestamp() - (:turns - n) * (interval '30 days' / :turns) AS at) t
CROSS JOIN LATERAL (
    SELECT (ARRAY['one', 'two', 'three', 'four', 'five'])[1 + (n::bigint * 7919 % (:turns / 5)) % 5] AS project, '55319' || 80000000 + n::bigint * 7919 % (:turns / 5) AS phone
) c;

INSERT INTO receipts (id, project, message_id, phone, status, received_at)
SELECT m.id, t.project, 'wamid.' || md5(m.id::text), t.phone, 'queued', t.first_at + (m.place - 1) * interval '2 s'
FROM turns t
CROSS JOIN LATERAL unnest(t.message_ids) WITH ORDINALITY AS m (id, place)
ORDER BY m.id;

INSERT INTO deliveries (turn_id, part, project, text, state, attempts, provider_id, intended_at, sent_at)
SELECT t.id, 1, t.project, t.reply, 'sent', 1, 'wamid.sent.' || md5(t.id::text), t.replied_at, t.finished_at
FROM turns t;

INSERT INTO audit (at, project, phone, turn_id, action, actor, reason)
SELECT t.finished_at, t.project, t.phone, t.id, 'resolve', 'ana', 'looked at the chat' FROM turns t WHERE t.id % 50 = 0;

SELECT setval('fila_mensagens_id_seq', 2 * :turns + 10);
SELECT fila_push(
    array_agg(c.project), array_agg('wamid.new.' || c.phone), array_agg(c.phone), array_agg(c.phone), array_agg('oi'::text), array_agg('text'::text),
    array_agg(NULL::text), array_agg(NULL::text), array_agg(NULL::text), array_agg(NULL::timestamptz), array_agg(NULL::text), array_agg(NULL::text))
FROM (SELECT * FROM conversations ORDER BY phone LIMIT 1000) c;
SELECT fila_suspend(c.project, c.phone, 'ana', 'asked for it') FROM (SELECT * FROM conversations ORDER BY phone LIMIT 100) c;

ANALYZE;
