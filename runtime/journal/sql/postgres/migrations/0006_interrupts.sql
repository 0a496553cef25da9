-- What runs asked of somebody outside. A row without a status waits for its answer; `answering_run_id` is the root run
-- in whose tree it was answered. There are no foreign keys: a row is made from that of its run, the writer of all runs
-- would have to wait for whoever holds a thread to begin a run, and each run that is erased would be looked for here.

CREATE TABLE agui_bridge.interrupts (
    interrupt_id text PRIMARY KEY,
    run_id text NOT NULL,
    thread_id text NOT NULL,
    root_run_id text NOT NULL,
    tenant_id text NOT NULL,
    owner_id text NOT NULL,
    session_id text,
    agent_id text NOT NULL,
    raised bytea NOT NULL,
    raised_at bigint NOT NULL,
    expires_at bigint,
    status text,
    answer_digest text,
    answered_at bigint,
    answering_run_id text
);

CREATE INDEX interrupts_of_thread ON agui_bridge.interrupts (thread_id);
CREATE INDEX interrupts_open ON agui_bridge.interrupts (tenant_id, raised_at, interrupt_id) WHERE status IS NULL;
CREATE INDEX interrupts_open_of_owner ON agui_bridge.interrupts (tenant_id, owner_id, raised_at, interrupt_id)
WHERE status IS NULL;
