-- How a message arrives: the conversation's key, a project's table, the push of a batch, rows of other programs.

-- +goose Up

-- The key of a conversation. A typed number loses its punctuation; Brazilian mobiles with and without the
-- ninth digit are one patient. Anything else (JID, LID, BSUID) is kept whole. conversation.Key is the same
-- rule in Go; a test holds them together.
-- +goose StatementBegin
CREATE FUNCTION fila_key(phone text, country text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
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
$$;
-- +goose StatementEnd

-- The mode that counts now: a person's time may have run out without anyone releasing it.
-- +goose StatementBegin
CREATE FUNCTION fila_mode(mode text, until timestamptz) RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN mode = 'human' AND until <= clock_timestamp() THEN 'agent' ELSE mode END
$$;
-- +goose StatementEnd

-- The project's numbers, and its table when it is new. LIKE and ATTACH, because PARTITION OF locks the parent
-- against the inserts of every other project for as long as anyone reads it.
-- +goose StatementBegin
CREATE FUNCTION fila_open_project(
    p_name text, p_country text, p_debounce double precision, p_max_wait double precision, p_max_messages integer,
    p_joiner text, p_during_turn text, p_supersede_limit integer, p_on_dead text, p_takeover_on_human boolean,
    p_takeover_seconds double precision, p_takeover_messages text, p_fallback_text text, p_fallback_takeover boolean,
    p_receipts_seconds double precision DEFAULT 8 * 86400, p_turns_seconds double precision DEFAULT 30 * 86400, p_dead_seconds double precision DEFAULT 14 * 86400
) RETURNS void
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- A batch of messages, whole or not at all; one call, one snapshot, one commit. Answers with one status and
-- one reason a message, in the order given.
--
-- Locks go in one order: conversations by key, then receipts by key. (What the clinic itself wrote locks its
-- conversation last; should that ever meet another batch, the lock timeout undoes one of them, and it is
-- repeated.) Registration numbers are
-- drawn when every conversation of the batch is locked, so that within a conversation the order of numbers
-- is the order of commits.
--
-- Sequential scans are off because a cached plan may be older than the first million receipts; and it is cached, because planning takes
-- longer than storing ten messages, and looking at the lengths of the arrays finds no better one.
-- +goose StatementBegin
CREATE FUNCTION fila_push(
    p_project text[], p_message_id text[], p_phone text[], p_address text[], p_text text[], p_kind text[],
    p_contact_name text[], p_session_id text[], p_media text[], p_sent_at timestamptz[], p_metadata text[], p_ignored text[],
    OUT statuses text[], OUT reasons text[]
)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
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
-- +goose StatementEnd

-- Rows that other programs inserted get what a push would have given them: conversation, receipt, key. A row
-- whose id is known already goes away: it is not answered again. Only those of p_phones, where these are given.
-- Returns the phones that have work now.
-- Conversations first, rows second: the order of locks that the drain has too. Waits for nobody who holds one.
-- +goose StatementBegin
CREATE FUNCTION fila_adopt(p_project text, p_phones text[] DEFAULT NULL) RETURNS SETOF text
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
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
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION fila_adopt, fila_push, fila_open_project, fila_mode, fila_key;
