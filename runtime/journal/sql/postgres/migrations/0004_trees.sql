-- The last root_seq of each root run that has children. Apart from `runs`: a child's append moves it together with the
-- child's own row, and the root's own append must be able to do so in the same statement.

CREATE TABLE agui_bridge.trees (
    root_run_id text PRIMARY KEY REFERENCES agui_bridge.runs (run_id) ON DELETE CASCADE,
    last_seq bigint NOT NULL,
    tenant_id text NOT NULL
) WITH (fillfactor = 50);
