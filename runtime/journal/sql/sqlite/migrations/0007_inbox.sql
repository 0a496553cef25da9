-- Runs that wait for their thread. Only what is at work is one at a time: any number may be queued.

ALTER TABLE runs ADD COLUMN request_checksum TEXT;
ALTER TABLE runs ADD COLUMN when_busy TEXT;
ALTER TABLE runs ADD COLUMN continues TEXT;

DROP INDEX runs_active;
CREATE UNIQUE INDEX runs_active ON runs (thread_id) WHERE status IN ('running', 'cancelling');
CREATE INDEX runs_queued ON runs (thread_id) WHERE status = 'queued';
CREATE INDEX runs_placed ON runs (thread_id, base);
-- A lost run is gone on with once.
CREATE UNIQUE INDEX runs_continue ON runs (continues) WHERE continues IS NOT NULL;
