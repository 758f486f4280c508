-- Who may do what. Four roles without a login, to be granted to those that have one:
--
--   fila_owner    makes and changes the schema (fila migrate)
--   fila_service  runs the service (fila serve --no-migrate), and the people who act by psql
--   fila_support  reads everything but what patients and agents wrote, and their names
--   fila_feeder   may be let into the queue of one project: SELECT fila_grant_feeder('clinfeto', 'n8n')
--
-- Roles belong to the whole server, so the migration makes them only if it may; else a DBA does, and then runs
-- SELECT fila_grant_roles().

-- +goose Up

-- +goose StatementBegin
CREATE FUNCTION fila_grant_roles() RETURNS void
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- Lets a program with this role write into the queue of one project, and nothing else: the columns that it may fill are those of
-- a message; when it is registered, and whose it is, is not its to say.
-- +goose StatementBegin
CREATE FUNCTION fila_grant_feeder(p_project text, p_role text) RETURNS void
LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- These two do what their callers may not do themselves: make a project's table, and read a whole row to explain it without its
-- text. They find their tables where they are now, not where a caller's path leads.
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION fila_open_project SECURITY DEFINER SET search_path = %I, pg_temp', current_schema());
    EXECUTE format('ALTER FUNCTION fila_explain SECURITY DEFINER SET search_path = %I, pg_temp', current_schema());
END
$$;
-- +goose StatementEnd

SELECT fila_grant_roles();

-- +goose Down
ALTER FUNCTION fila_explain SECURITY INVOKER RESET search_path;
ALTER FUNCTION fila_open_project SECURITY INVOKER RESET search_path;
DROP FUNCTION fila_grant_feeder, fila_grant_roles;
