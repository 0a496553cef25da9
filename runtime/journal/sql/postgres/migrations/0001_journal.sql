-- Threads, sessions, runs, who is at work on them, their events, and blobs by digest. Payload columns are bytes.
-- Everything lies in a schema of its own, because the database may be the host's.

-- The store's clock, in ms since the epoch: every time that the store decides by is asked here.
CREATE FUNCTION agui_bridge.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';

CREATE TABLE agui_bridge.threads (
    thread_id text PRIMARY KEY,
    tenant_id text NOT NULL,
    owner_id text NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE agui_bridge.sessions (
    tenant_id text NOT NULL,
    owner_id text NOT NULL,
    session_id text NOT NULL,
    thread_id text NOT NULL UNIQUE REFERENCES agui_bridge.threads (thread_id),
    agent_id text NOT NULL,
    title text,
    created_at bigint NOT NULL,
    hidden_at bigint,
    PRIMARY KEY (tenant_id, owner_id, session_id)
);

CREATE INDEX sessions_listed ON agui_bridge.sessions (tenant_id, owner_id, created_at, session_id)
WHERE hidden_at IS NULL;

-- run_no keeps the key of an event small and orders the runs of a thread. All events of a run were recorded between
-- its began_at and its recorded_at, even if the machine's clock is set back in between: a reader looks into no other
-- partition. Room is left on the pages: the end of the journal moves in place.
CREATE TABLE agui_bridge.runs (
    run_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL CONSTRAINT runs_run_id UNIQUE,
    tenant_id text NOT NULL,
    owner_id text NOT NULL,
    thread_id text NOT NULL REFERENCES agui_bridge.threads (thread_id),
    session_id text,
    agent_id text NOT NULL,
    client_run_id text NOT NULL,
    input_digest text NOT NULL,
    attempt bigint NOT NULL,
    status text NOT NULL CHECK (
        status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'suspended', 'interrupted', 'cancelled')
    ),
    base bigint NOT NULL CHECK (base >= 0),
    last_seq bigint NOT NULL CHECK (last_seq >= 0),
    fence bigint NOT NULL,
    root_run_id text NOT NULL,
    created_at bigint NOT NULL,
    parent_run_id text,
    executor_instance_id text,
    started_at bigint,
    finished_at bigint,
    final_message_id text,
    error bytea,
    usage bytea,
    agent_snapshot_checksum text,
    context_snapshot_checksum text,
    trace_id text,
    began_at bigint NOT NULL,
    recorded_at bigint NOT NULL,
    CONSTRAINT runs_attempt UNIQUE (thread_id, client_run_id, input_digest, attempt)
) WITH (fillfactor = 60);

CREATE UNIQUE INDEX runs_active ON agui_bridge.runs (thread_id) WHERE status IN ('queued', 'running', 'cancelling');
CREATE INDEX runs_of_thread ON agui_bridge.runs (thread_id, run_no);
CREATE INDEX runs_listed ON agui_bridge.runs (tenant_id, owner_id, created_at, run_id);
CREATE INDEX runs_of_session ON agui_bridge.runs (tenant_id, owner_id, session_id, created_at, run_id);
CREATE INDEX runs_of_tree ON agui_bridge.runs (root_run_id, run_no);

CREATE TABLE agui_bridge.idempotency_keys (
    tenant_id text NOT NULL,
    owner_id text NOT NULL,
    key_digest text NOT NULL,
    request_digest text NOT NULL,
    message_id text NOT NULL,
    run_id text NOT NULL REFERENCES agui_bridge.runs (run_id),
    created_at bigint NOT NULL,
    CONSTRAINT idempotency_keys_key PRIMARY KEY (tenant_id, owner_id, key_digest)
);

-- Who is at work on a run, and what that executor is told. Apart from `runs`, so that a heartbeat never waits for an
-- append nor an append for a heartbeat. `fence` is the run's: both are changed in one statement.
CREATE TABLE agui_bridge.leases (
    run_no bigint PRIMARY KEY REFERENCES agui_bridge.runs (run_no) ON DELETE CASCADE,
    tenant_id text NOT NULL,
    executor_instance_id text,
    fence bigint NOT NULL,
    lease_expires_at bigint,
    cancel_reason text,
    read_at bigint
) WITH (fillfactor = 50);

CREATE INDEX leases_of_executor ON agui_bridge.leases (executor_instance_id);

-- One partition a week, by the store's clock, so that old weeks are dropped whole. What no partition takes lies in the
-- default one: no write is ever lost for want of a partition. There is no foreign key to `runs`: the statement that
-- appends joins with the run's row, and checking again would cost a look for each event.
CREATE TABLE agui_bridge.events (
    run_no bigint NOT NULL,
    seq bigint NOT NULL,
    root_seq bigint NOT NULL,
    event_type text NOT NULL,
    occurred_at bigint NOT NULL,
    recorded_at bigint NOT NULL,
    payload bytea NOT NULL,
    payload_checksum bytea NOT NULL,
    schema_version integer NOT NULL,
    tenant_id text NOT NULL DEFAULT '-',
    PRIMARY KEY (run_no, seq, recorded_at)
) PARTITION BY RANGE (recorded_at);

CREATE TABLE agui_bridge.events_default PARTITION OF agui_bridge.events DEFAULT;

-- Blobs are shared by digest; '-' says that no tenant owns them.
CREATE TABLE agui_bridge.contents (
    digest text PRIMARY KEY,
    data bytea NOT NULL,
    tenant_id text NOT NULL DEFAULT '-'
);
