-- What operators read: the handover, the conservation law, and why a conversation stands where it stands.

-- +goose Up

-- An accepted message that is in no fate: neither waiting, nor in a turn, nor ignored with a reason. Always empty.
CREATE VIEW fila_lost AS
SELECT r.project, r.id, r.message_id, r.phone, r.received_at
FROM receipts r
WHERE r.status = 'queued'
    AND NOT EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = r.project AND q.telefone = r.phone AND q.id = r.id)
    -- What was superseded is in a later turn, or waits for it.
    AND NOT EXISTS (
        SELECT FROM turns t
        WHERE t.project = r.project AND t.phone = r.phone AND r.id = ANY (t.message_ids) AND t.state <> 'superseded'
    );

-- One row a project: what a shift hands over to the next.
CREATE VIEW fila_overview AS
SELECT
    p.name AS project,
    coalesce(q.waiting, 0) AS waiting,
    coalesce(q.conversations, 0) AS waiting_conversations,
    round(extract(epoch FROM clock_timestamp() - q.oldest)::numeric, 3)::double precision AS oldest_wait_seconds,
    coalesce(t.active, 0) AS active_turns,
    coalesce(t.retrying, 0) AS retrying,
    coalesce(t.unknown, 0) AS unknown,
    coalesce(c.suspended, 0) AS suspended,
    coalesce(c.suspended_by_dead, 0) AS suspended_by_dead,
    coalesce(c.human, 0) AS human,
    (SELECT count(*) FROM turns d WHERE d.project = p.name AND d.dead) AS dead,
    lateness.p99_seconds AS lateness_p99_seconds
FROM projects p
LEFT JOIN (
    SELECT m.projeto, count(*) AS waiting, count(DISTINCT m.telefone) AS conversations, min(m.timestamp) AS oldest
    FROM fila_mensagens m
    GROUP BY m.projeto
) q ON q.projeto = p.name
LEFT JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE o.state IN ('running', 'replied', 'sending')) AS active,
        count(*) FILTER (WHERE o.state = 'retrying') AS retrying,
        count(*) FILTER (WHERE o.state = 'unknown') AS unknown
    FROM turns o
    WHERE o.project = p.name AND o.open
) t ON true
LEFT JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE h.mode = 'suspended') AS suspended,
        count(*) FILTER (WHERE h.mode = 'suspended' AND h.suspended_by IS NOT NULL) AS suspended_by_dead,
        count(*) FILTER (WHERE fila_mode(h.mode, h.until) = 'human') AS human
    FROM conversations h
    WHERE h.project = p.name AND h.mode <> 'agent'
) c ON true
LEFT JOIN LATERAL (
    -- Of the last thousand turns, so that it costs the same whatever the age of the ledger. A range and not an equation, because the
    -- order would then be that of the primary key alone, and a project without turns would have all of it read.
    SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM l.drained_at - l.due_at))::double precision AS p99_seconds
    FROM (
        SELECT x.drained_at, x.due_at FROM turns x
        WHERE x.project >= p.name AND x.project <= p.name
        ORDER BY x.project DESC, x.id DESC
        LIMIT 1000
    ) l
) lateness ON true;

-- The safety net of an instance, one round trip: what another process asked for, where another program inserted
-- rows, where turns have nobody, and which bursts are overdue although no timer may stand for them. p_cursors
-- holds, for each project, the phone after which its page of the queue begins; `page` rows say how far it came.
--
-- JIT is off: with many partitions the estimated cost passes its threshold, and compiling takes a second.
-- +goose StatementBegin
CREATE FUNCTION fila_sweep(p_projects text[], p_cursors text[], p_page integer)
RETURNS TABLE (kind text, project text, phone text, found integer)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH wanted AS MATERIALIZED (
        SELECT * FROM unnest(p_projects, p_cursors) AS w (project, after)
    ), wakeup AS (
        DELETE FROM wakeups w
        USING (
            SELECT k.project, k.phone FROM wakeups k
            WHERE k.project = ANY (p_projects)
            FOR UPDATE SKIP LOCKED
        ) taken
        WHERE w.project = taken.project AND w.phone = taken.phone
        RETURNING w.project, w.phone
    ), page AS MATERIALIZED (
        SELECT w.project, p.telefone, p.timestamp
        FROM wanted w
        CROSS JOIN LATERAL (
            SELECT q.telefone, q.timestamp
            FROM fila_mensagens q
            WHERE q.projeto = w.project AND q.telefone > w.after
            ORDER BY q.telefone, q.id
            LIMIT p_page
        ) p
    )
    SELECT 'wakeup' AS kind, u.project, u.phone, 0 AS rows
    FROM wakeup u
    UNION ALL
    SELECT 'foreign', w.project, '', 0
    FROM wanted w
    WHERE EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = w.project AND NOT q.registered)
    UNION ALL
    SELECT 'turn', w.project, '', 0
    FROM wanted w
    WHERE EXISTS (
        SELECT FROM turns t
        JOIN conversations c ON c.project = t.project AND c.phone = t.phone
        WHERE t.project = w.project AND t.open AND fila_claim_reason(t) IS NOT NULL AND c.mode <> 'suspended'
    )
    UNION ALL
    -- Looked up one by one, by whole keys: a plan that was made while the tables were small would read all conversations of the
    -- project for each of these.
    SELECT 'overdue', d.project, d.telefone, 0
    FROM (
        SELECT g.project, g.telefone
        FROM page g
        JOIN projects p ON p.name = g.project
        GROUP BY g.project, g.telefone
        HAVING max(g.timestamp) < clock_timestamp() - max(p.debounce) OR min(g.timestamp) < clock_timestamp() - max(p.max_wait)
    ) d
    CROSS JOIN LATERAL (
        SELECT fila_mode(c.mode, c.until) AS mode FROM conversations c WHERE c.project = d.project AND c.phone = d.telefone OFFSET 0
    ) v
    LEFT JOIN LATERAL (
        SELECT true AS open FROM turns t WHERE t.project = d.project AND t.phone = d.telefone AND t.open OFFSET 0
    ) o ON true
    WHERE v.mode = 'agent' AND o.open IS NULL
    UNION ALL
    SELECT 'page', g.project, max(g.telefone), count(*)::integer
    FROM page g
    GROUP BY g.project;
END
$$;
-- +goose StatementEnd

-- Why this conversation stands where it stands, a line a fact, for people.
-- +goose StatementBegin
CREATE FUNCTION fila_explain(p_project text, p_phone text) RETURNS TABLE (explanation text)
LANGUAGE plpgsql AS $$
DECLARE
    p projects;
    c conversations;
    t turns;
    waits record;
    key text;
BEGIN
    SELECT * INTO p FROM projects WHERE name = p_project;
    IF NOT FOUND THEN
        PERFORM fila_refuse('FI404', 'project ' || p_project || ' is not known here');
    END IF;
    key := fila_key(p_phone, p.country);
    SELECT * INTO c FROM conversations v WHERE v.project = p_project AND v.phone = key;
    IF NOT FOUND AND EXISTS (
        SELECT FROM fila_mensagens q WHERE q.projeto = p_project AND NOT q.registered AND fila_key(q.telefone, p.country) = key
    ) THEN
        explanation := 'Another program inserted a message of ' || key || '; the next sweep takes it up.';
        RETURN NEXT;
        RETURN;
    ELSIF NOT FOUND THEN
        explanation := 'No conversation ' || key || ' in ' || p_project || ': nothing was ever accepted from it, or it was erased.';
        RETURN NEXT;
        RETURN;
    END IF;
    explanation := CASE fila_mode(c.mode, c.until)
        WHEN 'human' THEN 'mode human until ' || fila_time(c.until) || ': a person has the conversation; release it to give it back'
        WHEN 'suspended' THEN 'mode suspended' || coalesce(', since turn ' || c.suspended_by || ' died', '') || ': messages wait until somebody resumes it'
        ELSE 'mode agent: the agent answers'
    END;
    RETURN NEXT;

    SELECT * INTO waits FROM fila_burst(p, c, key);
    explanation := CASE
        WHEN waits.number = 0 THEN 'nothing waits'
        ELSE waits.number || ' message(s) wait since ' || fila_time(waits.first_at) || ', the last came at ' || fila_time(waits.last_at)
    END;
    IF waits.number > 0 AND fila_mode(c.mode, c.until) = 'agent' THEN
        explanation := explanation || '; they are due at ' || fila_time(waits.due_at) || ' (' || waits.due_by || ', the window is '
            || extract(epoch FROM p.debounce)::double precision || ' s)';
    END IF;
    RETURN NEXT;

    SELECT * INTO t FROM turns o WHERE o.project = p_project AND o.phone = key AND o.open;
    IF FOUND THEN
        explanation := 'turn ' || t.id || ' is open (' || t.state || ', attempt ' || t.attempt || ') since ' || fila_time(t.drained_at)
            || CASE
                WHEN t.reply_until IS NOT NULL THEN '; the agent said it would call back until ' || fila_time(t.reply_until)
                WHEN t.state = 'retrying' THEN '; it is tried again at ' || fila_time(t.next_attempt_at)
                WHEN t.state = 'unknown' THEN '; whether its effect happened is unknown: resolve it'
                WHEN t.state = 'replied' AND t.lease_until IS NULL THEN '; its reply is kept'
                    || CASE fila_mode(c.mode, c.until) WHEN 'suspended' THEN ' until somebody resumes the conversation' ELSE ', the next sweep sends it' END
                WHEN t.lease_until < clock_timestamp() THEN '; its instance ' || t.instance || ' is gone, the next sweep takes it over'
                ELSE '; instance ' || coalesce(t.instance, '(none)') || ' has it until ' || coalesce(fila_time(t.lease_until), '(no lease)')
            END
            || CASE WHEN t.silenced THEN '; a person took the conversation over while it was open, so nothing more of it is sent' ELSE '' END
            || CASE WHEN t.reason IS NULL THEN '' ELSE '; last trouble: ' || t.reason END
            || '; no later message is drained before it ends';
        RETURN NEXT;
    END IF;

    FOR t IN SELECT * FROM turns o WHERE o.project = p_project AND o.phone = key AND NOT o.open ORDER BY o.id DESC LIMIT 3 LOOP
        explanation := 'turn ' || t.id || ' ended ' || t.state || ' at ' || fila_time(t.finished_at) || coalesce(' (' || t.reason || ')', '');
        RETURN NEXT;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION fila_explain, fila_sweep;
DROP VIEW fila_overview, fila_lost;
