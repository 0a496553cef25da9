-- Runs that wait for their thread. Only what is at work is one at a time: any number may be queued.
-- Processes of the release before this one take a queued run for one at work, and end by refusing a thread whose last
-- run was withdrawn; they change nothing that they should not.

ALTER TABLE agui_bridge.runs
    ADD COLUMN request_checksum text,
    ADD COLUMN when_busy text,
    ADD COLUMN continues text;

DROP INDEX agui_bridge.runs_active;
CREATE UNIQUE INDEX runs_active ON agui_bridge.runs (thread_id) WHERE status IN ('running', 'cancelling');
CREATE INDEX runs_waiting ON agui_bridge.runs (thread_id) WHERE status = 'queued';
CREATE INDEX runs_at_work ON agui_bridge.runs (run_no) WHERE status IN ('queued', 'running', 'cancelling');
CREATE INDEX runs_placed ON agui_bridge.runs (thread_id, base);
-- A lost run is gone on with once.
CREATE UNIQUE INDEX runs_continue ON agui_bridge.runs (continues) WHERE continues IS NOT NULL;

-- Since when nobody reads a run in its executor's process, if it is to be stopped for that.
ALTER TABLE agui_bridge.leases ADD COLUMN unread_at bigint;
