-- One patient's story in the order of time: what arrived and what became of it, turns, parts, and who intervened. The number with
-- its country code: psql -v project=clinfeto -v phone=5531999990001 -f story.sql
-- With -v text=on also what was written and answered, for those who may read it.
\if :{?phone}
\else
    \set phone ''
\endif
\if :{?project}
\else
    \set project ''
\endif
\if :{?text}
    \set written q.mensagem
    \set asked t.text
    \set answered t.reply
    \set sent d.text
\else
    \set written NULL
    \set asked NULL
    \set answered NULL
    \set sent NULL
\endif
WITH patient AS (
    SELECT p.name AS project, fila_key(:'phone', p.country) AS phone
    FROM projects p
    WHERE :'phone' <> '' AND (:'project' = '' OR p.name = :'project')
), story AS (
    SELECT
        r.received_at AS at, r.project, 'message ' || r.id AS what,
        concat_ws(': ', CASE WHEN q.id IS NULL THEN r.status ELSE 'waiting' END, r.reason) AS became, :written AS text, 1 AS rank
    FROM patient w
    JOIN receipts r ON r.project = w.project AND r.phone = w.phone
    LEFT JOIN fila_mensagens q ON q.projeto = w.project AND q.telefone = w.phone AND q.id = r.id
    UNION ALL
    SELECT
        t.drained_at, t.project, 'turn ' || t.id || ' began',
        format('%s message(s), fired by %s, due at %s', cardinality(t.message_ids), t.fired_by, fila_time(t.due_at)), :asked, 2
    FROM patient w
    JOIN turns t ON t.project = w.project AND t.phone = w.phone
    UNION ALL
    SELECT t.replied_at, t.project, 'turn ' || t.id || ' was replied to', CASE WHEN t.handoff THEN 'hands the conversation to a person' END, :answered, 3
    FROM patient w
    JOIN turns t ON t.project = w.project AND t.phone = w.phone
    WHERE t.replied_at IS NOT NULL
    UNION ALL
    SELECT (e ->> 'at')::timestamptz, t.project, 'turn ' || t.id || ' had trouble', format('%s, attempt %s: %s', e ->> 'stage', e ->> 'attempt', e ->> 'error'), NULL, 4
    FROM patient w
    JOIN turns t ON t.project = w.project AND t.phone = w.phone
    CROSS JOIN LATERAL jsonb_array_elements(t.errors) AS e
    UNION ALL
    SELECT coalesce(d.sent_at, d.intended_at), t.project, format('turn %s, part %s', t.id, d.part), format('%s after %s attempt(s)', d.state, d.attempts), :sent, 5
    FROM patient w
    JOIN turns t ON t.project = w.project AND t.phone = w.phone
    JOIN deliveries d ON d.turn_id = t.id
    UNION ALL
    SELECT t.finished_at, t.project, 'turn ' || t.id || ' ended', concat_ws(': ', t.state, t.reason) || coalesce(', superseded by turn ' || t.superseded_by, ''), NULL, 6
    FROM patient w
    JOIN turns t ON t.project = w.project AND t.phone = w.phone
    WHERE NOT t.open
    UNION ALL
    SELECT a.at, a.project, concat_ws(' ', a.action, 'turn ' || a.turn_id), concat_ws(': ', 'by ' || a.actor, a.reason), NULL, 7
    FROM patient w
    JOIN audit a ON a.project = w.project AND a.phone = w.phone
)
SELECT s.at, s.project, s.what, s.became, s.text
FROM story s
ORDER BY s.at, s.rank, s.what
LIMIT 2000;
