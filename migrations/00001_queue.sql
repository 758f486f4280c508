-- The queue: what a patient wrote and nobody has answered yet.

-- +goose Up

SET LOCAL lock_timeout = '5s';

-- What the rules in the database need to know of each project's configuration. Every instance writes its
-- projects here when it starts and when its file is read again, so that psql, the API and every instance
-- judge a conversation by the same numbers.
CREATE TABLE projects (
    name                 text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9_]{0,39}$'),
    country              text NOT NULL DEFAULT '',
    debounce             interval NOT NULL,
    max_wait             interval NOT NULL,
    max_messages         integer NOT NULL CHECK (max_messages > 0),
    joiner               text NOT NULL,
    during_turn          text NOT NULL CHECK (during_turn IN ('queue', 'supersede', 'interrupt')),
    supersede_limit      integer NOT NULL,
    on_dead              text NOT NULL CHECK (on_dead IN ('advance', 'suspend')),
    takeover_on_human    boolean NOT NULL,
    takeover_for         interval NOT NULL,
    takeover_messages    text NOT NULL CHECK (takeover_messages IN ('ignore', 'hold')),
    fallback_text        text NOT NULL DEFAULT '',
    fallback_takeover    boolean NOT NULL DEFAULT false,
    keep_receipts        interval NOT NULL DEFAULT interval '8 days',
    keep_turns           interval NOT NULL DEFAULT interval '30 days',
    keep_dead            interval NOT NULL DEFAULT interval '14 days',
    updated_at           timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Registration order over all projects. Cached values would let a message that was sent after another one
-- was acknowledged get the lower number, so the cache stays at 1.
CREATE SEQUENCE fila_mensagens_id_seq AS bigint CACHE 1;

-- One physical table a project (fila_open_project makes them). The first six columns are those that
-- operators and other programs have always known. Ids come from a default, not from an identity column:
-- until Postgres 17 an INSERT straight into a partition with an identity column fails.
CREATE TABLE fila_mensagens (
    id           bigint NOT NULL DEFAULT nextval('fila_mensagens_id_seq'),
    projeto      text NOT NULL,
    id_mensagem  text NOT NULL DEFAULT '',
    telefone     text NOT NULL,
    mensagem     text NOT NULL,
    timestamp    timestamptz NOT NULL DEFAULT clock_timestamp() CHECK (isfinite(timestamp)),
    kind         text NOT NULL DEFAULT 'text',
    address      text,
    contact_name text,
    session_id   text,
    media        jsonb,
    sent_at      timestamptz,
    metadata     jsonb,
    -- false: another program inserted the row, and it has neither receipt nor conversation yet.
    registered   boolean NOT NULL DEFAULT false,
    -- true: the row came back from a superseded turn; the newer text's window decides, not this row's age.
    superseded   boolean NOT NULL DEFAULT false
) PARTITION BY LIST (projeto);

-- Every message ever accepted and what became of it at arrival. Two rows with one id cannot exist, whoever
-- the phone; a message without an id has a receipt too, or nobody could tell that it was lost.
CREATE TABLE receipts (
    id          bigint PRIMARY KEY,
    project     text NOT NULL,
    message_id  text,
    phone       text NOT NULL,
    -- queued: it waits or is in a turn. settled: its turn was answered, or ended, so long ago that it is kept no more.
    status      text NOT NULL CHECK (status IN ('queued', 'ignored', 'settled')),
    reason      text,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((status = 'ignored') = (reason IS NOT NULL))
) WITH (autovacuum_vacuum_insert_threshold = 100000);

CREATE UNIQUE INDEX receipts_message ON receipts (project, message_id);
-- For erase and export: without it they would read every receipt under the conversation's lock.
CREATE INDEX receipts_conversation ON receipts (project, phone);

-- What is left of the receipts of an erased conversation: enough to know a late repetition again.
CREATE TABLE erased_receipts (
    project   text NOT NULL,
    digest    bytea NOT NULL,
    erased_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project, digest)
);

-- A call that was under way when its turn ended (discarded, answered by a callback, erased): until it has hung up, or its lease is over,
-- no other turn of that phone may begin. Of an erased one nothing else is left to tell of it, hence the digest.
CREATE TABLE hanging_calls (
    project     text NOT NULL,
    digest      bytea NOT NULL,
    turn_id     bigint NOT NULL,
    attempt     integer NOT NULL,
    lease_until timestamptz NOT NULL,
    PRIMARY KEY (project, digest, turn_id)
);

-- One row a conversation, locked by everything that decides about it. No index on what changes with every
-- message, so that those updates stay heap-only.
CREATE TABLE conversations (
    project          text NOT NULL,
    phone            text NOT NULL,
    address          text NOT NULL,
    contact_name     text,
    session_id       text,
    mode             text NOT NULL DEFAULT 'agent' CHECK (mode IN ('agent', 'human', 'suspended')),
    until            timestamptz,
    -- The dead turn that suspended it (on_dead: suspend); null where a person did.
    suspended_by     bigint,
    typing_at        timestamptz,
    -- The burst is due since then, whatever the window says, and why (flush, resume, count).
    due_now_at       timestamptz,
    due_now_by       text,
    -- Turns whose messages came back and open the next turn; as many as were superseded in a row.
    superseded_turns bigint[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (project, phone)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX conversations_held ON conversations (project, mode) WHERE mode <> 'agent';

-- A conversation that somebody changed from outside a running instance (psql, the command line): the next
-- sweep of any instance looks at it and takes the row away.
CREATE TABLE wakeups (
    project  text NOT NULL,
    phone    text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project, phone)
);

-- +goose Down
DROP TABLE wakeups, conversations, hanging_calls, erased_receipts, receipts, fila_mensagens, projects;
DROP SEQUENCE fila_mensagens_id_seq;
