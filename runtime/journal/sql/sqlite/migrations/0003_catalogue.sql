-- Sessions that can be hidden, lists of sessions and runs, and the keys that make requests safe to repeat.

ALTER TABLE sessions ADD COLUMN hidden_at INTEGER;

CREATE INDEX sessions_listed ON sessions (tenant_id, owner_id, created_at, session_id) WHERE hidden_at IS NULL;
CREATE INDEX runs_listed ON runs (tenant_id, owner_id, created_at, run_id);
CREATE INDEX runs_of_session ON runs (tenant_id, owner_id, session_id, created_at, run_id);
CREATE INDEX runs_of_tree ON runs (root_run_id);

CREATE TABLE idempotency_keys (
    tenant_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    key_digest TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    message_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, key_digest)
) WITHOUT ROWID;
