-- What runs asked of somebody outside. A row without a status waits for its answer; `answering_run_id` is the root run
-- in whose tree it was answered. There are no foreign keys: a row is made from that of its run, and each run that is
-- erased would be looked for here.

CREATE TABLE interrupts (
    interrupt_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    root_run_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    session_id TEXT,
    agent_id TEXT NOT NULL,
    raised BLOB NOT NULL,
    raised_at INTEGER NOT NULL,
    expires_at INTEGER,
    status TEXT,
    answer_digest TEXT,
    answered_at INTEGER,
    answering_run_id TEXT
);

CREATE INDEX interrupts_of_thread ON interrupts (thread_id);
CREATE INDEX interrupts_open ON interrupts (tenant_id, raised_at, interrupt_id) WHERE status IS NULL;
CREATE INDEX interrupts_open_of_owner ON interrupts (tenant_id, owner_id, raised_at, interrupt_id) WHERE status IS NULL;
