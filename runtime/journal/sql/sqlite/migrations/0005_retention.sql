-- What becomes of facts with time, and what tools made to be fetched. A compacted event stands for the deltas from
-- `from_seq` on. The facts of an expired run are gone, or go with the next sweep; its record stays.

ALTER TABLE events ADD COLUMN from_seq INTEGER;
ALTER TABLE runs ADD COLUMN compacted_at INTEGER;
ALTER TABLE runs ADD COLUMN expired_at INTEGER;
ALTER TABLE runs ADD COLUMN swept_at INTEGER;

CREATE INDEX runs_uncompacted ON runs (finished_at)
WHERE compacted_at IS NULL AND expired_at IS NULL AND finished_at IS NOT NULL;
CREATE INDEX runs_kept ON runs (finished_at) WHERE expired_at IS NULL AND finished_at IS NOT NULL;
CREATE INDEX runs_unswept ON runs (expired_at) WHERE expired_at IS NOT NULL AND swept_at IS NULL;

CREATE TABLE artifacts (
    artifact_id TEXT NOT NULL PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    thread_id TEXT NOT NULL REFERENCES threads (thread_id),
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX artifacts_of_thread ON artifacts (thread_id);
CREATE INDEX artifacts_of_digest ON artifacts (digest);

-- Keys that were made once for this store; '-' says that no tenant owns them.
CREATE TABLE secrets (
    name TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL,
    tenant_id TEXT NOT NULL DEFAULT '-'
) WITHOUT ROWID;
