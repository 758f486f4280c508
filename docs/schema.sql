-- The schema after all migrations, in the words of Postgres 15. Written by make schema.

CREATE FUNCTION public.fila_adopt(p_project text, p_phones text[] DEFAULT NULL::text[]) RETURNS SETOF text
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    p projects;
    foreign_row fila_mensagens;
    found_ids bigint[];
    free text[];
    key text;
    number bigint;
    kept boolean;
    why text;
BEGIN
    SELECT * INTO STRICT p FROM projects WHERE name = p_project;
    found_ids := ARRAY(
        SELECT q.id FROM fila_mensagens q
        WHERE q.projeto = p_project AND NOT q.registered AND (p_phones IS NULL OR fila_key(q.telefone, p.country) = ANY (p_phones))
        ORDER BY q.id
        LIMIT 1000
    );
    IF cardinality(found_ids) = 0 THEN
        RETURN;
    END IF;
    INSERT INTO conversations (project, phone, address)
    SELECT p_project, fila_key(q.telefone, p.country), max(coalesce(q.address, q.telefone))
    FROM fila_mensagens q
    WHERE q.projeto = p_project AND NOT q.registered AND q.id = ANY (found_ids)
        AND octet_length(fila_key(q.telefone, p.country)) BETWEEN 1 AND 256
    GROUP BY 2
    ORDER BY 2
    ON CONFLICT (project, phone) DO NOTHING;
    -- A conversation that somebody holds is left for the next look: the drains of all others pass through here.
    free := ARRAY(
        SELECT c.phone FROM conversations c
        WHERE c.project = p_project AND c.phone IN (
            SELECT fila_key(q.telefone, p.country)
            FROM fila_mensagens q
            WHERE q.projeto = p_project AND NOT q.registered AND q.id = ANY (found_ids)
        )
        ORDER BY c.phone
        FOR NO KEY UPDATE SKIP LOCKED
    );

    FOR foreign_row IN
        SELECT q.* FROM fila_mensagens q
        WHERE q.projeto = p_project AND NOT q.registered AND q.id = ANY (found_ids)
            AND (octet_length(fila_key(q.telefone, p.country)) NOT BETWEEN 1 AND 256 OR fila_key(q.telefone, p.country) = ANY (free))
        ORDER BY q.id FOR UPDATE SKIP LOCKED
    LOOP
        key := fila_key(foreign_row.telefone, p.country);
        why := NULL;
        -- What does not fit an index may not raise an error here: it would stop the whole project.
        IF octet_length(key) > 256 OR octet_length(foreign_row.id_mensagem) > 256 THEN
            why := 'too_long';
            key := left(key, 64);
        ELSIF key = '' OR (foreign_row.mensagem = '' AND foreign_row.media IS NULL) THEN
            why := 'empty';
        ELSIF p.takeover_messages = 'ignore' AND EXISTS (
            SELECT FROM conversations c
            WHERE c.project = p_project AND c.phone = key AND fila_mode(c.mode, c.until) = 'human'
        ) THEN
            why := 'human';
        END IF;
        -- A number that the other program made up must not meet one that we gave or will give.
        number := foreign_row.id;
        IF number > (SELECT last_value FROM fila_mensagens_id_seq) OR EXISTS (SELECT FROM receipts r WHERE r.id = number) THEN
            number := nextval('fila_mensagens_id_seq');
        END IF;
        kept := foreign_row.id_mensagem = '' OR NOT EXISTS (
            SELECT FROM erased_receipts e
            WHERE e.project = p_project AND e.digest = sha256(convert_to(foreign_row.id_mensagem, 'UTF8'))
        );
        IF kept THEN
            INSERT INTO receipts (id, project, message_id, phone, status, reason)
            VALUES (
                number, p_project, CASE WHEN octet_length(foreign_row.id_mensagem) BETWEEN 1 AND 256 THEN foreign_row.id_mensagem END, key,
                CASE WHEN why IS NULL THEN 'queued' ELSE 'ignored' END, why
            )
            ON CONFLICT (project, message_id) DO NOTHING;
            kept := FOUND AND why IS NULL;
        END IF;
        IF kept THEN
            UPDATE fila_mensagens q SET
                id = number, registered = true, telefone = key, address = coalesce(q.address, q.telefone),
                timestamp = least(q.timestamp, clock_timestamp())
            WHERE q.projeto = p_project AND q.telefone = foreign_row.telefone AND q.id = foreign_row.id;
            UPDATE conversations c SET address = coalesce(foreign_row.address, foreign_row.telefone)
            WHERE c.project = p_project AND c.phone = key;
            RETURN NEXT key;
        ELSE
            DELETE FROM fila_mensagens q
            WHERE q.projeto = p_project AND q.telefone = foreign_row.telefone AND q.id = foreign_row.id;
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION public.fila_advance(p_replied bigint[], p_reply_attempt integer[], p_reply text[], p_part_turn bigint[], p_part integer[], p_part_text text[], p_sent bigint[], p_sent_attempt integer[], p_sent_part integer[], p_provider_id text[], p_instance text, p_lease double precision) RETURNS TABLE(turn_id bigint, verdict text, waits boolean)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.fila_await_reply(p_turn bigint, p_attempt integer, p_timeout double precision) RETURNS text
    LANGUAGE plpgsql
    SET lock_timeout TO '300ms'
    AS $$
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

CREATE FUNCTION public.fila_bound(p_name text, p_value text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF char_length(p_value) > 1000 THEN
        PERFORM fila_refuse('FI422', p_name || ' has ' || char_length(p_value) || ' characters, at most 1000 are kept');
    END IF;
END
$$;

CREATE TABLE public.conversations (
    project text NOT NULL,
    phone text NOT NULL,
    address text NOT NULL,
    contact_name text,
    session_id text,
    mode text DEFAULT 'agent'::text NOT NULL,
    until timestamp with time zone,
    suspended_by bigint,
    typing_at timestamp with time zone,
    due_now_at timestamp with time zone,
    due_now_by text,
    superseded_turns bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    CONSTRAINT conversations_mode_check CHECK ((mode = ANY (ARRAY['agent'::text, 'human'::text, 'suspended'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.projects (
    name text NOT NULL,
    country text DEFAULT ''::text NOT NULL,
    debounce interval NOT NULL,
    max_wait interval NOT NULL,
    max_messages integer NOT NULL,
    joiner text NOT NULL,
    during_turn text NOT NULL,
    supersede_limit integer NOT NULL,
    on_dead text NOT NULL,
    takeover_on_human boolean NOT NULL,
    takeover_for interval NOT NULL,
    takeover_messages text NOT NULL,
    fallback_text text DEFAULT ''::text NOT NULL,
    fallback_takeover boolean DEFAULT false NOT NULL,
    keep_receipts interval DEFAULT '8 days'::interval NOT NULL,
    keep_turns interval DEFAULT '30 days'::interval NOT NULL,
    keep_dead interval DEFAULT '14 days'::interval NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT projects_during_turn_check CHECK ((during_turn = ANY (ARRAY['queue'::text, 'supersede'::text, 'interrupt'::text]))),
    CONSTRAINT projects_max_messages_check CHECK ((max_messages > 0)),
    CONSTRAINT projects_name_check CHECK ((name ~ '^[a-z][a-z0-9_]{0,39}$'::text)),
    CONSTRAINT projects_on_dead_check CHECK ((on_dead = ANY (ARRAY['advance'::text, 'suspend'::text]))),
    CONSTRAINT projects_takeover_messages_check CHECK ((takeover_messages = ANY (ARRAY['ignore'::text, 'hold'::text])))
);

CREATE FUNCTION public.fila_burst(p public.projects, c public.conversations, phone text) RETURNS TABLE(number bigint, first_at timestamp with time zone, last_at timestamp with time zone, due_at timestamp with time zone, due_by text)
    LANGUAGE sql STABLE
    AS $$
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

CREATE TABLE public.turns (
    id bigint NOT NULL,
    project text NOT NULL,
    phone text NOT NULL,
    fired_by text NOT NULL,
    address text NOT NULL,
    contact_name text,
    session_id text NOT NULL,
    message_ids bigint[] NOT NULL,
    messages jsonb NOT NULL,
    text text NOT NULL,
    superseded_turns bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    first_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    drained_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    state text NOT NULL,
    open boolean GENERATED ALWAYS AS ((state = ANY (ARRAY['running'::text, 'retrying'::text, 'replied'::text, 'sending'::text, 'unknown'::text]))) STORED NOT NULL,
    dead boolean GENERATED ALWAYS AS ((state = 'dead'::text)) STORED NOT NULL,
    stage text DEFAULT 'agent'::text NOT NULL,
    reason text,
    reply text,
    handoff boolean DEFAULT false NOT NULL,
    attempt integer DEFAULT 1 NOT NULL,
    agent_failures integer DEFAULT 0 NOT NULL,
    delivery_failures integer DEFAULT 0 NOT NULL,
    crashes integer DEFAULT 0 NOT NULL,
    confirmed_at timestamp with time zone,
    silenced boolean DEFAULT false NOT NULL,
    answered_later boolean DEFAULT false NOT NULL,
    superseded_by bigint,
    reply_until timestamp with time zone,
    instance text,
    lease_until timestamp with time zone,
    next_attempt_at timestamp with time zone,
    reconcile_since timestamp with time zone,
    replied_at timestamp with time zone,
    finished_at timestamp with time zone,
    errors jsonb DEFAULT '[]'::jsonb NOT NULL,
    CONSTRAINT turns_ended CHECK ((open = (finished_at IS NULL))),
    CONSTRAINT turns_fired_by_check CHECK ((fired_by = ANY (ARRAY['quiet'::text, 'ceiling'::text, 'count'::text, 'flush'::text, 'resume'::text]))),
    CONSTRAINT turns_message_ids_check CHECK ((cardinality(message_ids) > 0)),
    CONSTRAINT turns_reason CHECK (((reason IS NOT NULL) OR (state <> ALL (ARRAY['unknown'::text, 'superseded'::text, 'discarded'::text, 'dead'::text])))),
    CONSTRAINT turns_stage_check CHECK ((stage = ANY (ARRAY['agent'::text, 'delivery'::text]))),
    CONSTRAINT turns_state_check CHECK ((state = ANY (ARRAY['running'::text, 'retrying'::text, 'replied'::text, 'sending'::text, 'unknown'::text, 'done'::text, 'superseded'::text, 'discarded'::text, 'dead'::text])))
)
WITH (fillfactor='60', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

CREATE FUNCTION public.fila_bury(t public.turns, p public.projects, mode text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.fila_claim(p_projects text[], p_slots integer[], p_instance text, p_lease double precision) RETURNS TABLE(turn_id bigint, project text, phone text, state text, stage text, why text, attempt integer, fired_by text, address text, contact_name text, session_id text, messages jsonb, body text, superseded_turns bigint[], message_count integer, agent_failures integer, delivery_failures integer, crashes integer, reconcile_seconds double precision, doubtful_part integer)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.fila_claim_reason(t public.turns) RETURNS text
    LANGUAGE sql
    AS $$
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

CREATE FUNCTION public.fila_clinic_wrote(p_project text, p_phone text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    c conversations;
BEGIN
    IF (SELECT p.takeover_on_human FROM projects p WHERE p.name = p_project) THEN
        c := fila_lock(p_project, p_phone);
        -- What somebody suspended stays so until that person resumes it.
        IF c.mode <> 'suspended' THEN
            PERFORM fila_give_to_human(p_project, c.phone, NULL, 'clinic', 'a person of the clinic wrote');
        END IF;
    END IF;
END
$$;

CREATE FUNCTION public.fila_confirm(p_project text, p_turn bigint, p_attempt integer) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    t turns;
BEGIN
    t := fila_lock_turn(p_project, p_turn);
    IF t.state <> 'running' OR t.attempt <> coalesce(p_attempt, t.attempt) THEN
        RETURN CASE WHEN t.state = 'superseded' THEN 'superseded' WHEN t.state = 'discarded' AND t.reason = 'human' THEN 'human' ELSE 'stale' END;
    ELSIF EXISTS (
        SELECT FROM conversations c WHERE c.project = t.project AND c.phone = t.phone AND (t.silenced OR fila_mode(c.mode, c.until) <> 'agent')
    ) THEN
        RETURN 'human';
    ELSIF fila_overtaken(t) THEN
        RETURN 'superseded';
    END IF;
    UPDATE turns SET confirmed_at = coalesce(confirmed_at, clock_timestamp()) WHERE id = p_turn;
    RETURN 'proceed';
END
$$;

CREATE FUNCTION public.fila_discard(p_turn bigint, p_by text, p_reason text, p_project text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    t turns;
BEGIN
    PERFORM fila_require('by', p_by);
    PERFORM fila_require('reason', p_reason);
    t := fila_lock_turn(p_project, p_turn);
    IF t.state <> 'dead' AND NOT t.open THEN
        PERFORM fila_refuse('FI409', 'turn ' || p_turn || ' is ' || t.state || ', which is its end');
    END IF;
    PERFORM fila_discard_turn(t, p_reason);
    INSERT INTO audit (project, phone, turn_id, action, actor, reason) VALUES (t.project, t.phone, t.id, 'discard', p_by, p_reason);
    PERFORM fila_wake(t.project, t.phone);
    RETURN 'discarded';
END
$$;

CREATE FUNCTION public.fila_discard_turn(t public.turns, p_reason text) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE turns SET
        state = 'discarded', reason = p_reason, attempt = attempt + t.open::integer, finished_at = clock_timestamp(),
        lease_until = NULL, next_attempt_at = NULL, reply_until = NULL, reconcile_since = NULL
    WHERE id = t.id;
    SELECT fila_hang(t, CASE WHEN t.state <> 'unknown' THEN t.lease_until END);
    UPDATE deliveries SET state = 'unknown' WHERE turn_id = t.id AND state = 'sending';
$$;

CREATE FUNCTION public.fila_drain(p_project text, p_phones text[], p_instance text, p_lease double precision) RETURNS TABLE(phone text, verdict text, wait_seconds double precision, first_seconds double precision, waiting integer, turn_id bigint, fired_by text, address text, contact_name text, session_id text, messages jsonb, body text, superseded_turns bigint[], message_count integer, late_seconds double precision)
    LANGUAGE plpgsql
    SET lock_timeout TO '300ms'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.fila_due(p public.projects, c public.conversations, first_at timestamp with time zone, last_at timestamp with time zone, full_at timestamp with time zone) RETURNS TABLE(at timestamp with time zone, by text)
    LANGUAGE sql STABLE
    AS $$
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

CREATE FUNCTION public.fila_erase(p_project text, p_phone text, p_by text) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    c conversations;
    digest bytea;
    counts jsonb;
BEGIN
    PERFORM fila_require('by', p_by);
    c := fila_lock(p_project, p_phone);
    digest := sha256(convert_to(c.phone, 'UTF8'));
    -- A row that another program inserted a moment ago still has its phone as it came.
    WITH waiting AS (
        DELETE FROM fila_mensagens q
        USING projects p
        WHERE p.name = p_project AND q.projeto = p_project
            AND (q.telefone = c.phone OR (NOT q.registered AND fila_key(q.telefone, p.country) = c.phone))
        RETURNING nullif(q.id_mensagem, '') AS id
    ), parts AS (
        DELETE FROM deliveries d USING turns t WHERE t.project = p_project AND t.phone = c.phone AND d.turn_id = t.id RETURNING d.provider_id
    ), ended AS (
        DELETE FROM turns t WHERE t.project = p_project AND t.phone = c.phone RETURNING t.id, t.attempt, t.lease_until
    ), calls AS (
        INSERT INTO hanging_calls (project, digest, turn_id, attempt, lease_until)
        SELECT p_project, digest, e.id, e.attempt, e.lease_until FROM ended e WHERE e.lease_until > clock_timestamp()
    ), forgotten AS (
        DELETE FROM receipts r WHERE r.project = p_project AND r.phone = c.phone RETURNING r.message_id
    ), digests AS (
        INSERT INTO erased_receipts (project, digest)
        SELECT DISTINCT p_project, sha256(convert_to(known.id, 'UTF8'))
        FROM (SELECT message_id FROM forgotten UNION ALL SELECT provider_id FROM parts UNION ALL SELECT id FROM waiting) AS known (id)
        WHERE known.id <> ''
        ON CONFLICT DO NOTHING
    ), named AS (
        UPDATE audit a SET phone = 'sha256:' || encode(digest, 'hex'), reason = NULL, detail = '{}'
        WHERE a.project = p_project AND a.phone = c.phone
    )
    SELECT jsonb_build_object(
        'waiting', (SELECT count(*) FROM waiting), 'turns', (SELECT count(*) FROM ended),
        'deliveries', (SELECT count(*) FROM parts), 'receipts', (SELECT count(*) FROM forgotten))
    INTO counts;
    DELETE FROM wakeups w WHERE w.project = p_project AND w.phone = c.phone;
    DELETE FROM conversations v WHERE v.project = p_project AND v.phone = c.phone;
    INSERT INTO audit (project, phone, action, actor, detail)
    VALUES (p_project, 'sha256:' || encode(digest, 'hex'), 'erase', p_by, counts);
    RETURN counts;
END
$$;

CREATE FUNCTION public.fila_explain(p_project text, p_phone text) RETURNS TABLE(explanation text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.fila_fail(p_turn bigint, p_attempt integer, p_stage text, p_part integer, p_fate text, p_error text, p_counted boolean, p_delay double precision) RETURNS text
    LANGUAGE plpgsql
    SET lock_timeout TO '300ms'
    AS $$
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

CREATE FUNCTION public.fila_fallback_sent(p_turn bigint, p_state text, p_provider_id text) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE deliveries SET state = p_state, provider_id = nullif(p_provider_id, ''), sent_at = CASE p_state WHEN 'sent' THEN clock_timestamp() END
    WHERE turn_id = p_turn AND part = 0
$$;

CREATE FUNCTION public.fila_finish(p_turn bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.fila_flush(p_project text, p_phone text, p_by text) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    c conversations;
BEGIN
    c := fila_lock(p_project, p_phone);
    IF NOT EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = p_project AND q.telefone = c.phone) THEN
        RETURN 'nothing waits';
    END IF;
    UPDATE conversations SET due_now_at = clock_timestamp(), due_now_by = 'flush' WHERE project = p_project AND phone = c.phone;
    INSERT INTO audit (project, phone, action, actor) VALUES (p_project, c.phone, 'flush', coalesce(nullif(btrim(p_by), ''), 'api'));
    PERFORM fila_wake(p_project, c.phone);
    RETURN 'due now';
END
$$;

CREATE FUNCTION public.fila_forget_conversations(p_project text, p_phone text, p_page integer, OUT gone bigint, OUT last_project text, OUT last_phone text, OUT more boolean) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
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

CREATE FUNCTION public.fila_forget_erased(p_page integer, OUT gone bigint, OUT more boolean) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
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

CREATE FUNCTION public.fila_forget_receipts(p_after bigint, p_page integer, OUT gone bigint, OUT last bigint, OUT more boolean) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
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

CREATE FUNCTION public.fila_forget_turns(p_project text, p_dead boolean, p_after bigint, p_page integer, OUT gone bigint, OUT last bigint, OUT more boolean) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
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

CREATE FUNCTION public.fila_forgetting() RETURNS boolean
    LANGUAGE sql
    AS $$
    SELECT pg_try_advisory_xact_lock(hashtextextended('fila_forget', 7302))
$$;

CREATE FUNCTION public.fila_give_to_human(p_project text, p_phone text, p_for interval, p_by text, p_reason text) RETURNS timestamp with time zone
    LANGUAGE plpgsql
    AS $$
DECLARE
    p projects;
    ends timestamptz;
BEGIN
    SELECT * INTO STRICT p FROM projects WHERE name = p_project;
    PERFORM fila_silence(p_project, p_phone);
    -- Without a time of its own a takeover only ever lengthens what somebody asked for.
    SELECT CASE
        WHEN p_for IS NULL AND c.mode = 'human' THEN greatest(c.until, clock_timestamp() + p.takeover_for)
        ELSE clock_timestamp() + coalesce(p_for, p.takeover_for)
    END
    INTO ends
    FROM conversations c
    WHERE c.project = p_project AND c.phone = p_phone;
    UPDATE conversations SET mode = 'human', until = ends, suspended_by = NULL WHERE project = p_project AND phone = p_phone;
    IF p.takeover_messages = 'ignore' THEN
        PERFORM fila_ignore_waiting(p_project, p_phone, 'human');
    END IF;
    UPDATE turns SET silenced = true WHERE project = p_project AND phone = p_phone AND open AND NOT silenced;
    -- A reply that was brought while the call ran may still have that call.
    PERFORM fila_hang(t, t.lease_until) FROM turns t WHERE t.project = p_project AND t.phone = p_phone AND t.open AND t.state = 'replied';
    UPDATE turns SET lease_until = NULL, state = 'discarded', reason = 'human', finished_at = clock_timestamp(), next_attempt_at = NULL, reply_until = NULL
    WHERE project = p_project AND phone = p_phone AND open
        AND (state IN ('retrying', 'replied') OR (state = 'running' AND reply_until IS NOT NULL));
    INSERT INTO audit (project, phone, action, actor, reason, detail)
    VALUES (p_project, p_phone, 'takeover', p_by, p_reason, jsonb_build_object('until', fila_time(ends)));
    RETURN ends;
END
$$;

CREATE FUNCTION public.fila_go_on(t public.turns) RETURNS text
    LANGUAGE sql
    AS $$
    UPDATE turns SET
        state = CASE WHEN t.silenced THEN 'discarded' ELSE 'retrying' END,
        reason = CASE WHEN t.silenced THEN 'human' END,
        finished_at = CASE WHEN t.silenced THEN clock_timestamp() END,
        next_attempt_at = CASE WHEN NOT t.silenced THEN clock_timestamp() END,
        reconcile_since = NULL, lease_until = NULL
    WHERE id = t.id
    RETURNING state
$$;

CREATE FUNCTION public.fila_grant_feeder(p_project text, p_role text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM projects p WHERE p.name = p_project) THEN
        PERFORM fila_refuse('FI404', 'project ' || p_project || ' is not known here');
    ELSIF to_regrole(quote_ident(p_role)) IS NULL THEN
        PERFORM fila_refuse('FI404', 'role ' || p_role || ' is not there: CREATE ROLE it first');
    END IF;
    EXECUTE format('GRANT fila_feeder TO %I', p_role);
    EXECUTE format(
        'GRANT INSERT (id_mensagem, telefone, mensagem, timestamp, kind, contact_name, session_id, media, sent_at, metadata) ON %I TO %I',
        'fila_mensagens_' || p_project, p_role);
END
$$;

CREATE FUNCTION public.fila_grant_roles() RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    tables constant text := 'projects, fila_mensagens, receipts, erased_receipts, hanging_calls, conversations, wakeups, turns, deliveries, audit';
    r text;
    f regprocedure;
BEGIN
    -- A function is open to everyone until somebody says otherwise: first of all, since the roles may not be there yet.
    FOR f IN SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'fila\_%' LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
    FOREACH r IN ARRAY ARRAY['fila_owner', 'fila_service', 'fila_support', 'fila_feeder'] LOOP
        BEGIN
            IF to_regrole(r) IS NULL THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', r);
            END IF;
        EXCEPTION
            -- Another database of this server made it a moment ago.
            WHEN duplicate_object OR unique_violation THEN
                NULL;
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'role % is missing and may not be created here: let a DBA create it, then SELECT fila_grant_roles()', r;
                RETURN;
        END;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), r);
    END LOOP;
    EXECUTE format('GRANT CREATE ON SCHEMA %I TO fila_owner', current_schema());

    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO fila_service', tables);
    GRANT USAGE ON SEQUENCE fila_mensagens_id_seq TO fila_service, fila_feeder;
    GRANT SELECT ON SEQUENCE fila_mensagens_id_seq TO fila_service;
    GRANT SELECT ON fila_lost, fila_overview TO fila_service, fila_support;
    IF to_regclass('goose_db_version') IS NOT NULL THEN
        GRANT SELECT ON goose_db_version TO fila_service, fila_support;
    END IF;

    GRANT SELECT ON projects, receipts, erased_receipts, wakeups, audit TO fila_support;
    GRANT SELECT (id, projeto, id_mensagem, telefone, timestamp, kind, address, sent_at, registered, superseded) ON fila_mensagens TO fila_support;
    GRANT SELECT (project, phone, address, mode, until, suspended_by, typing_at, due_now_at, due_now_by, superseded_turns) ON conversations TO fila_support;
    GRANT SELECT (
        id, project, phone, state, open, dead, stage, fired_by, address, message_ids, superseded_turns, superseded_by, handoff, attempt,
        agent_failures, delivery_failures, crashes, confirmed_at, reply_until, instance, lease_until, next_attempt_at, reconcile_since,
        first_at, due_at, drained_at, replied_at, finished_at, reason, errors
    ) ON turns TO fila_support;
    GRANT SELECT (turn_id, part, project, state, attempts, provider_id, intended_at, sent_at) ON deliveries TO fila_support;

    FOR f IN SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'fila\_%' LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO fila_service', f);
    END LOOP;
    REVOKE EXECUTE ON FUNCTION fila_grant_roles, fila_grant_feeder FROM fila_service;
    GRANT EXECUTE ON FUNCTION fila_explain, fila_key, fila_mode, fila_time TO fila_support;
END
$$;

CREATE FUNCTION public.fila_hand_back(p_turns bigint[], p_attempts integer[]) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE turns t SET lease_until = '-infinity'
    FROM unnest(p_turns, p_attempts) AS mine (id, attempt)
    WHERE t.id = mine.id AND t.attempt = mine.attempt AND t.state IN ('running', 'sending', 'replied') AND t.lease_until IS NOT NULL
$$;

CREATE FUNCTION public.fila_hang(t public.turns, p_lease_until timestamp with time zone) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO hanging_calls (project, digest, turn_id, attempt, lease_until)
    SELECT t.project, sha256(convert_to(t.phone, 'UTF8')), t.id, t.attempt, p_lease_until
    WHERE p_lease_until > clock_timestamp()
    ON CONFLICT (project, digest, turn_id) DO UPDATE SET attempt = excluded.attempt, lease_until = excluded.lease_until
$$;

CREATE FUNCTION public.fila_hung_up(p_turn bigint, p_attempt integer) RETURNS void
    LANGUAGE sql
    AS $$
    DELETE FROM hanging_calls WHERE turn_id = p_turn AND attempt <= p_attempt;
    UPDATE turns SET lease_until = NULL
    WHERE id = p_turn AND lease_until IS NOT NULL AND state = 'replied' AND instance IS NULL AND attempt <= p_attempt
$$;

CREATE FUNCTION public.fila_idle(c public.conversations) RETURNS boolean
    LANGUAGE sql
    AS $$
    SELECT fila_mode(c.mode, c.until) = 'agent'
        AND NOT EXISTS (SELECT FROM receipts r WHERE r.project = c.project AND r.phone = c.phone)
        AND NOT EXISTS (SELECT FROM turns t WHERE t.project = c.project AND t.phone = c.phone)
        AND NOT EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = c.project AND q.telefone = c.phone)
$$;

CREATE FUNCTION public.fila_ignore_waiting(p_project text, p_phone text, p_reason text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    settled bigint;
BEGIN
    WITH gone AS (
        DELETE FROM fila_mensagens q WHERE q.projeto = p_project AND q.telefone = p_phone AND q.registered RETURNING q.id
    )
    UPDATE receipts r SET status = 'ignored', reason = p_reason FROM gone WHERE r.id = gone.id;
    GET DIAGNOSTICS settled = ROW_COUNT;
    UPDATE conversations SET due_now_at = NULL, due_now_by = NULL, superseded_turns = '{}' WHERE project = p_project AND phone = p_phone;
    RETURN settled;
END
$$;

CREATE FUNCTION public.fila_interrupt(p_turn bigint, p_attempt integer) RETURNS text
    LANGUAGE plpgsql
    SET lock_timeout TO '300ms'
    AS $$
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

CREATE FUNCTION public.fila_is_echo(p_project text, p_phone text, p_message_id text, p_text text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM deliveries d WHERE d.project = p_project AND d.provider_id = p_message_id)
        OR EXISTS (
            -- Of the last turns, however many a conversation has had.
            SELECT FROM (SELECT l.id FROM turns l WHERE l.project = p_project AND l.phone = p_phone ORDER BY l.id DESC LIMIT 50) t
            JOIN deliveries d ON d.turn_id = t.id
            WHERE d.text = p_text AND (d.provider_id IS NULL OR p_message_id IS NULL) AND d.intended_at > clock_timestamp() - interval '10 minutes'
        ) THEN
        UPDATE receipts SET reason = 'echo' WHERE project = p_project AND message_id = p_message_id;
        RETURN true;
    END IF;
    RETURN false;
END
$$;

CREATE FUNCTION public.fila_key(phone text, country text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
    SELECT CASE
        WHEN country = 'BR' AND digits ~ '^55[0-9]{2}9?[6-9][0-9]{7}$'
            THEN substr(digits, 1, 4) || '9' || right(digits, 8)
        ELSE digits
    END
    FROM (
        SELECT CASE
            WHEN phone ~ '^[][0-9+ ()-]+$' THEN translate(phone, '][+ ()-', '')
            ELSE btrim(phone)
        END
    ) AS typed (digits)
$_$;

CREATE FUNCTION public.fila_lock(p_project text, p_phone text) RETURNS public.conversations
    LANGUAGE plpgsql
    AS $$
DECLARE
    p projects;
    c conversations;
    key text;
BEGIN
    SELECT * INTO p FROM projects WHERE name = p_project;
    IF NOT FOUND THEN
        PERFORM fila_refuse('FI404', 'project ' || p_project || ' is not known here');
    END IF;
    key := fila_key(p_phone, p.country);
    IF coalesce(key, '') = '' THEN
        PERFORM fila_refuse('FI422', 'phone is empty');
    END IF;
    LOOP
        INSERT INTO conversations (project, phone, address) VALUES (p_project, key, p_phone) ON CONFLICT (project, phone) DO NOTHING;
        SELECT * INTO c FROM conversations WHERE project = p_project AND phone = key FOR NO KEY UPDATE;
        -- It was there, and idle for so long that it was deleted while we waited for it.
        EXIT WHEN FOUND;
    END LOOP;
    RETURN c;
END
$$;

CREATE FUNCTION public.fila_lock_turn(p_project text, p_turn bigint) RETURNS public.turns
    LANGUAGE plpgsql
    AS $$
DECLARE
    t turns;
BEGIN
    SELECT * INTO t FROM turns WHERE id = p_turn AND project = coalesce(p_project, project);
    IF NOT FOUND THEN
        PERFORM fila_refuse('FI404', 'turn ' || p_turn || ' is not known here');
    END IF;
    PERFORM FROM conversations c WHERE c.project = t.project AND c.phone = t.phone FOR NO KEY UPDATE;
    SELECT * INTO t FROM turns WHERE id = p_turn FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM fila_refuse('FI404', 'turn ' || p_turn || ' is not known here');
    END IF;
    RETURN t;
END
$$;

CREATE FUNCTION public.fila_mode(mode text, until timestamp with time zone) RETURNS text
    LANGUAGE sql
    AS $$
    SELECT CASE WHEN mode = 'human' AND until <= clock_timestamp() THEN 'agent' ELSE mode END
$$;

CREATE FUNCTION public.fila_open_project(p_name text, p_country text, p_debounce double precision, p_max_wait double precision, p_max_messages integer, p_joiner text, p_during_turn text, p_supersede_limit integer, p_on_dead text, p_takeover_on_human boolean, p_takeover_seconds double precision, p_takeover_messages text, p_fallback_text text, p_fallback_takeover boolean, p_receipts_seconds double precision DEFAULT (8 * 86400), p_turns_seconds double precision DEFAULT (30 * 86400), p_dead_seconds double precision DEFAULT (14 * 86400)) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    partition text := 'fila_mensagens_' || p_name;
BEGIN
    -- Instances that start together take turns; everything below is then quietly repeated.
    PERFORM pg_advisory_xact_lock(hashtextextended('fila_open_project:' || p_name, 7302));
    PERFORM set_config('lock_timeout', '1s', true);
    INSERT INTO projects (
        name, country, debounce, max_wait, max_messages, joiner, during_turn, supersede_limit, on_dead,
        takeover_on_human, takeover_for, takeover_messages, fallback_text, fallback_takeover,
        keep_receipts, keep_turns, keep_dead
    ) VALUES (
        p_name, p_country, make_interval(secs => p_debounce), make_interval(secs => p_max_wait), p_max_messages, p_joiner,
        p_during_turn, p_supersede_limit, p_on_dead, p_takeover_on_human, make_interval(secs => p_takeover_seconds),
        p_takeover_messages, p_fallback_text, p_fallback_takeover,
        make_interval(secs => p_receipts_seconds), make_interval(secs => p_turns_seconds), make_interval(secs => p_dead_seconds)
    )
    ON CONFLICT (name) DO UPDATE SET
        country = excluded.country, debounce = excluded.debounce, max_wait = excluded.max_wait,
        max_messages = excluded.max_messages, joiner = excluded.joiner, during_turn = excluded.during_turn,
        supersede_limit = excluded.supersede_limit, on_dead = excluded.on_dead,
        takeover_on_human = excluded.takeover_on_human, takeover_for = excluded.takeover_for,
        takeover_messages = excluded.takeover_messages, fallback_text = excluded.fallback_text,
        fallback_takeover = excluded.fallback_takeover, keep_receipts = excluded.keep_receipts,
        keep_turns = excluded.keep_turns, keep_dead = excluded.keep_dead, updated_at = clock_timestamp();

    IF EXISTS (
        SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'fila_mensagens'::regclass AND c.relname = partition
    ) THEN
        RETURN;
    END IF;
    -- Insert and delete only, so pages stay full; dead rows go early, since a small hot queue is slow when
    -- its index is full of them. Storage parameters cannot be set on the parent.
    EXECUTE format(
        'CREATE TABLE %I (LIKE fila_mensagens INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH (fillfactor = 100, autovacuum_vacuum_scale_factor = 0,
         autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0)', partition);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN projeto SET DEFAULT %L', partition, p_name);
    EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (telefone, id)', partition);
    EXECUTE format('ALTER TABLE %I ADD CONSTRAINT projeto CHECK (projeto = %L)', partition, p_name);
    EXECUTE format('CREATE INDEX ON %I (id) WHERE NOT registered', partition);
    EXECUTE format('ALTER TABLE fila_mensagens ATTACH PARTITION %I FOR VALUES IN (%L)', partition, p_name);
END
$$;

CREATE FUNCTION public.fila_overtaken(t public.turns) RETURNS boolean
    LANGUAGE sql
    AS $$
    SELECT p.during_turn <> 'queue' AND t.confirmed_at IS NULL AND NOT t.handoff
        AND cardinality(t.superseded_turns) < p.supersede_limit
        AND NOT EXISTS (SELECT FROM deliveries d WHERE d.turn_id = t.id AND d.attempts > 0)
        AND EXISTS (
            SELECT FROM fila_mensagens q
            WHERE q.projeto = t.project AND q.telefone = t.phone AND q.registered AND NOT q.superseded AND q.timestamp > t.drained_at
        )
    FROM projects p WHERE p.name = t.project
$$;

CREATE FUNCTION public.fila_push(p_project text[], p_message_id text[], p_phone text[], p_address text[], p_text text[], p_kind text[], p_contact_name text[], p_session_id text[], p_media text[], p_sent_at timestamp with time zone[], p_metadata text[], p_ignored text[], OUT statuses text[], OUT reasons text[]) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
DECLARE
    recorded bigint;
    expected bigint;
    told text[];
BEGIN
    WITH message AS MATERIALIZED (
        SELECT m.*, row_number() OVER (PARTITION BY m.project, m.message_id ORDER BY m.ord) AS copy
        FROM unnest(
            p_project, p_message_id, p_phone, p_address, p_text, p_kind,
            p_contact_name, p_session_id, p_media, p_sent_at, p_metadata, p_ignored
        ) WITH ORDINALITY AS m (
            project, message_id, phone, address, text, kind,
            contact_name, session_id, media, sent_at, metadata, ignored, ord
        )
    ), known AS MATERIALIZED (
        SELECT m.*, m.message_id IS NULL OR (m.copy = 1 AND r.id IS NULL AND e.project IS NULL) AS is_new
        FROM message m
        LEFT JOIN LATERAL (
            SELECT r.id FROM receipts r WHERE r.project = m.project AND r.message_id = m.message_id LIMIT 1
        ) r ON true
        LEFT JOIN LATERAL (
            SELECT e.project FROM erased_receipts e
            -- Most have nothing to look for.
            WHERE (SELECT EXISTS (SELECT FROM erased_receipts)) AND e.project = m.project AND e.digest = sha256(convert_to(m.message_id, 'UTF8'))
            LIMIT 1
        ) e ON true
    ), conversation AS (
        INSERT INTO conversations AS c (project, phone, address, contact_name, session_id)
        SELECT
            k.project, k.phone, (array_agg(k.address ORDER BY k.ord DESC))[1],
            (array_agg(k.contact_name ORDER BY k.ord DESC) FILTER (WHERE k.contact_name IS NOT NULL))[1],
            (array_agg(k.session_id ORDER BY k.ord DESC) FILTER (WHERE k.session_id IS NOT NULL))[1]
        FROM known k
        WHERE k.is_new AND k.ignored IS NULL
        GROUP BY k.project, k.phone
        ORDER BY k.project, k.phone
        ON CONFLICT (project, phone) DO UPDATE SET
            address = excluded.address,
            contact_name = coalesce(excluded.contact_name, c.contact_name),
            session_id = coalesce(excluded.session_id, c.session_id)
        -- Locked in any case. One that is not returned is the agent's, and nothing about it has changed.
        WHERE c.address <> excluded.address OR c.contact_name IS DISTINCT FROM coalesce(excluded.contact_name, c.contact_name)
            OR c.session_id IS DISTINCT FROM coalesce(excluded.session_id, c.session_id) OR fila_mode(c.mode, c.until) <> 'agent'
        RETURNING c.project, c.phone, fila_mode(c.mode, c.until) AS mode
    ), numbered AS MATERIALIZED (
        SELECT nextval('fila_mensagens_id_seq') AS id, s.*
        FROM (
            SELECT
                k.*,
                coalesce(k.ignored, CASE WHEN p.takeover_messages = 'ignore' AND k.project || ':' || k.phone = ANY (h.humans) THEN 'human' END) AS reason
            FROM known k
            JOIN projects p ON p.name = k.project
            -- One row, once all of them are locked. Joined row by row a large batch would take the square of its length.
            CROSS JOIN (SELECT array_agg(c.project || ':' || c.phone) FILTER (WHERE c.mode = 'human') AS humans FROM conversation c) h
            WHERE k.is_new
            ORDER BY k.ord
        ) s
    ), receipt AS (
        INSERT INTO receipts (id, project, message_id, phone, status, reason)
        SELECT n.id, n.project, n.message_id, n.phone, CASE WHEN n.reason IS NULL THEN 'queued' ELSE 'ignored' END, n.reason
        FROM numbered n
        ORDER BY n.project, n.message_id
        -- Waits for a twin that is in flight: "duplicate" always means "already committed".
        ON CONFLICT (project, message_id) DO NOTHING
        RETURNING id
    ), queued AS (
        INSERT INTO fila_mensagens (
            id, projeto, id_mensagem, telefone, mensagem, kind, address, contact_name, session_id, media, sent_at, metadata, registered
        )
        SELECT
            n.id, n.project, coalesce(n.message_id, ''), n.phone, n.text, n.kind, n.address, n.contact_name, n.session_id,
            n.media::jsonb, n.sent_at, n.metadata::jsonb, true
        FROM numbered n
        WHERE n.reason IS NULL
        ORDER BY n.id
    )
    SELECT
        array_agg(CASE WHEN n.id IS NULL THEN 'duplicate' WHEN n.reason IS NULL THEN 'queued' ELSE 'ignored' END ORDER BY k.ord),
        array_agg(n.reason ORDER BY k.ord),
        (SELECT count(*) FROM receipt),
        count(*) FILTER (WHERE k.is_new)
    INTO statuses, reasons, recorded, expected
    FROM known k
    LEFT JOIN numbered n ON n.ord = k.ord;

    -- A twin came in between our look at the receipts and our own: nothing of this call may stay, and the
    -- repetition finds the twin's receipt. An unknown project ends here too.
    IF recorded <> expected THEN
        IF EXISTS (SELECT FROM unnest(p_project) AS wanted (name) WHERE NOT EXISTS (SELECT FROM projects p WHERE p.name = wanted.name)) THEN
            RAISE EXCEPTION 'unknown project' USING ERRCODE = 'FI404';
        END IF;
        RAISE EXCEPTION 'a message of this batch was registered by another session meanwhile' USING ERRCODE = '40001';
    END IF;
    IF 'from_me' = ANY (reasons) IS NOT TRUE THEN
        RETURN;
    END IF;
    -- The clinic's own words: an echo of ours, or a person who takes the conversation over.
    FOR place IN 1 .. cardinality(p_project) LOOP
        IF statuses[place] = 'ignored' AND reasons[place] = 'from_me' THEN
            IF fila_is_echo(p_project[place], p_phone[place], p_message_id[place], p_text[place]) THEN
                reasons[place] := 'echo';
            ELSIF (p_project[place] || ':' || p_phone[place]) = ANY (told) IS NOT TRUE THEN
                -- Once for all that somebody wrote into this conversation.
                told := told || (p_project[place] || ':' || p_phone[place]);
                PERFORM fila_clinic_wrote(p_project[place], p_phone[place]);
            END IF;
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION public.fila_reconciled(t public.turns, p_outcome text) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO audit (project, phone, turn_id, action, actor, detail)
    VALUES (t.project, t.phone, t.id, 'reconcile', 'fila', jsonb_build_object('outcome', p_outcome))
$$;

CREATE FUNCTION public.fila_redrive(p_turn bigint, p_by text, p_reason text, p_project text DEFAULT NULL::text, p_force boolean DEFAULT false) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    t turns;
BEGIN
    PERFORM fila_require('by', p_by);
    PERFORM fila_require('reason', p_reason);
    t := fila_lock_turn(p_project, p_turn);
    IF t.state <> 'dead' THEN
        PERFORM fila_refuse('FI409', 'turn ' || p_turn || ' is ' || t.state || ', only a dead turn can be redriven');
    ELSIF EXISTS (SELECT FROM turns o WHERE o.project = t.project AND o.phone = t.phone AND o.open) THEN
        PERFORM fila_refuse('FI409', 'another turn of the conversation is open; wait for its end');
    ELSIF EXISTS (
        SELECT FROM conversations c WHERE c.project = t.project AND c.phone = t.phone AND fila_mode(c.mode, c.until) = 'human'
    ) THEN
        PERFORM fila_refuse('FI409', 'a person has the conversation, and the turn would be discarded; release it first');
    ELSIF NOT p_force AND (t.answered_later OR EXISTS (
        SELECT FROM turns o WHERE o.project = t.project AND o.phone = t.phone AND o.id > t.id AND o.state = 'done'
    )) THEN
        PERFORM fila_refuse('FI409', 'a later turn of the conversation was already answered; force the redrive if this one shall be answered after it');
    END IF;
    UPDATE turns SET
        state = 'retrying', finished_at = NULL, reason = NULL,
        -- The call of a discarded turn may not have hung up yet, and no other begins beside it.
        next_attempt_at = greatest(clock_timestamp(), (
            SELECT max(k.lease_until) FROM hanging_calls k WHERE k.project = t.project AND k.digest = sha256(convert_to(t.phone, 'UTF8'))
        )),
        agent_failures = 0, delivery_failures = 0, crashes = 0, silenced = false
    WHERE id = p_turn;
    UPDATE deliveries SET state = 'pending' WHERE turn_id = p_turn AND part > 0 AND state IN ('failed', 'unknown', 'sending');
    -- A last word whose result nobody wrote down is not said a second time, should the turn die again.
    UPDATE deliveries SET state = 'unknown' WHERE turn_id = p_turn AND part = 0 AND state = 'sending';
    INSERT INTO audit (project, phone, turn_id, action, actor, reason) VALUES (t.project, t.phone, t.id, 'redrive', p_by, p_reason);
    PERFORM fila_wake(t.project, t.phone);
    RETURN 'retrying';
END
$$;

CREATE FUNCTION public.fila_refuse(p_code text, p_message text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = p_code, MESSAGE = coalesce(p_message, 'an argument is null');
END
$$;

CREATE FUNCTION public.fila_release(p_project text, p_phone text, p_by text) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    c conversations;
BEGIN
    PERFORM fila_require('by', p_by);
    c := fila_lock(p_project, p_phone);
    IF c.mode = 'suspended' THEN
        PERFORM fila_refuse('FI409', 'the conversation is suspended; resume it');
    END IF;
    UPDATE conversations SET mode = 'agent', until = NULL WHERE project = p_project AND phone = c.phone;
    INSERT INTO audit (project, phone, action, actor) VALUES (p_project, c.phone, 'release', p_by);
    PERFORM fila_wake(p_project, c.phone);
    RETURN 'agent';
END
$$;

CREATE FUNCTION public.fila_renew(p_turns bigint[], p_attempts integer[], p_lease double precision) RETURNS TABLE(turn_id bigint, interrupted boolean, renewed boolean)
    LANGUAGE sql
    AS $$
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

CREATE FUNCTION public.fila_reply(p_project text, p_turn bigint, p_attempt integer, p_reply text, p_parts text[], p_handoff boolean, p_send boolean, p_instance text, p_lease double precision, OUT verdict text) RETURNS text
    LANGUAGE plpgsql
    SET lock_timeout TO '300ms'
    AS $$
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

CREATE FUNCTION public.fila_require(p_name text, p_value text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- Every white space of Unicode, which btrim alone does not know.
    IF btrim(coalesce(p_value, ''), E' \t\n\u000B\f\r\u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000') = '' THEN
        PERFORM fila_refuse('FI422', p_name || ' is required');
    END IF;
    PERFORM fila_bound(p_name, p_value);
END
$$;

CREATE FUNCTION public.fila_resolve(p_turn bigint, p_outcome text, p_by text, p_reason text, p_project text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    t turns;
    ended text;
BEGIN
    PERFORM fila_require('by', p_by);
    PERFORM fila_require('reason', p_reason);
    IF p_outcome IS NULL OR p_outcome NOT IN ('done', 'not_done') THEN
        PERFORM fila_refuse('FI422', 'outcome must be done or not_done');
    END IF;
    t := fila_lock_turn(p_project, p_turn);
    IF t.state <> 'unknown' THEN
        PERFORM fila_refuse('FI409', 'turn ' || p_turn || ' is ' || t.state || ', only an unknown one can be resolved');
    END IF;
    UPDATE deliveries SET
        state = CASE p_outcome WHEN 'done' THEN 'sent' ELSE 'pending' END,
        sent_at = CASE p_outcome WHEN 'done' THEN clock_timestamp() END
    WHERE turn_id = p_turn AND part > 0 AND state = 'unknown';
    IF p_outcome = 'done' AND NOT EXISTS (SELECT FROM deliveries d WHERE d.turn_id = p_turn AND d.part > 0 AND d.state <> 'sent') THEN
        PERFORM fila_finish(p_turn);
        ended := 'done';
    ELSE
        ended := fila_go_on(t);
    END IF;
    INSERT INTO audit (project, phone, turn_id, action, actor, reason, detail)
    VALUES (t.project, t.phone, t.id, 'resolve', p_by, p_reason, jsonb_build_object('outcome', p_outcome));
    PERFORM fila_wake(t.project, t.phone);
    RETURN ended;
END
$$;

CREATE FUNCTION public.fila_resume(p_project text, p_phone text, p_waiting text, p_by text) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    c conversations;
    settled bigint := 0;
BEGIN
    PERFORM fila_require('by', p_by);
    IF p_waiting IS NULL OR p_waiting NOT IN ('answer', 'discard') THEN
        PERFORM fila_refuse('FI422', 'waiting must be answer or discard');
    END IF;
    c := fila_lock(p_project, p_phone);
    IF c.mode <> 'suspended' THEN
        PERFORM fila_refuse('FI409', 'the conversation is not suspended');
    END IF;
    UPDATE conversations SET mode = 'agent', until = NULL, suspended_by = NULL WHERE project = p_project AND phone = c.phone;
    IF p_waiting = 'discard' THEN
        settled := fila_ignore_waiting(p_project, c.phone, 'discarded');
        PERFORM fila_discard_turn(t, 'discarded at resume') FROM turns t WHERE t.project = p_project AND t.phone = c.phone AND t.open;
    ELSIF EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = p_project AND q.telefone = c.phone) THEN
        UPDATE conversations SET due_now_at = clock_timestamp(), due_now_by = 'resume' WHERE project = p_project AND phone = c.phone;
    END IF;
    INSERT INTO audit (project, phone, action, actor, detail)
    VALUES (p_project, c.phone, 'resume', p_by, jsonb_build_object('waiting', p_waiting, 'messages_discarded', settled));
    PERFORM fila_wake(p_project, c.phone);
    RETURN 'agent';
END
$$;

CREATE FUNCTION public.fila_send(p_turn bigint, p_attempt integer, p_part integer) RETURNS text
    LANGUAGE plpgsql
    SET lock_timeout TO '300ms'
    AS $$
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

CREATE FUNCTION public.fila_sent(p_turn bigint, p_attempt integer, p_part integer, p_provider_id text, p_go_on boolean) RETURNS text
    LANGUAGE plpgsql
    SET lock_timeout TO '300ms'
    AS $$
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

CREATE FUNCTION public.fila_silence(p_project text, p_phone text) RETURNS void
    LANGUAGE sql
    AS $$
    UPDATE deliveries d SET state = 'unknown'
    FROM turns t
    WHERE t.project = p_project AND t.phone = p_phone AND t.dead AND d.turn_id = t.id AND d.part = 0 AND d.state = 'sending'
$$;

CREATE FUNCTION public.fila_supersede(p_turn bigint, p_reason text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.fila_suspend(p_project text, p_phone text, p_by text, p_reason text) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    c conversations;
BEGIN
    PERFORM fila_require('by', p_by);
    PERFORM fila_require('reason', p_reason);
    c := fila_lock(p_project, p_phone);
    PERFORM fila_silence(p_project, c.phone);
    UPDATE conversations SET mode = 'suspended', until = NULL, suspended_by = NULL, due_now_at = NULL, due_now_by = NULL
    WHERE project = p_project AND phone = c.phone;
    INSERT INTO audit (project, phone, action, actor, reason) VALUES (p_project, c.phone, 'suspend', p_by, p_reason);
    RETURN 'suspended';
END
$$;

CREATE FUNCTION public.fila_sweep(p_projects text[], p_cursors text[], p_page integer) RETURNS TABLE(kind text, project text, phone text, found integer)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
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

CREATE FUNCTION public.fila_takeover(p_project text, p_phone text, p_minutes double precision, p_by text, p_reason text) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    c conversations;
    ends timestamptz;
BEGIN
    PERFORM fila_require('by', p_by);
    PERFORM fila_bound('reason', p_reason);
    -- Less than a microsecond is nothing to Postgres.
    IF p_minutes < 1e-7 OR p_minutes > 525600 THEN
        PERFORM fila_refuse('FI422', 'minutes must be over 0 and at most 525600 (a year)');
    END IF;
    c := fila_lock(p_project, p_phone);
    ends := fila_give_to_human(p_project, c.phone, make_interval(secs => p_minutes * 60), p_by, p_reason);
    -- With messages held, someone must look when the time is over.
    PERFORM fila_wake(p_project, c.phone);
    RETURN 'human until ' || fila_time(ends);
END
$$;

CREATE FUNCTION public.fila_time(at timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

CREATE FUNCTION public.fila_typing(p_project text, p_phone text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    key text;
BEGIN
    SELECT fila_key(p_phone, p.country) INTO key FROM projects p WHERE p.name = p_project;
    UPDATE conversations c SET typing_at = clock_timestamp()
    WHERE c.project = p_project AND c.phone = key
        AND EXISTS (SELECT FROM fila_mensagens q WHERE q.projeto = p_project AND q.telefone = key);
    RETURN FOUND;
END
$$;

CREATE FUNCTION public.fila_wake(p_project text, p_phone text) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO wakeups (project, phone) VALUES (p_project, p_phone)
    ON CONFLICT (project, phone) DO UPDATE SET asked_at = excluded.asked_at
$$;

CREATE FUNCTION public.fila_yield(p_turn bigint) RETURNS text
    LANGUAGE sql
    AS $$
    UPDATE turns SET state = 'discarded', reason = 'human', finished_at = clock_timestamp(), lease_until = NULL WHERE id = p_turn
    RETURNING state
$$;

CREATE TABLE public.audit (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    project text NOT NULL,
    phone text,
    turn_id bigint,
    action text NOT NULL,
    actor text NOT NULL,
    reason text,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE public.audit ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.deliveries (
    turn_id bigint NOT NULL,
    part integer NOT NULL,
    project text NOT NULL,
    text text NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    provider_id text,
    intended_at timestamp with time zone,
    sent_at timestamp with time zone,
    CONSTRAINT deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'sending'::text, 'sent'::text, 'unknown'::text, 'failed'::text])))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.erased_receipts (
    project text NOT NULL,
    digest bytea NOT NULL,
    erased_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE SEQUENCE public.fila_mensagens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.fila_mensagens (
    id bigint DEFAULT nextval('public.fila_mensagens_id_seq'::regclass) NOT NULL,
    projeto text NOT NULL,
    id_mensagem text DEFAULT ''::text NOT NULL,
    telefone text NOT NULL,
    mensagem text NOT NULL,
    "timestamp" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    kind text DEFAULT 'text'::text NOT NULL,
    address text,
    contact_name text,
    session_id text,
    media jsonb,
    sent_at timestamp with time zone,
    metadata jsonb,
    registered boolean DEFAULT false NOT NULL,
    superseded boolean DEFAULT false NOT NULL,
    CONSTRAINT fila_mensagens_timestamp_check CHECK (isfinite("timestamp"))
)
PARTITION BY LIST (projeto);

CREATE TABLE public.receipts (
    id bigint NOT NULL,
    project text NOT NULL,
    message_id text,
    phone text NOT NULL,
    status text NOT NULL,
    reason text,
    received_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT receipts_check CHECK (((status = 'ignored'::text) = (reason IS NOT NULL))),
    CONSTRAINT receipts_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'ignored'::text, 'settled'::text])))
)
WITH (autovacuum_vacuum_insert_threshold='100000');

CREATE VIEW public.fila_lost AS
 SELECT r.project,
    r.id,
    r.message_id,
    r.phone,
    r.received_at
   FROM public.receipts r
  WHERE ((r.status = 'queued'::text) AND (NOT (EXISTS ( SELECT
           FROM public.fila_mensagens q
          WHERE ((q.projeto = r.project) AND (q.telefone = r.phone) AND (q.id = r.id))))) AND (NOT (EXISTS ( SELECT
           FROM public.turns t
          WHERE ((t.project = r.project) AND (t.phone = r.phone) AND (r.id = ANY (t.message_ids)) AND (t.state <> 'superseded'::text))))));

CREATE VIEW public.fila_overview AS
 SELECT p.name AS project,
    COALESCE(q.waiting, (0)::bigint) AS waiting,
    COALESCE(q.conversations, (0)::bigint) AS waiting_conversations,
    (round(EXTRACT(epoch FROM (clock_timestamp() - q.oldest)), 3))::double precision AS oldest_wait_seconds,
    COALESCE(t.active, (0)::bigint) AS active_turns,
    COALESCE(t.retrying, (0)::bigint) AS retrying,
    COALESCE(t.unknown, (0)::bigint) AS unknown,
    COALESCE(c.suspended, (0)::bigint) AS suspended,
    COALESCE(c.suspended_by_dead, (0)::bigint) AS suspended_by_dead,
    COALESCE(c.human, (0)::bigint) AS human,
    ( SELECT count(*) AS count
           FROM public.turns d
          WHERE ((d.project = p.name) AND d.dead)) AS dead,
    lateness.p99_seconds AS lateness_p99_seconds
   FROM ((((public.projects p
     LEFT JOIN ( SELECT m.projeto,
            count(*) AS waiting,
            count(DISTINCT m.telefone) AS conversations,
            min(m."timestamp") AS oldest
           FROM public.fila_mensagens m
          GROUP BY m.projeto) q ON ((q.projeto = p.name)))
     LEFT JOIN LATERAL ( SELECT count(*) FILTER (WHERE (o.state = ANY (ARRAY['running'::text, 'replied'::text, 'sending'::text]))) AS active,
            count(*) FILTER (WHERE (o.state = 'retrying'::text)) AS retrying,
            count(*) FILTER (WHERE (o.state = 'unknown'::text)) AS unknown
           FROM public.turns o
          WHERE ((o.project = p.name) AND o.open)) t ON (true))
     LEFT JOIN LATERAL ( SELECT count(*) FILTER (WHERE (h.mode = 'suspended'::text)) AS suspended,
            count(*) FILTER (WHERE ((h.mode = 'suspended'::text) AND (h.suspended_by IS NOT NULL))) AS suspended_by_dead,
            count(*) FILTER (WHERE (public.fila_mode(h.mode, h.until) = 'human'::text)) AS human
           FROM public.conversations h
          WHERE ((h.project = p.name) AND (h.mode <> 'agent'::text))) c ON (true))
     LEFT JOIN LATERAL ( SELECT percentile_cont((0.99)::double precision) WITHIN GROUP (ORDER BY ((EXTRACT(epoch FROM (l.drained_at - l.due_at)))::double precision)) AS p99_seconds
           FROM ( SELECT x.drained_at,
                    x.due_at
                   FROM public.turns x
                  WHERE ((x.project >= p.name) AND (x.project <= p.name))
                  ORDER BY x.project DESC, x.id DESC
                 LIMIT 1000) l) lateness ON (true));

CREATE TABLE public.hanging_calls (
    project text NOT NULL,
    digest bytea NOT NULL,
    turn_id bigint NOT NULL,
    attempt integer NOT NULL,
    lease_until timestamp with time zone NOT NULL
);

ALTER TABLE public.turns ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.turns_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.wakeups (
    project text NOT NULL,
    phone text NOT NULL,
    asked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_pkey PRIMARY KEY (project, phone);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (turn_id, part);

ALTER TABLE ONLY public.erased_receipts
    ADD CONSTRAINT erased_receipts_pkey PRIMARY KEY (project, digest);

ALTER TABLE ONLY public.hanging_calls
    ADD CONSTRAINT hanging_calls_pkey PRIMARY KEY (project, digest, turn_id);

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.receipts
    ADD CONSTRAINT receipts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.turns
    ADD CONSTRAINT turns_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.wakeups
    ADD CONSTRAINT wakeups_pkey PRIMARY KEY (project, phone);

CREATE INDEX audit_conversation ON public.audit USING btree (project, phone, id);

CREATE INDEX conversations_held ON public.conversations USING btree (project, mode) WHERE (mode <> 'agent'::text);

CREATE INDEX deliveries_provider ON public.deliveries USING btree (project, provider_id) WHERE (provider_id IS NOT NULL);

CREATE INDEX erased_receipts_age ON public.erased_receipts USING btree (project, erased_at);

CREATE INDEX receipts_conversation ON public.receipts USING btree (project, phone);

CREATE UNIQUE INDEX receipts_message ON public.receipts USING btree (project, message_id);

CREATE INDEX turns_conversation ON public.turns USING btree (project, phone, id);

CREATE INDEX turns_dead ON public.turns USING btree (project, id) WHERE dead;

CREATE UNIQUE INDEX turns_open ON public.turns USING btree (project, phone) WHERE open;

CREATE INDEX turns_project ON public.turns USING btree (project, id);

