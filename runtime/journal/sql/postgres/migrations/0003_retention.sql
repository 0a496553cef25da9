-- What becomes of facts with time, and what tools made to be fetched. A compacted event stands for the deltas from
-- `from_seq` on. The facts of an expired run are gone, or go with the next sweep; its record stays.

ALTER TABLE agui_bridge.events ADD COLUMN from_seq bigint;
ALTER TABLE agui_bridge.runs
    ADD COLUMN compacted_at bigint,
    ADD COLUMN expired_at bigint,
    ADD COLUMN swept_at bigint;

CREATE INDEX runs_uncompacted ON agui_bridge.runs (finished_at)
WHERE compacted_at IS NULL AND expired_at IS NULL AND finished_at IS NOT NULL;
CREATE INDEX runs_kept ON agui_bridge.runs (finished_at) WHERE expired_at IS NULL AND finished_at IS NOT NULL;
CREATE INDEX runs_unswept ON agui_bridge.runs (expired_at) WHERE expired_at IS NOT NULL AND swept_at IS NULL;
-- Whether a week still holds facts that are kept is asked of the runs, not of the events.
-- Not by their end: that moves with every append, which would then have to touch every index of the row.
CREATE INDEX runs_in_time ON agui_bridge.runs (began_at) WHERE swept_at IS NULL;

CREATE TABLE agui_bridge.artifacts (
    artifact_id text PRIMARY KEY,
    tenant_id text NOT NULL,
    owner_id text NOT NULL,
    thread_id text NOT NULL REFERENCES agui_bridge.threads (thread_id),
    run_id text NOT NULL REFERENCES agui_bridge.runs (run_id),
    name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    digest text NOT NULL,
    created_at bigint NOT NULL
);

CREATE INDEX artifacts_of_thread ON agui_bridge.artifacts (thread_id);
CREATE INDEX artifacts_of_digest ON agui_bridge.artifacts (digest);

-- Keys that were made once for this store; '-' says that no tenant owns them.
CREATE TABLE agui_bridge.secrets (
    name text PRIMARY KEY,
    value bytea NOT NULL,
    tenant_id text NOT NULL DEFAULT '-'
);
