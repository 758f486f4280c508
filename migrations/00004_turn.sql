-- A turn from its drain to its end. Whatever decides about a conversation locks it first, looks at it and its turn with a snapshot taken
-- after the lock, and writes only under the attempt that it was given (the fence). Leases, and what came of a last word, decide nothing.
-- Whoever holds a row for longer than the lock_timeout, in a session that was left open, costs that conversation
-- a repetition, and nobody else a connection.

-- +goose Up

-- A moment as RFC 3339 in UTC, for what is kept as JSON.
-- +goose StatementBegin
CREATE FUNCTION fila_time(at timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fila_wake(p_project text, p_phone text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO wakeups (project, phone) VALUES (p_project, p_phone)
    ON CONFLICT (project, phone) DO UPDATE SET asked_at = excluded.asked_at
$$;
-- +goose StatementEnd

-- When a burst falls due, and by what. first_at and last_at are of its newest part: what came back from a superseded turn
-- waits for the newer text. full_at is when it became as long as a turn may be. Plain enough to be inlined where it is called.
-- +goose StatementBegin
CREATE FUNCTION fila_due(p projects, c conversations, first_at timestamptz, last_at timestamptz, full_at timestamptz)
RETURNS TABLE (at timestamptz, by text)
LANGUAGE sql STABLE AS $$
    SELECT v.at, v.by
    FROM (
        VALUES
            (greatest(c.due_now_at, first_at), c.due_now_by, 1, c.due_now_at IS NOT NULL),
            (greatest(last_at, c.typing_at) + p.debounce, 'quiet', 2, true),
            (first_at + p.max_wait, 'ceiling', 3, p.debounce > interval '0'),
            (full_at, 'count', 4, full_at IS NOT NULL)
    ) AS v (at, by, rank, applies)
    WHERE v.applies
    -- Who asked for it now is named, although the window may have been over before.
    ORDER BY v.rank <> 1, v.at, v.rank
    LIMIT 1
$$;
-- +goose StatementEnd

-- What waits in one conversation, for those who look on. The drain reads many conversations at once by the same rule.
-- +goose StatementBegin
CREATE FUNCTION fila_burst(p projects, c conversations, phone text)
RETURNS TABLE (number bigint, first_at timestamptz, last_at timestamptz, due_at timestamptz, due_by text)
LANGUAGE sql STABLE AS $$
    SELECT w.number, w.first_at, w.last_at, due.at, due.by
    FROM (
        SELECT
            count(*) AS number,
            min(q.timestamp) AS first_at,
            max(q.timestamp) AS last_at,
            coalesce(min(q.timestamp) FILTER (WHERE NOT q.superseded), min(q.timestamp)) AS fresh_first_at,
            coalesce(max(q.timestamp) FILTER (WHERE NOT q.superseded), min(q.timestamp)) AS fresh_last_at,
            max(q.timestamp) FILTER (WHERE NOT q.superseded AND q.place = p.max_messages) AS full_at
        FROM (
            SELECT m.timestamp, m.superseded, row_number() OVER (PARTITION BY m.superseded ORDER BY m.id) AS place
            FROM fila_mensagens m
            WHERE m.projeto = p.name AND m.telefone = fila_burst.phone
        ) q
    ) w
    LEFT JOIN LATERAL fila_due(p, c, w.fresh_first_at, w.fresh_last_at, w.full_at) due ON w.number > 0
$$;
-- +goose StatementEnd

-- Bursts that are due become turns; for all others it says why not, and how long to wait: empty, early, open (a
-- turn is), hanging_up (a discarded turn's call still runs), interrupt (the open turn may be), human, suspended, busy. Many conversations of one project in a call. Never waits for a lock: whoever holds the conversation is deciding about it.
--
-- The locks are taken in one statement and the rows in a later one: a statement that waits for a lock goes on
-- with the snapshot from before the wait, and would drain a message that arrived a moment ago. No ON CONFLICT
-- behind the DELETE: a conflict must abort the call, or the deleted messages would be gone.
-- +goose StatementBegin
CREATE FUNCTION fila_drain(p_project text, p_phones text[], p_instance text, p_lease double precision)
RETURNS TABLE (
    phone text, verdict text, wait_seconds double precision, first_seconds double precision, waiting integer, turn_id bigint, fired_by text, address text, contact_name text,
    session_id text, messages jsonb, body text, superseded_turns bigint[], message_count integer,
    late_seconds double precision
)
LANGUAGE plpgsql SET lock_timeout = '300ms' SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    -- More text than this is more than an agent can take in one call; the rest makes the next turn.
    max_bytes constant bigint := 4 << 20;
    p projects;
    locked text[];
BEGIN
    IF EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = p_project AND NOT q.registered) THEN
        PERFORM fila_adopt(p_project, p_phones);
    END IF;
    SELECT * INTO STRICT p FROM projects WHERE name = p_project;
    -- Each row is looked up by itself, below as well: a plan that was made while the tables were small must not read
    -- a project's every conversation.
    locked := ARRAY(
        SELECT c.phone
        FROM (SELECT DISTINCT a.phone FROM unnest(p_phones) AS a (phone) ORDER BY a.phone) asked
        CROSS JOIN LATERAL (
            SELECT v.phone FROM conversations v
            WHERE v.project = p_project AND v.phone = asked.phone
                AND pg_try_advisory_xact_lock(hashtextextended('conversation:' || p_project || ':' || v.phone, 7302))
            FOR NO KEY UPDATE SKIP LOCKED
        ) c
    );

    RETURN QUERY
    WITH judged AS MATERIALIZED (
        SELECT
            l.phone, (c.it).address, (c.it).contact_name, (c.it).session_id, (c.it).due_now_at, (c.it).superseded_turns,
            c.spot, b.more, b.waiting, b.first_at, b.taken, due.at, due.by, o.id AS open_turn,
            CASE
                WHEN b.waiting IS NULL THEN 'empty'
                WHEN o.overtaken AND c.mode = 'agent' THEN CASE WHEN due.at > clock_timestamp() THEN 'early' ELSE 'interrupt' END
                WHEN o.id IS NOT NULL THEN 'open'
                WHEN h.lease_until > clock_timestamp() THEN 'hanging_up'
                WHEN c.mode <> 'agent' THEN c.mode
                WHEN due.at > clock_timestamp() THEN 'early'
                ELSE 'due'
            END AS verdict,
            CASE
                WHEN c.mode = 'human' THEN (c.it).until
                WHEN h.lease_until > due.at THEN h.lease_until
                ELSE due.at
            END AS look_again_at
        FROM unnest(locked) AS l (phone)
        CROSS JOIN LATERAL (
            SELECT v AS it, v.ctid AS spot, fila_mode(v.mode, v.until) AS mode
            FROM conversations v
            WHERE v.project = p_project AND v.phone = l.phone
            OFFSET 0
        ) c
        LEFT JOIN LATERAL (
            SELECT
                coalesce(min(w.timestamp) FILTER (WHERE NOT w.superseded), min(w.timestamp)) AS first_at,
                coalesce(max(w.timestamp) FILTER (WHERE NOT w.superseded), min(w.timestamp)) AS last_at,
                max(w.timestamp) FILTER (WHERE NOT w.superseded AND w.place = p.max_messages) AS full_at,
                bool_or(NOT w.fits) AS more,
                count(*)::integer AS waiting,
                array_agg(w.spot ORDER BY w.id) FILTER (WHERE w.fits) AS taken
            FROM (
                SELECT
                    r.id, r.timestamp, r.superseded, r.spot, r.place,
                    r.superseded OR r.place = 1 OR (r.place <= p.max_messages AND r.bytes <= max_bytes) AS fits
                FROM (
                    SELECT
                        q.id, q.timestamp, q.superseded, q.ctid AS spot,
                        row_number() OVER s AS place, sum(octet_length(q.mensagem)) OVER s AS bytes
                    FROM fila_mensagens q
                    WHERE q.projeto = p_project AND q.telefone = l.phone AND q.registered
                    WINDOW s AS (PARTITION BY q.superseded ORDER BY q.id)
                ) r
            ) w
            HAVING count(w.id) > 0
        ) b ON true
        LEFT JOIN LATERAL (
            SELECT t.id, p.during_turn = 'interrupt' AND t.state IN ('running', 'retrying') AND fila_overtaken(t) AS overtaken
            FROM turns t
            WHERE t.project = p_project AND t.phone = l.phone AND t.open
            OFFSET 0
        ) o ON true
        LEFT JOIN LATERAL (
            SELECT max(k.lease_until) AS lease_until
            FROM hanging_calls k
            WHERE k.project = p_project AND k.digest = sha256(convert_to(l.phone, 'UTF8'))
        ) h ON true
        LEFT JOIN LATERAL fila_due(p, c.it, b.first_at, b.last_at, b.full_at) due ON b.waiting IS NOT NULL
    ), taken AS (
        -- By the place of the row, which cannot move while the conversation is locked.
        DELETE FROM fila_mensagens q
        USING (SELECT j.phone, unnest(j.taken) AS spot FROM judged j WHERE j.verdict = 'due') d
        WHERE q.projeto = p_project AND q.ctid = d.spot
        RETURNING q.*
    ), ordered AS (
        -- received_at strictly increases within a turn, whatever the clock did.
        SELECT
            s.*,
            max(s.timestamp - s.place * interval '1 microsecond')
                OVER (PARTITION BY s.telefone ORDER BY s.id) + s.place * interval '1 microsecond' AS received_at
        FROM (SELECT t.*, row_number() OVER (PARTITION BY t.telefone ORDER BY t.id) AS place FROM taken t) s
    ), begun AS (
        INSERT INTO turns AS t (
            project, phone, state, fired_by, address, contact_name, session_id, message_ids, messages, text, superseded_turns,
            instance, lease_until, first_at, due_at
        )
        SELECT
            p_project, j.phone, 'running', j.by, j.address, j.contact_name, coalesce(j.session_id, p_project || ':' || j.phone),
            array_agg(o.id ORDER BY o.id),
            jsonb_agg(
                jsonb_build_object(
                    'id', nullif(o.id_mensagem, ''), 'text', o.mensagem, 'kind', o.kind, 'media', o.media,
                    'received_at', fila_time(o.received_at), 'sent_at', fila_time(o.sent_at),
                    'metadata', coalesce(o.metadata, '{}')
                ) ORDER BY o.id
            ),
            coalesce(string_agg(o.mensagem, p.joiner ORDER BY o.id) FILTER (WHERE o.mensagem <> ''), ''),
            j.superseded_turns, p_instance, clock_timestamp() + make_interval(secs => p_lease),
            j.first_at, j.at
        FROM ordered o
        JOIN judged j ON j.phone = o.telefone
        GROUP BY j.phone, j.by, j.address, j.contact_name, j.session_id, j.superseded_turns, j.first_at, j.at
        RETURNING t.*
    ), settled AS (
        UPDATE conversations c SET
            due_now_at = CASE WHEN j.more THEN clock_timestamp() END,
            due_now_by = CASE WHEN j.more THEN 'count' END,
            superseded_turns = '{}'
        FROM judged j
        WHERE j.verdict = 'due' AND c.ctid = j.spot
            AND (j.more OR j.due_now_at IS NOT NULL OR j.superseded_turns <> '{}')
    ), superseding AS (
        UPDATE turns t SET superseded_by = n.id
        FROM begun n
        WHERE n.superseded_turns <> '{}' AND t.id = ANY (n.superseded_turns) AND t.superseded_by IS NULL
    )
    SELECT
        asked.phone,
        CASE
            WHEN n.id IS NOT NULL THEN 'drained'
            WHEN j.phone IS NOT NULL THEN j.verdict
            WHEN EXISTS (SELECT FROM conversations c WHERE c.project = p_project AND c.phone = asked.phone) THEN 'busy'
            ELSE 'empty'
        END,
        greatest(extract(epoch FROM j.look_again_at - clock_timestamp())::double precision, 0),
        extract(epoch FROM clock_timestamp() - j.first_at)::double precision,
        coalesce(j.waiting, 0),
        coalesce(n.id, CASE j.verdict WHEN 'interrupt' THEN j.open_turn END), n.fired_by, n.address, n.contact_name, n.session_id, n.messages, n.text, n.superseded_turns,
        cardinality(n.message_ids), extract(epoch FROM clock_timestamp() - n.due_at)::double precision
    FROM unnest(p_phones) AS asked (phone)
    LEFT JOIN judged j ON j.phone = asked.phone
    LEFT JOIN begun n ON n.phone = asked.phone;
END
$$;
-- +goose StatementEnd

-- Why a turn may be claimed now: retry, abandoned, handed_back, held, overdue, reconcile; null where it may not. Plain enough to be inlined.
-- +goose StatementBegin
CREATE FUNCTION fila_claim_reason(t turns) RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT CASE
        WHEN t.state = 'retrying' AND t.next_attempt_at <= clock_timestamp() THEN 'retry'
        -- A kept reply that somebody has taken already is his until now: he may come back and send it.
        WHEN t.state IN ('running', 'sending', 'replied') AND t.lease_until = '-infinity' THEN 'handed_back'
        WHEN t.state IN ('running', 'sending', 'replied') AND t.lease_until < clock_timestamp() THEN 'abandoned'
        WHEN t.state = 'running' AND t.reply_until < clock_timestamp() THEN 'overdue'
        WHEN t.state = 'replied' AND t.lease_until IS NULL THEN 'held'
        WHEN t.state = 'unknown' AND t.next_attempt_at <= clock_timestamp() AND coalesce(t.lease_until < clock_timestamp(), true) THEN 'reconcile'
    END
$$;
-- +goose StatementEnd

-- Turns that nobody works on and that may go on: a retry whose time has come, a lease that ran out, a reply
-- that was kept while the conversation was suspended, an agent that did not call back in time, an unknown
-- outcome to be asked about. Takes as many a project as it has free slots, raises the attempt and leases them.
-- A turn that a person silenced is discarded here; one of a suspended conversation stays. `why` is its fila_claim_reason.
-- +goose StatementBegin
CREATE FUNCTION fila_claim(p_projects text[], p_slots integer[], p_instance text, p_lease double precision)
RETURNS TABLE (
    turn_id bigint, project text, phone text, state text, stage text, why text, attempt integer, fired_by text, address text,
    contact_name text, session_id text, messages jsonb, body text, superseded_turns bigint[], message_count integer,
    agent_failures integer, delivery_failures integer, crashes integer, reconcile_seconds double precision, doubtful_part integer
)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    candidate bigint[];
BEGIN
    candidate := ARRAY(
        SELECT t.id
        FROM unnest(p_projects, p_slots) AS wanted (project, slots)
        CROSS JOIN LATERAL (
            SELECT t.id
            FROM turns t
            JOIN conversations c ON c.project = t.project AND c.phone = t.phone
            WHERE t.project = wanted.project AND t.open AND fila_claim_reason(t) IS NOT NULL AND c.mode <> 'suspended'
            ORDER BY t.id
            LIMIT wanted.slots
        ) t
    );
    IF cardinality(candidate) = 0 THEN
        RETURN;
    END IF;

    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT t.id, fila_mode(c.mode, c.until) AS mode
        FROM conversations c
        JOIN turns t ON t.project = c.project AND t.phone = c.phone
        WHERE t.id = ANY (candidate)
        ORDER BY c.project, c.phone
        FOR NO KEY UPDATE OF c SKIP LOCKED
    ), before AS MATERIALIZED (
        -- Read again under the locks: only what is still so is taken.
        SELECT t.id, CASE WHEN t.silenced THEN 'human' ELSE h.mode END AS mode, fila_claim_reason(t) AS why, t.instance
        FROM turns t
        JOIN held h ON h.id = t.id
        WHERE h.mode <> 'suspended'
        FOR NO KEY UPDATE OF t SKIP LOCKED
    ), claimed AS (
        UPDATE turns t SET
            state = CASE
                WHEN b.mode = 'human' AND b.why <> 'reconcile' THEN 'discarded'
                WHEN b.why = 'retry' THEN CASE t.stage WHEN 'agent' THEN 'running' ELSE 'sending' END
                ELSE t.state
            END,
            reason = CASE WHEN b.mode = 'human' AND b.why <> 'reconcile' THEN 'human' ELSE t.reason END,
            finished_at = CASE WHEN b.mode = 'human' AND b.why <> 'reconcile' THEN clock_timestamp() END,
            -- Nobody has a turn of these, and a callback to its last attempt still counts. But a question with a lease had an asker,
            -- who is late and may come back with what he was told.
            attempt = t.attempt + CASE WHEN b.why IN ('reconcile', 'overdue', 'held') AND t.lease_until IS NULL THEN 0 ELSE 1 END,
            crashes = t.crashes + (b.why = 'abandoned')::integer,
            errors = CASE
                WHEN b.why = 'abandoned' THEN t.errors || jsonb_build_object(
                    'at', fila_time(clock_timestamp()), 'attempt', t.attempt, 'stage', 'instance',
                    'error', 'instance ' || coalesce(t.instance, '?') || ' gave no sign of life for the length of its lease')
                ELSE t.errors
            END,
            instance = p_instance,
            lease_until = CASE WHEN b.why = 'reconcile' OR b.mode <> 'human' THEN clock_timestamp() + make_interval(secs => p_lease) END,
            -- If its asker dies, the question is asked again once the lease is over.
            next_attempt_at = CASE WHEN b.why = 'reconcile' THEN t.next_attempt_at END,
            reply_until = NULL
        FROM before b
        WHERE t.id = b.id AND b.why IS NOT NULL
        RETURNING t.*, b.why
    )
    SELECT
        t.id, t.project, t.phone, t.state, t.stage, t.why, t.attempt, t.fired_by, t.address, t.contact_name, t.session_id, t.messages,
        t.text, t.superseded_turns, cardinality(t.message_ids), t.agent_failures, t.delivery_failures, t.crashes,
        extract(epoch FROM clock_timestamp() - t.reconcile_since)::double precision,
        (SELECT d.part FROM deliveries d WHERE d.turn_id = t.id AND d.part > 0 AND d.state IN ('sending', 'unknown') ORDER BY d.part LIMIT 1)
    FROM claimed t;
    UPDATE deliveries d SET state = 'unknown'
    FROM turns t
    WHERE t.id = ANY (candidate) AND t.state = 'discarded' AND d.turn_id = t.id AND d.part > 0 AND d.state = 'sending';
END
$$;
-- +goose StatementEnd

-- The sign of life of turns that this process is really running. What does not come back is no longer its own; what
-- comes back without being renewed is locked by somebody this moment, and must not hold up the others.
-- +goose StatementBegin
CREATE FUNCTION fila_renew(p_turns bigint[], p_attempts integer[], p_lease double precision)
RETURNS TABLE (turn_id bigint, interrupted boolean, renewed boolean)
LANGUAGE sql AS $$
    WITH mine AS (
        SELECT t.id, coalesce(t.reason = 'interrupted', false) AS interrupted
        FROM unnest(p_turns, p_attempts) AS m (id, attempt)
        JOIN turns t ON t.id = m.id AND t.attempt = m.attempt
        WHERE t.state IN ('running', 'sending', 'replied', 'unknown') AND t.lease_until IS NOT NULL AND t.instance IS NOT NULL
    ), free AS (
        SELECT t.id
        FROM turns t
        JOIN mine ON mine.id = t.id
        ORDER BY t.id
        FOR NO KEY UPDATE OF t SKIP LOCKED
    ), renewed AS (
        UPDATE turns t SET lease_until = clock_timestamp() + make_interval(secs => p_lease)
        FROM unnest(p_turns, p_attempts) AS m (id, attempt)
        WHERE t.id IN (SELECT f.id FROM free f) AND t.id = m.id AND t.attempt = m.attempt
            AND t.state IN ('running', 'sending', 'replied', 'unknown') AND t.lease_until IS NOT NULL AND t.instance IS NOT NULL
        RETURNING t.id
    )
    SELECT mine.id, mine.interrupted, r.id IS NOT NULL
    FROM mine
    LEFT JOIN renewed r ON r.id = mine.id
$$;
-- +goose StatementEnd

-- A shutdown gives its turns away at once; no other instance waits for the lease, and no crash is counted.
-- +goose StatementBegin
CREATE FUNCTION fila_hand_back(p_turns bigint[], p_attempts integer[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE turns t SET lease_until = '-infinity'
    FROM unnest(p_turns, p_attempts) AS mine (id, attempt)
    WHERE t.id = mine.id AND t.attempt = mine.attempt AND t.state IN ('running', 'sending', 'replied') AND t.lease_until IS NOT NULL
$$;
-- +goose StatementEnd

-- The call of a turn that ended meanwhile is over: the conversation is free. So is the reply that the agent brought by a call of
-- its own. An earlier attempt than the last one knows nothing of the call that still runs.
-- +goose StatementBegin
CREATE FUNCTION fila_hung_up(p_turn bigint, p_attempt integer) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM hanging_calls WHERE turn_id = p_turn AND attempt <= p_attempt;
    UPDATE turns SET lease_until = NULL
    WHERE id = p_turn AND lease_until IS NOT NULL AND state = 'replied' AND instance IS NULL AND attempt <= p_attempt
$$;
-- +goose StatementEnd

-- A turn has ended while its call runs, if it does: nobody renews that lease any more.
-- +goose StatementBegin
CREATE FUNCTION fila_hang(t turns, p_lease_until timestamptz) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO hanging_calls (project, digest, turn_id, attempt, lease_until)
    SELECT t.project, sha256(convert_to(t.phone, 'UTF8')), t.id, t.attempt, p_lease_until
    WHERE p_lease_until > clock_timestamp()
    ON CONFLICT (project, digest, turn_id) DO UPDATE SET attempt = excluded.attempt, lease_until = excluded.lease_until
$$;
-- +goose StatementEnd

-- Gives a superseded turn's messages back to the queue, with their numbers: in front of the newer ones.
-- +goose StatementBegin
CREATE FUNCTION fila_supersede(p_turn bigint, p_reason text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    t turns;
BEGIN
    UPDATE turns SET state = 'superseded', reason = p_reason, finished_at = clock_timestamp(), lease_until = NULL, next_attempt_at = NULL, reply_until = NULL
    WHERE id = p_turn
    RETURNING * INTO STRICT t;
    INSERT INTO fila_mensagens (
        id, projeto, id_mensagem, telefone, mensagem, timestamp, kind, address, media, sent_at, metadata, registered, superseded
    )
    SELECT
        number, t.project, coalesce(m ->> 'id', ''), t.phone, m ->> 'text', (m ->> 'received_at')::timestamptz, m ->> 'kind', t.address,
        nullif(m -> 'media', 'null'), (m ->> 'sent_at')::timestamptz, m -> 'metadata', true, true
    FROM unnest(t.message_ids) WITH ORDINALITY AS n (number, place)
    JOIN jsonb_array_elements(t.messages) WITH ORDINALITY AS e (m, place) USING (place);
    UPDATE conversations SET superseded_turns = t.superseded_turns || t.id WHERE project = t.project AND phone = t.phone;
END
$$;
-- +goose StatementEnd

-- Ends a turn whose conversation a person took. Answers: discarded.
-- +goose StatementBegin
CREATE FUNCTION fila_yield(p_turn bigint) RETURNS text
LANGUAGE sql AS $$
    UPDATE turns SET state = 'discarded', reason = 'human', finished_at = clock_timestamp(), lease_until = NULL WHERE id = p_turn
    RETURNING state
$$;
-- +goose StatementEnd

-- Whether newer messages wait that the project's rule lets overtake this turn. The rest of a burst that was too long for one
-- turn is not newer: it is due when this turn ends.
-- +goose StatementBegin
CREATE FUNCTION fila_overtaken(t turns) RETURNS boolean
LANGUAGE sql AS $$
    SELECT p.during_turn <> 'queue' AND t.confirmed_at IS NULL AND NOT t.handoff
        AND cardinality(t.superseded_turns) < p.supersede_limit
        AND NOT EXISTS (SELECT FROM deliveries d WHERE d.turn_id = t.id AND d.attempts > 0)
        AND EXISTS (
            SELECT FROM fila_mensagens q
            WHERE q.projeto = t.project AND q.telefone = t.phone AND q.registered AND NOT q.superseded AND q.timestamp > t.drained_at
        )
    FROM projects p WHERE p.name = t.project
$$;
-- +goose StatementEnd

-- The newer burst has fallen due while the agent thinks (during_turn: interrupt). A call in flight belongs to
-- the instance that leases the turn: it is asked to hang up, and gives the turn back by calling this with its
-- attempt; a turn without a call is superseded at once. Whoever has hung up is told as well that a person silenced the turn meanwhile
-- (discarded), or that nothing newer waits any more (retry: it begins again, and no failure is counted). A conversation that was
-- suspended meanwhile gets its messages back. Answers: superseded, discarded, retry, asked, stale.
-- +goose StatementBegin
CREATE FUNCTION fila_interrupt(p_turn bigint, p_attempt integer) RETURNS text
LANGUAGE plpgsql SET lock_timeout = '300ms' AS $$
DECLARE
    t turns;
    mode text;
BEGIN
    SELECT * INTO t FROM turns WHERE id = p_turn;
    SELECT fila_mode(c.mode, c.until) INTO mode FROM conversations c WHERE c.project = t.project AND c.phone = t.phone FOR NO KEY UPDATE;
    SELECT * INTO t FROM turns WHERE id = p_turn FOR NO KEY UPDATE;
    IF mode IS NULL OR t.state NOT IN ('running', 'retrying') OR t.attempt <> coalesce(p_attempt, t.attempt)
        OR (p_attempt IS NULL AND (mode <> 'agent' OR NOT fila_overtaken(t))) THEN
        RETURN 'stale';
    ELSIF p_attempt IS NULL AND t.state = 'running' AND t.reply_until IS NULL THEN
        UPDATE turns SET reason = 'interrupted' WHERE id = p_turn;
        RETURN 'asked';
    ELSIF t.silenced OR mode = 'human' THEN
        RETURN fila_yield(p_turn);
    ELSIF NOT fila_overtaken(t) THEN
        UPDATE turns SET state = 'retrying', reason = NULL, next_attempt_at = clock_timestamp(), lease_until = NULL WHERE id = p_turn;
        RETURN 'retry';
    END IF;
    PERFORM fila_supersede(p_turn, 'interrupted by newer messages');
    RETURN 'superseded';
END
$$;
-- +goose StatementEnd

-- What came of an unknown outcome was learnt without a person: done or not_done.
-- +goose StatementBegin
CREATE FUNCTION fila_reconciled(t turns, p_outcome text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO audit (project, phone, turn_id, action, actor, detail)
    VALUES (t.project, t.phone, t.id, 'reconcile', 'fila', jsonb_build_object('outcome', p_outcome))
$$;
-- +goose StatementEnd

-- What was unknown is known, and not all of the turn is done: it goes on with the next claim, or ends here if a person silenced it.
-- Answers: retrying, discarded.
-- +goose StatementBegin
CREATE FUNCTION fila_go_on(t turns) RETURNS text
LANGUAGE sql AS $$
    UPDATE turns SET
        state = CASE WHEN t.silenced THEN 'discarded' ELSE 'retrying' END,
        reason = CASE WHEN t.silenced THEN 'human' END,
        finished_at = CASE WHEN t.silenced THEN clock_timestamp() END,
        next_attempt_at = CASE WHEN NOT t.silenced THEN clock_timestamp() END,
        reconcile_since = NULL, lease_until = NULL
    WHERE id = t.id
    RETURNING state
$$;
-- +goose StatementEnd

-- Ends a turn that has been answered; a handoff takes effect with the end.
-- +goose StatementBegin
CREATE FUNCTION fila_finish(p_turn bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    t turns;
BEGIN
    UPDATE turns SET state = 'done', finished_at = clock_timestamp(), lease_until = NULL, reason = NULL WHERE id = p_turn
    RETURNING * INTO STRICT t;
    -- What somebody suspended stays so until that person resumes it.
    IF t.handoff AND NOT EXISTS (
        SELECT FROM conversations c WHERE c.project = t.project AND c.phone = t.phone AND c.mode = 'suspended'
    ) THEN
        PERFORM fila_give_to_human(t.project, t.phone, NULL, 'agent', 'handoff');
    END IF;
END
$$;
-- +goose StatementEnd

-- The agent's answer becomes durable and the gate decides what happens with it, in one step. With a null
-- attempt it is the callback of an agent that named none, without an instance it is any callback. Without p_send
-- the reply is only kept, and the next claim sends it. Answers: send, done, held, discarded, superseded, repeated (the same reply again), stale (the
-- turn is over or somebody else's), absent.
-- +goose StatementBegin
CREATE FUNCTION fila_reply(
    p_project text, p_turn bigint, p_attempt integer, p_reply text, p_parts text[], p_handoff boolean,
    p_send boolean, p_instance text, p_lease double precision,
    OUT verdict text
)
LANGUAGE plpgsql SET lock_timeout = '300ms' AS $$
#variable_conflict use_column
DECLARE
    held record;
    t turns;
    calling timestamptz;
BEGIN
    -- One statement for the conversation and its lock. The turn is read in the next: under the lock nobody changes it but
    -- whoever renews its lease.
    SELECT c.mode, p.during_turn INTO held
    FROM turns o
    CROSS JOIN LATERAL (
        SELECT fila_mode(v.mode, v.until) AS mode FROM conversations v WHERE v.project = o.project AND v.phone = o.phone FOR NO KEY UPDATE
    ) c
    JOIN projects p ON p.name = o.project
    WHERE o.id = p_turn AND o.project = p_project;
    SELECT * INTO t FROM turns WHERE id = p_turn AND project = p_project;
    IF NOT FOUND THEN
        verdict := 'absent';
        RETURN;
    END IF;
    IF t.silenced THEN
        held.mode := 'human';
    END IF;
    IF t.state NOT IN ('running', 'retrying', 'unknown') OR t.stage <> 'agent' OR t.attempt <> coalesce(p_attempt, t.attempt) OR held.mode IS NULL THEN
        verdict := CASE
            -- The answer to the same call was lost on its way: nothing of it has been sent, and unless it still may be, the gate before
            -- the part says what becomes of it.
            WHEN p_send AND t.state = 'sending' AND t.attempt = p_attempt AND t.reply IS NOT DISTINCT FROM p_reply
                AND NOT EXISTS (SELECT FROM deliveries d WHERE d.turn_id = t.id AND (d.state = 'sent' OR d.attempts > 1))
                THEN CASE held.mode WHEN 'agent' THEN 'send' ELSE fila_send(p_turn, p_attempt, 1) END
            WHEN t.replied_at IS NOT NULL AND t.reply IS NOT DISTINCT FROM p_reply AND t.state IN ('replied', 'sending', 'retrying', 'unknown', 'done')
                THEN 'repeated'
            ELSE 'stale'
        END;
        RETURN;
    END IF;

    -- Called back while a call to the agent is under way, the same or a repetition: until that is hung up on, or its lease is
    -- over, nothing goes out and no other turn of the conversation begins.
    IF p_instance IS NULL AND t.state = 'running' AND t.reply_until IS NULL AND t.lease_until > clock_timestamp() THEN
        calling := t.lease_until;
    END IF;
    IF t.state = 'unknown' THEN
        PERFORM fila_reconciled(t, 'done');
    END IF;
    t.handoff := p_handoff;
    verdict := CASE
        WHEN held.mode = 'human' THEN 'discarded'
        WHEN held.mode <> 'suspended' AND held.during_turn <> 'queue' AND fila_overtaken(t) THEN 'superseded'
        WHEN cardinality(p_parts) = 0 THEN 'done'
        WHEN held.mode = 'suspended' OR NOT p_send THEN 'held'
        ELSE 'send'
    END;
    -- One new version of the row, whatever was decided.
    UPDATE turns SET
        state = CASE verdict WHEN 'discarded' THEN 'discarded' WHEN 'send' THEN 'sending' ELSE 'replied' END,
        reason = CASE verdict WHEN 'discarded' THEN 'human' END,
        finished_at = CASE verdict WHEN 'discarded' THEN clock_timestamp() END,
        reply = p_reply, handoff = p_handoff, replied_at = clock_timestamp(), stage = 'delivery',
        reply_until = NULL, next_attempt_at = NULL, reconcile_since = NULL,
        instance = CASE WHEN calling IS NULL THEN coalesce(p_instance, t.instance) END,
        lease_until = CASE
            WHEN calling IS NOT NULL AND verdict = 'held' THEN calling
            WHEN verdict = 'send' THEN clock_timestamp() + make_interval(secs => p_lease)
        END
    WHERE id = p_turn;
    IF verdict = 'superseded' THEN
        PERFORM fila_supersede(p_turn, 'newer messages');
    ELSIF verdict = 'done' THEN
        PERFORM fila_finish(p_turn);
    ELSIF verdict IN ('send', 'held') THEN
        INSERT INTO deliveries (turn_id, part, project, text, state, attempts, intended_at)
        SELECT
            p_turn, place, t.project, text,
            CASE WHEN place = 1 AND verdict = 'send' THEN 'sending' ELSE 'pending' END,
            CASE WHEN place = 1 AND verdict = 'send' THEN 1 ELSE 0 END,
            CASE WHEN place = 1 AND verdict = 'send' THEN clock_timestamp() END
        FROM unnest(p_parts) WITH ORDINALITY AS part (text, place);
    END IF;
    IF verdict IN ('superseded', 'done', 'discarded') THEN
        PERFORM fila_hang(t, calling);
    END IF;
END
$$;
-- +goose StatementEnd

-- The agent said 202: no instance holds the turn until it calls back or its time is over.
-- +goose StatementBegin
CREATE FUNCTION fila_await_reply(p_turn bigint, p_attempt integer, p_timeout double precision) RETURNS text
LANGUAGE plpgsql SET lock_timeout = '300ms' AS $$
DECLARE
    t turns;
    mode text;
BEGIN
    SELECT * INTO t FROM turns WHERE id = p_turn;
    SELECT fila_mode(c.mode, c.until) INTO mode FROM conversations c WHERE c.project = t.project AND c.phone = t.phone FOR NO KEY UPDATE;
    SELECT * INTO t FROM turns WHERE id = p_turn;
    IF t.attempt IS DISTINCT FROM p_attempt OR t.state <> 'running' OR mode IS NULL THEN
        RETURN 'stale';
    ELSIF t.silenced OR mode = 'human' THEN
        RETURN fila_yield(p_turn);
    END IF;
    UPDATE turns SET reply_until = clock_timestamp() + make_interval(secs => p_timeout), lease_until = NULL WHERE id = p_turn;
    RETURN 'awaited';
END
$$;
-- +goose StatementEnd

-- The gate before one part, and the intent to send it. Answers: send, held, discarded, superseded, stale.
-- +goose StatementBegin
CREATE FUNCTION fila_send(p_turn bigint, p_attempt integer, p_part integer) RETURNS text
LANGUAGE plpgsql SET lock_timeout = '300ms' AS $$
DECLARE
    t turns;
    mode text;
BEGIN
    SELECT * INTO t FROM turns WHERE id = p_turn;
    SELECT fila_mode(c.mode, c.until) INTO mode FROM conversations c WHERE c.project = t.project AND c.phone = t.phone FOR NO KEY UPDATE;
    SELECT * INTO t FROM turns WHERE id = p_turn FOR NO KEY UPDATE;
    IF t.attempt IS DISTINCT FROM p_attempt OR t.state NOT IN ('replied', 'sending') OR mode IS NULL THEN
        RETURN 'stale';
    ELSIF t.silenced OR mode = 'human' THEN
        RETURN fila_yield(p_turn);
    ELSIF mode = 'suspended' THEN
        UPDATE turns SET state = 'replied', lease_until = NULL WHERE id = p_turn;
        UPDATE deliveries SET state = 'pending' WHERE turn_id = p_turn AND part = p_part AND state = 'sending';
        RETURN 'held';
    ELSIF fila_overtaken(t) THEN
        PERFORM fila_supersede(p_turn, 'newer messages');
        RETURN 'superseded';
    END IF;
    UPDATE deliveries SET state = 'sending', attempts = attempts + 1, intended_at = clock_timestamp()
    WHERE turn_id = p_turn AND part = p_part AND state <> 'sent';
    IF NOT FOUND THEN
        RETURN 'stale';
    END IF;
    IF t.state <> 'sending' THEN
        UPDATE turns SET state = 'sending' WHERE id = p_turn;
    END IF;
    RETURN 'send';
END
$$;
-- +goose StatementEnd

-- A part went out. Ends the turn with the last one; else, when asked to, passes the gate for the next.
-- What became of a part is written down as well where its turn was discarded while it went out.
-- Answers: done, next (the caller asks for the next part itself), discarded, stale, or what fila_send answers.
-- +goose StatementBegin
CREATE FUNCTION fila_sent(p_turn bigint, p_attempt integer, p_part integer, p_provider_id text, p_go_on boolean) RETURNS text
LANGUAGE plpgsql SET lock_timeout = '300ms' AS $$
DECLARE
    t turns;
BEGIN
    PERFORM FROM turns o
    CROSS JOIN LATERAL (SELECT FROM conversations v WHERE v.project = o.project AND v.phone = o.phone FOR NO KEY UPDATE) c
    WHERE o.id = p_turn;
    SELECT * INTO t FROM turns WHERE id = p_turn;
    IF t.attempt IS DISTINCT FROM p_attempt OR t.state NOT IN ('sending', 'unknown') OR t.stage <> 'delivery' THEN
        UPDATE deliveries SET state = 'sent', provider_id = nullif(p_provider_id, ''), sent_at = clock_timestamp()
        WHERE turn_id = p_turn AND part = p_part AND state = 'unknown' AND t.state = 'discarded' AND t.attempt = p_attempt + 1;
        RETURN 'stale';
    END IF;
    IF t.state = 'unknown' THEN
        PERFORM fila_reconciled(t, 'done');
    END IF;
    UPDATE deliveries SET state = 'sent', provider_id = nullif(p_provider_id, ''), sent_at = clock_timestamp()
    WHERE turn_id = p_turn AND part = p_part;
    -- What was sent is a prefix, so only what follows is looked at, however many parts there are.
    IF NOT EXISTS (SELECT FROM deliveries d WHERE d.turn_id = p_turn AND d.part > p_part AND d.state <> 'sent') THEN
        PERFORM fila_finish(p_turn);
        RETURN 'done';
    ELSIF t.state = 'unknown' THEN
        -- Who asked about it has done his work; the rest goes out with the next claim.
        RETURN CASE fila_go_on(t) WHEN 'retrying' THEN 'next' ELSE 'discarded' END;
    END IF;
    RETURN CASE WHEN p_go_on THEN fila_send(p_turn, p_attempt, p_part + 1) ELSE 'next' END;
END
$$;
-- +goose StatementEnd

-- Most turns take the same two steps: a reply whose first part goes out at once, and a part after which the turn is done. Those of many
-- turns share one call and one commit here. A turn that is not answered was left as it is, for fila_reply or fila_sent: its case is another
-- one, or somebody holds its conversation, since nobody is waited for here. p_part_* are the parts of the replies, one behind the other.
-- Answers: send; done, and whether anything waits in the conversation.
-- +goose StatementBegin
CREATE FUNCTION fila_advance(
    p_replied bigint[], p_reply_attempt integer[], p_reply text[], p_part_turn bigint[], p_part integer[], p_part_text text[],
    p_sent bigint[], p_sent_attempt integer[], p_sent_part integer[], p_provider_id text[], p_instance text, p_lease double precision
)
RETURNS TABLE (turn_id bigint, verdict text, waits boolean)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    locked bigint[];
BEGIN
    -- Who has a conversation is read from the row that was locked, so it is what counts now; turns are read by a later statement.
    locked := ARRAY(
        SELECT a.id
        FROM (SELECT unnest(p_replied) AS id, true AS replied UNION ALL SELECT unnest(p_sent), false) a
        -- Each by its number, and not by a plan that reads all there are.
        CROSS JOIN LATERAL (SELECT t.project, t.phone FROM turns t WHERE t.id = a.id OFFSET 0) t
        CROSS JOIN LATERAL (
            SELECT FROM conversations v
            WHERE v.project = t.project AND v.phone = t.phone AND (NOT a.replied OR fila_mode(v.mode, v.until) = 'agent')
            FOR NO KEY UPDATE SKIP LOCKED
        ) c
    );

    -- The limits cut nothing off. A limit that the planner does not know makes it expect one row, and look that up; for more it may read
    -- through a table that is small when the plan is made, and go on so when it is not.
    RETURN QUERY
    WITH passed AS (
        UPDATE turns t SET
            state = 'sending', stage = 'delivery', reply = r.reply, replied_at = clock_timestamp(), reason = NULL, next_attempt_at = NULL,
            instance = p_instance, lease_until = clock_timestamp() + make_interval(secs => p_lease)
        FROM (SELECT * FROM unnest(p_replied, p_reply_attempt, p_reply) AS a (id, attempt, reply) WHERE a.id = ANY (locked) LIMIT cardinality(locked)) r, projects p
        WHERE t.id = r.id AND p.name = t.project
            AND t.attempt = r.attempt AND t.state = 'running' AND t.stage = 'agent' AND t.reply_until IS NULL AND NOT t.silenced
            AND (p.during_turn = 'queue' OR NOT fila_overtaken(t))
        RETURNING t.id, t.project
    ), parts AS (
        INSERT INTO deliveries (turn_id, part, project, text, state, attempts, intended_at)
        SELECT
            n.id, d.part, n.project, d.text,
            CASE d.part WHEN 1 THEN 'sending' ELSE 'pending' END, (d.part = 1)::integer, CASE d.part WHEN 1 THEN clock_timestamp() END
        FROM unnest(p_part_turn, p_part, p_part_text) AS d (id, part, text)
        JOIN passed n ON n.id = d.id
    ), out AS (
        UPDATE deliveries d SET state = 'sent', provider_id = nullif(s.provider_id, ''), sent_at = clock_timestamp()
        FROM (
            SELECT * FROM unnest(p_sent, p_sent_attempt, p_sent_part, p_provider_id) AS a (id, attempt, part, provider_id)
            WHERE a.id = ANY (locked)
            LIMIT cardinality(locked)
        ) s, turns t
        WHERE d.turn_id = s.id AND d.part = s.part AND t.id = s.id
            AND t.attempt = s.attempt AND t.state = 'sending' AND NOT t.handoff
            AND NOT EXISTS (SELECT FROM deliveries l WHERE l.turn_id = s.id AND l.part > s.part AND l.state <> 'sent')
        RETURNING d.turn_id AS id
    ), over AS (
        UPDATE turns t SET state = 'done', finished_at = clock_timestamp(), lease_until = NULL, reason = NULL
        FROM out o
        WHERE t.id = o.id
        RETURNING t.id, t.project, t.phone
    )
    SELECT n.id, 'send', NULL::boolean FROM passed n
    UNION ALL
    SELECT o.id, 'done', EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = o.project AND q.telefone = o.phone) FROM over o;
END
$$;
-- +goose StatementEnd

-- Something did not work. p_fate is what the policy makes of it: retry, dead, unknown (held for a person),
-- reconcile (asked about again after the delay). p_counted: whether it uses up one of the attempts.
-- Answers: retry, dead, unknown, discarded (a person took the conversation over), stale.
-- +goose StatementBegin
CREATE FUNCTION fila_fail(
    p_turn bigint, p_attempt integer, p_stage text, p_part integer, p_fate text, p_error text, p_counted boolean, p_delay double precision
) RETURNS text
LANGUAGE plpgsql SET lock_timeout = '300ms' AS $$
DECLARE
    t turns;
    p projects;
    mode text;
BEGIN
    SELECT * INTO t FROM turns WHERE id = p_turn;
    SELECT * INTO p FROM projects WHERE name = t.project;
    SELECT fila_mode(c.mode, c.until) INTO mode FROM conversations c WHERE c.project = t.project AND c.phone = t.phone FOR NO KEY UPDATE;
    SELECT * INTO t FROM turns WHERE id = p_turn FOR NO KEY UPDATE;
    IF t.silenced THEN
        mode := 'human';
    END IF;
    -- The agent may have called back while its own answer was lost: then the reply stands.
    IF t.attempt IS DISTINCT FROM p_attempt OR t.state NOT IN ('running', 'sending', 'replied', 'unknown') OR mode IS NULL
        OR (p_stage = 'agent' AND t.stage <> 'agent') OR (p_stage = 'delivery' AND t.stage <> 'delivery') THEN
        -- Unless this very failure is written already, and only our answer was lost.
        RETURN CASE WHEN t.attempt = p_attempt AND t.state = 'dead' AND p_fate = 'dead' AND t.reason = p_error THEN 'dead' ELSE 'stale' END;
    END IF;
    IF t.state = 'unknown' AND p_fate = 'retry' THEN
        PERFORM fila_reconciled(t, 'not_done');
    END IF;
    UPDATE turns SET
        state = CASE
            WHEN mode = 'human' AND p_fate = 'retry' THEN 'discarded'
            ELSE CASE p_fate WHEN 'retry' THEN 'retrying' WHEN 'dead' THEN 'dead' ELSE 'unknown' END
        END,
        stage = CASE p_stage WHEN 'instance' THEN t.stage ELSE p_stage END,
        reason = CASE WHEN mode = 'human' AND p_fate = 'retry' THEN 'human' ELSE p_error END,
        agent_failures = agent_failures + (p_counted AND p_stage = 'agent')::integer,
        delivery_failures = delivery_failures + (p_counted AND p_stage = 'delivery')::integer,
        errors = errors || jsonb_build_object(
            'at', fila_time(clock_timestamp()), 'attempt', t.attempt, 'stage', p_stage, 'error', p_error),
        lease_until = NULL, reply_until = NULL,
        next_attempt_at = CASE WHEN p_fate IN ('retry', 'reconcile') AND NOT (mode = 'human' AND p_fate = 'retry') THEN clock_timestamp() + make_interval(secs => p_delay) END,
        reconcile_since = CASE p_fate WHEN 'reconcile' THEN coalesce(t.reconcile_since, clock_timestamp()) END,
        finished_at = CASE WHEN p_fate = 'dead' OR (mode = 'human' AND p_fate = 'retry') THEN clock_timestamp() END
    WHERE id = p_turn
    RETURNING * INTO t;
    UPDATE deliveries SET state = CASE p_fate WHEN 'retry' THEN 'pending' WHEN 'dead' THEN 'failed' ELSE 'unknown' END
    WHERE turn_id = p_turn AND part = p_part AND state IN ('sending', 'unknown');
    IF t.state = 'dead' THEN
        PERFORM fila_bury(t, p, mode);
    END IF;
    RETURN CASE t.state WHEN 'retrying' THEN 'retry' ELSE t.state END;
END
$$;
-- +goose StatementEnd

-- What the death of a turn means for its conversation.
-- +goose StatementBegin
CREATE FUNCTION fila_bury(t turns, p projects, mode text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p.fallback_takeover AND mode = 'agent' THEN
        PERFORM fila_give_to_human(t.project, t.phone, NULL, 'fila', 'turn ' || t.id || ' is dead');
    ELSIF p.on_dead = 'suspend' AND mode = 'agent' THEN
        UPDATE conversations SET mode = 'suspended', until = NULL, suspended_by = t.id, due_now_at = NULL, due_now_by = NULL
        WHERE project = t.project AND phone = t.phone;
        INSERT INTO audit (project, phone, turn_id, action, actor, reason) VALUES (t.project, t.phone, t.id, 'suspend', 'fila', 'turn ' || t.id || ' is dead');
    END IF;
    IF p.fallback_text <> '' AND mode = 'agent' THEN
        -- Behind the rest, since whoever gets the conversation silences what was to be said before.
        -- Said at most once: an instance that dies now leaves it as an intent without a result.
        INSERT INTO deliveries (turn_id, part, project, text, state, attempts, intended_at)
        VALUES (t.id, 0, t.project, p.fallback_text, 'sending', 1, clock_timestamp())
        -- Of an earlier death: said again only if it certainly was not said.
        ON CONFLICT (turn_id, part) DO UPDATE SET
            state = 'sending', text = excluded.text, attempts = deliveries.attempts + 1, intended_at = excluded.intended_at
        WHERE deliveries.state = 'failed';
    END IF;
END
$$;
-- +goose StatementEnd

-- The fallback text went out, or did not.
-- +goose StatementBegin
CREATE FUNCTION fila_fallback_sent(p_turn bigint, p_state text, p_provider_id text) RETURNS void
LANGUAGE sql AS $$
    UPDATE deliveries SET state = p_state, provider_id = nullif(p_provider_id, ''), sent_at = CASE p_state WHEN 'sent' THEN clock_timestamp() END
    WHERE turn_id = p_turn AND part = 0
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION fila_fallback_sent, fila_bury, fila_fail, fila_advance, fila_sent, fila_send, fila_await_reply, fila_reply, fila_finish, fila_go_on, fila_reconciled, fila_interrupt, fila_overtaken,
    fila_yield, fila_supersede, fila_hang, fila_hung_up, fila_hand_back, fila_renew, fila_claim, fila_claim_reason, fila_drain, fila_burst, fila_due, fila_wake, fila_time;
