-- Threads, sessions, runs, their events, and blobs by digest. Payload columns are bytes.

CREATE TABLE threads (
    thread_id TEXT NOT NULL PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE sessions (
    tenant_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    thread_id TEXT NOT NULL UNIQUE REFERENCES threads (thread_id),
    agent_id TEXT NOT NULL,
    title TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, session_id)
) WITHOUT ROWID;

-- run_no keeps the key of an event small and orders the runs of a thread.
CREATE TABLE runs (
    run_no INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    tenant_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    thread_id TEXT NOT NULL REFERENCES threads (thread_id),
    session_id TEXT,
    agent_id TEXT NOT NULL,
    client_run_id TEXT NOT NULL,
    input_digest TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (
        status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'suspended', 'interrupted', 'cancelled')
    ),
    base INTEGER NOT NULL CHECK (base >= 0),
    last_seq INTEGER NOT NULL CHECK (last_seq >= 0),
    fence INTEGER NOT NULL,
    root_run_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    parent_run_id TEXT,
    executor_instance_id TEXT,
    lease_expires_at INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    final_message_id TEXT,
    error BLOB,
    usage BLOB,
    agent_snapshot_checksum TEXT,
    context_snapshot_checksum TEXT,
    trace_id TEXT,
    UNIQUE (thread_id, client_run_id, input_digest, attempt)
);

CREATE UNIQUE INDEX runs_active ON runs (thread_id) WHERE status IN ('queued', 'running', 'cancelling');
CREATE INDEX runs_of_thread ON runs (thread_id);

-- Rows lie in the order in which they were written, whatever their run: a commit of many runs then touches few pages
-- (measured with 200 runs: twice the events a second of a table clustered by run).
CREATE TABLE events (
    run_no INTEGER NOT NULL REFERENCES runs (run_no),
    seq INTEGER NOT NULL,
    root_seq INTEGER NOT NULL,
    event_type TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    payload BLOB NOT NULL,
    payload_checksum BLOB NOT NULL,
    schema_version INTEGER NOT NULL,
    tenant_id TEXT NOT NULL DEFAULT '-',
    UNIQUE (run_no, seq)
);

-- Blobs are shared by digest; '-' says that no tenant owns them.
CREATE TABLE contents (
    digest TEXT NOT NULL PRIMARY KEY,
    data BLOB NOT NULL,
    tenant_id TEXT NOT NULL DEFAULT '-'
);
