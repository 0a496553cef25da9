-- Requests that were answered by a run which another request had begun; '' is the digest of a mere name.

CREATE TABLE aliases (
    thread_id TEXT NOT NULL REFERENCES threads (thread_id),
    client_run_id TEXT NOT NULL,
    input_digest TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    PRIMARY KEY (thread_id, client_run_id, input_digest)
) WITHOUT ROWID;
