-- Who has the floor: what people do to a conversation or a turn. The API, the command line and psql call the
-- same functions. Each takes the conversation's lock, leaves its audit row in the same transaction, and leaves
-- a wake-up for the instances. Refusals: FI404 absent, FI409 not in this state, FI422 a bad argument.

-- +goose Up

-- +goose StatementBegin
CREATE FUNCTION fila_refuse(p_code text, p_message text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = p_code, MESSAGE = coalesce(p_message, 'an argument is null');
END
$$;
-- +goose StatementEnd

-- The conversation of a phone in any of its forms, made if need be and locked.
-- +goose StatementBegin
CREATE FUNCTION fila_lock(p_project text, p_phone text) RETURNS conversations
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fila_bound(p_name text, p_value text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF char_length(p_value) > 1000 THEN
        PERFORM fila_refuse('FI422', p_name || ' has ' || char_length(p_value) || ' characters, at most 1000 are kept');
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fila_require(p_name text, p_value text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- Every white space of Unicode, which btrim alone does not know.
    IF btrim(coalesce(p_value, ''), E' \t\n\u000B\f\r\u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000') = '' THEN
        PERFORM fila_refuse('FI422', p_name || ' is required');
    END IF;
    PERFORM fila_bound(p_name, p_value);
END
$$;
-- +goose StatementEnd

-- What waits is settled without an answer, with its reason on each receipt. The conversation is locked.
-- +goose StatementBegin
CREATE FUNCTION fila_ignore_waiting(p_project text, p_phone text, p_reason text) RETURNS bigint
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- The last word of a dead turn, which may still be tried again, is not said any more; it may have been on its way. The conversation is
-- locked.
-- +goose StatementBegin
CREATE FUNCTION fila_silence(p_project text, p_phone text) RETURNS void
LANGUAGE sql AS $$
    UPDATE deliveries d SET state = 'unknown'
    FROM turns t
    WHERE t.project = p_project AND t.phone = p_phone AND t.dead AND d.turn_id = t.id AND d.part = 0 AND d.state = 'sending'
$$;
-- +goose StatementEnd

-- The conversation goes to a person; the caller holds its lock. Its open turn sends nothing more, even if the person gives the
-- conversation back before it could. What is on its way ends first, since the next turn must not start beside it; an unknown
-- outcome stays to be resolved.
-- +goose StatementBegin
CREATE FUNCTION fila_give_to_human(p_project text, p_phone text, p_for interval, p_by text, p_reason text) RETURNS timestamptz
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fila_takeover(p_project text, p_phone text, p_minutes double precision, p_by text, p_reason text) RETURNS text
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- Whether what the clinic wrote are our own words, which come back as well. They are told by the provider's id, or, where either side
-- has none (the echo is faster than the provider's answer, or comes without it), by the text of what went out in the last minutes.
-- +goose StatementBegin
CREATE FUNCTION fila_is_echo(p_project text, p_phone text, p_message_id text, p_text text) RETURNS boolean
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- A person of the clinic wrote, outside of us, and has the conversation where the project says so.
-- +goose StatementBegin
CREATE FUNCTION fila_clinic_wrote(p_project text, p_phone text) RETURNS void
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fila_release(p_project text, p_phone text, p_by text) RETURNS text
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fila_suspend(p_project text, p_phone text, p_by text, p_reason text) RETURNS text
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- Ends an open or dead turn without an answer. A call that is running is fenced off by the raised attempt, and keeps its lease, unless it
-- only asks about an unknown outcome. A part, or a last word, that is on its way may have gone out. The conversation is locked.
-- +goose StatementBegin
CREATE FUNCTION fila_discard_turn(t turns, p_reason text) RETURNS void
LANGUAGE sql AS $$
    UPDATE turns SET
        state = 'discarded', reason = p_reason, attempt = attempt + t.open::integer, finished_at = clock_timestamp(),
        lease_until = NULL, next_attempt_at = NULL, reply_until = NULL, reconcile_since = NULL
    WHERE id = t.id;
    SELECT fila_hang(t, CASE WHEN t.state <> 'unknown' THEN t.lease_until END);
    UPDATE deliveries SET state = 'unknown' WHERE turn_id = t.id AND state = 'sending';
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fila_resume(p_project text, p_phone text, p_waiting text, p_by text) RETURNS text
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fila_flush(p_project text, p_phone text, p_by text) RETURNS text
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- The patient is typing: the window starts again, if anything waits in it.
-- +goose StatementBegin
CREATE FUNCTION fila_typing(p_project text, p_phone text) RETURNS boolean
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- The turn and its conversation, locked in that order of ours: conversation first.
-- +goose StatementBegin
CREATE FUNCTION fila_lock_turn(p_project text, p_turn bigint) RETURNS turns
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- The agent asks before an effect that can't be undone. Answers proceed, superseded, human or stale; the same
-- again however often it is asked, as long as the turn runs.
-- +goose StatementBegin
CREATE FUNCTION fila_confirm(p_project text, p_turn bigint, p_attempt integer) RETURNS text
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- A dead turn begins again: same turn, same messages, same key. Refused while another turn of the conversation
-- is open, and, unless forced, when a later one was already answered.
-- +goose StatementBegin
CREATE FUNCTION fila_redrive(p_turn bigint, p_by text, p_reason text, p_project text DEFAULT NULL, p_force boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION fila_discard(p_turn bigint, p_by text, p_reason text, p_project text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- A person says how an unknown outcome turned out. Done: the agent's effect is taken as the whole turn; a part
-- counts as sent and the rest follows. Not done: the same call again, under the same key. Neither where a person silenced the turn.
-- +goose StatementBegin
CREATE FUNCTION fila_resolve(p_turn bigint, p_outcome text, p_by text, p_reason text, p_project text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- Forgets a patient: one transaction under the conversation's lock, both forms of the number. Whatever is in
-- flight finds its turn gone and sends nothing more. What remains are digests of message ids, so that a late
-- repetition is known again, one of the phone for as long as a call is under way, and another in its audit row.
-- +goose StatementBegin
CREATE FUNCTION fila_erase(p_project text, p_phone text, p_by text) RETURNS jsonb
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION fila_erase, fila_resolve, fila_discard, fila_redrive, fila_confirm, fila_lock_turn, fila_typing, fila_flush, fila_resume, fila_discard_turn,
    fila_suspend, fila_release, fila_clinic_wrote, fila_is_echo, fila_takeover, fila_give_to_human, fila_silence, fila_ignore_waiting, fila_require, fila_bound, fila_lock, fila_refuse;
