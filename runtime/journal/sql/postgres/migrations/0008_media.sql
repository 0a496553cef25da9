-- What users gave to be shown to a model. A row without a thread is an upload that waits; `given_id` is
-- the id by which its owner referred to it. There is no foreign key: a medium is named before its thread begins.

CREATE TABLE agui_bridge.media (
    media_id text PRIMARY KEY,
    tenant_id text NOT NULL,
    owner_id text NOT NULL,
    thread_id text,
    given_id text,
    name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    digest text NOT NULL,
    created_at bigint NOT NULL
);

CREATE INDEX media_of_thread ON agui_bridge.media (thread_id);
CREATE INDEX media_of_digest ON agui_bridge.media (digest);
CREATE INDEX media_of_given_id ON agui_bridge.media (given_id) WHERE given_id IS NOT NULL;
CREATE INDEX media_in_time ON agui_bridge.media (created_at);
