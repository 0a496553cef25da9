-- Requests that were answered by a run which another request had begun; '' is the digest of a mere name.

CREATE TABLE agui_bridge.aliases (
    thread_id text NOT NULL REFERENCES agui_bridge.threads (thread_id),
    client_run_id text NOT NULL,
    input_digest text NOT NULL,
    tenant_id text NOT NULL,
    run_id text NOT NULL REFERENCES agui_bridge.runs (run_id),
    PRIMARY KEY (thread_id, client_run_id, input_digest)
);
