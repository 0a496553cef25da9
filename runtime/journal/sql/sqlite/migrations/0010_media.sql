-- What users gave to be shown to a model. A row without a thread is an upload that waits; `given_id` is
-- the id by which its owner referred to it. There is no foreign key: a medium is named before its thread begins.

CREATE TABLE media (
    media_id TEXT NOT NULL PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    thread_id TEXT,
    given_id TEXT,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX media_of_thread ON media (thread_id);
CREATE INDEX media_of_digest ON media (digest);
CREATE INDEX media_of_given_id ON media (given_id) WHERE given_id IS NOT NULL;
CREATE INDEX media_in_time ON media (created_at);
