-- How long rows are kept. What is too old goes in pages by key, each its own transaction. Its rows are locked first, without
-- waiting for anyone, and deleted in a later statement: one that waited for a lock would judge other tables by the
-- snapshot from before the wait, and delete a conversation that was written to a moment ago. Texts, names and phones go
-- with their rows. One instance at a time: a page answers with null rows where another one is at work.

-- +goose Up

SET LOCAL lock_timeout = '5s';

CREATE INDEX erased_receipts_age ON erased_receipts (project, erased_at);

-- +goose StatementBegin
CREATE FUNCTION fila_forgetting() RETURNS boolean
LANGUAGE sql AS $$
    SELECT pg_try_advisory_xact_lock(hashtextextended('fila_forget', 7302))
$$;
-- +goose StatementEnd

-- One page of a project's turns with their parts: the ended ones by their end or, with p_dead, the dead by their first message.
-- The page begins behind turn p_after. Numbers follow time, so behind a page whose turns are all too young nothing is to be
-- looked for: `more` is false then. A receipt that outlives its turn becomes `settled`: its message is accounted for.
--
-- A range of the index and not an equation: ordered by the number alone the primary key might be walked, through the turns of all
-- other projects.
-- +goose StatementBegin
CREATE FUNCTION fila_forget_turns(p_project text, p_dead boolean, p_after bigint, p_page integer, OUT gone bigint, OUT last bigint, OUT more boolean)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    cut timestamptz;
    old bigint[];
    held text[];
    forgotten bigint[];
    accounted bigint[];
BEGIN
    more := false;
    IF NOT fila_forgetting() THEN
        RETURN;
    END IF;
    gone := 0;
    SELECT clock_timestamp() - CASE WHEN p_dead THEN p.keep_dead ELSE p.keep_turns END INTO cut FROM projects p WHERE p.name = p_project;
    IF cut IS NULL THEN
        RETURN;
    ELSIF p_dead THEN
        SELECT array_agg(d.id) FILTER (WHERE d.first_at < cut), max(d.id), count(*) = p_page AND min(d.first_at) < cut
        INTO old, last, more
        FROM (
            SELECT t.id, t.first_at FROM turns t
            WHERE t.dead AND (t.project, t.id) > (p_project, p_after) AND t.project <= p_project
            ORDER BY t.project, t.id
            LIMIT p_page
        ) d;
    ELSE
        SELECT array_agg(e.id) FILTER (WHERE NOT e.open AND NOT e.dead AND e.finished_at < cut), max(e.id), count(*) = p_page AND min(e.drained_at) < cut
        INTO old, last, more
        FROM (
            SELECT t.id, t.open, t.dead, t.drained_at, t.finished_at FROM turns t
            WHERE (t.project, t.id) > (p_project, p_after) AND t.project <= p_project
            ORDER BY t.project, t.id
            LIMIT p_page
        ) e;
    END IF;
    IF old IS NULL THEN
        RETURN;
    END IF;
    held := ARRAY(
        SELECT c.phone
        FROM (SELECT DISTINCT t.phone FROM turns t WHERE t.id = ANY (old) ORDER BY t.phone) o
        CROSS JOIN LATERAL (
            SELECT v.phone FROM conversations v
            WHERE v.project = p_project AND v.phone = o.phone
            FOR NO KEY UPDATE SKIP LOCKED
        ) c
    );
    -- Dead letters may be kept for longer, and a redrive still asks what came after them.
    UPDATE turns d SET answered_later = true
    FROM turns a
    WHERE a.id = ANY (old) AND a.phone = ANY (held) AND a.state = 'done'
        AND d.project = a.project AND d.phone = a.phone AND d.id < a.id AND (d.dead OR d.open) AND NOT d.answered_later;
    WITH deleted AS (
        DELETE FROM turns t
        WHERE t.id = ANY (old) AND t.phone = ANY (held) AND NOT t.open AND t.dead = p_dead
        RETURNING t.id, t.state, t.message_ids
    )
    SELECT array_agg(d.id), count(*), (SELECT array_agg(m.id) FROM deleted s CROSS JOIN LATERAL unnest(s.message_ids) AS m (id) WHERE s.state <> 'superseded')
    INTO forgotten, gone, accounted
    FROM deleted d;
    DELETE FROM deliveries d WHERE d.turn_id = ANY (forgotten);
    UPDATE receipts r SET status = 'settled' WHERE r.id = ANY (accounted) AND r.status = 'queued';
END
$$;
-- +goose StatementEnd

-- One page of receipts, of all projects, behind receipt p_after. A message that still waits, or is in an open turn, keeps its
-- receipt however old it is; so does one that is lost, as evidence.
-- +goose StatementBegin
CREATE FUNCTION fila_forget_receipts(p_after bigint, p_page integer, OUT gone bigint, OUT last bigint, OUT more boolean)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    old bigint[];
BEGIN
    more := false;
    IF NOT fila_forgetting() THEN
        RETURN;
    END IF;
    gone := 0;
    SELECT
        array_agg(r.id) FILTER (WHERE r.received_at < clock_timestamp() - p.keep_receipts), max(r.id),
        count(*) = p_page AND min(r.received_at) < clock_timestamp() - (SELECT min(k.keep_receipts) FROM projects k)
    INTO old, last, more
    FROM (SELECT q.id, q.project, q.received_at FROM receipts q WHERE q.id > p_after ORDER BY q.id LIMIT p_page) r
    LEFT JOIN projects p ON p.name = r.project;
    old := ARRAY(SELECT r.id FROM receipts r WHERE r.id = ANY (old) ORDER BY r.id FOR UPDATE SKIP LOCKED);
    DELETE FROM receipts r
    WHERE r.id = ANY (old) AND (
        r.status <> 'queued'
        OR EXISTS (
            SELECT FROM turns t
            WHERE t.project = r.project AND t.phone = r.phone AND NOT t.open AND t.state <> 'superseded' AND r.id = ANY (t.message_ids)
        )
    );
    GET DIAGNOSTICS gone = ROW_COUNT;
END
$$;
-- +goose StatementEnd

-- One page of what was kept to know the messages of an erased conversation again: as long as a receipt, and never for less than
-- the longest provider repeats.
-- +goose StatementBegin
CREATE FUNCTION fila_forget_erased(p_page integer, OUT gone bigint, OUT more boolean)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    -- Not in the query: a clock that moves from row to row cannot bound an index.
    present timestamptz := clock_timestamp();
    old tid[];
BEGIN
    more := false;
    IF NOT fila_forgetting() THEN
        RETURN;
    END IF;
    gone := 0;
    old := ARRAY(
        SELECT o.spot
        FROM projects p
        CROSS JOIN LATERAL (
            SELECT e.ctid AS spot FROM erased_receipts e
            WHERE e.project = p.name AND e.erased_at < present - greatest(p.keep_receipts, interval '8 days')
            ORDER BY e.erased_at
            LIMIT p_page
            FOR UPDATE SKIP LOCKED
        ) o
        LIMIT p_page
    );
    DELETE FROM hanging_calls c WHERE c.lease_until < present;
    DELETE FROM erased_receipts e WHERE e.ctid = ANY (old);
    GET DIAGNOSTICS gone = ROW_COUNT;
    more := gone = p_page;
END
$$;
-- +goose StatementEnd

-- Whether nothing else of the conversation is kept, and nobody but the agent has it.
-- +goose StatementBegin
CREATE FUNCTION fila_idle(c conversations) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT fila_mode(c.mode, c.until) = 'agent'
        AND NOT EXISTS (SELECT FROM receipts r WHERE r.project = c.project AND r.phone = c.phone)
        AND NOT EXISTS (SELECT FROM turns t WHERE t.project = c.project AND t.phone = c.phone)
        AND NOT EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = c.project AND q.telefone = c.phone)
$$;
-- +goose StatementEnd

-- One page of idle conversations behind this one, in the order of their key.
-- +goose StatementBegin
CREATE FUNCTION fila_forget_conversations(
    p_project text, p_phone text, p_page integer, OUT gone bigint, OUT last_project text, OUT last_phone text, OUT more boolean
)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    page text[][];
    idle tid[];
BEGIN
    more := false;
    IF NOT fila_forgetting() THEN
        RETURN;
    END IF;
    gone := 0;
    page := ARRAY(
        SELECT ARRAY[c.project, c.phone] FROM conversations c
        WHERE (c.project, c.phone) > (p_project, p_phone)
        ORDER BY c.project, c.phone
        LIMIT p_page
    );
    IF cardinality(page) = 0 THEN
        RETURN;
    END IF;
    last_project := page[array_upper(page, 1)][1];
    last_phone := page[array_upper(page, 1)][2];
    more := array_upper(page, 1) = p_page;
    idle := ARRAY(
        SELECT c.ctid FROM conversations c
        WHERE (c.project, c.phone) > (p_project, p_phone) AND (c.project, c.phone) <= (last_project, last_phone) AND fila_idle(c)
        ORDER BY c.project, c.phone
        FOR UPDATE SKIP LOCKED
    );
    -- The rows are ours now: what was written before is seen, and what comes waits for our end and makes a new row.
    DELETE FROM conversations c WHERE c.ctid = ANY (idle) AND fila_idle(c);
    GET DIAGNOSTICS gone = ROW_COUNT;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION fila_forget_conversations, fila_idle, fila_forget_erased, fila_forget_receipts, fila_forget_turns, fila_forgetting;
DROP INDEX erased_receipts_age;
