-- What the store knows of its own shape: versions, and the partitions of `events`.

-- The catalogue's tables are asked, not functions like to_regclass: those may answer from before a lock was waited for.

-- name: find_versions
SELECT
    EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'agui_bridge') AS has_schema,
    EXISTS (
        SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = 'agui_bridge' AND c.relname = 'schema_versions'
    ) AS has_versions,
    EXISTS (
        SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = 'agui_bridge' AND c.relkind IN ('r', 'p')
    ) AS has_tables,
    current_setting('server_encoding') AS encoding;

-- name: versions
SELECT coalesce(max(version), 0) AS version, coalesce(max(oldest_code), 0) AS oldest_code
FROM agui_bridge.schema_versions;

-- name: add_version
INSERT INTO agui_bridge.schema_versions (version, name, oldest_code) VALUES ($1, $2, $3);

-- name: wait_for_lock
SELECT pg_advisory_xact_lock($1);

-- name: try_lock
SELECT pg_try_advisory_xact_lock($1) AS locked;

-- name: now
SELECT agui_bridge.now_ms();

-- name: missing_partitions
SELECT wanted.name FROM unnest($1::text[]) AS wanted (name)
WHERE NOT EXISTS (
    SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'agui_bridge' AND c.relname = wanted.name
)
ORDER BY wanted.name;

-- name: durability
SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit;

-- name: make_schema
CREATE SCHEMA agui_bridge;

-- name: make_versions
CREATE TABLE agui_bridge.schema_versions (
    version integer PRIMARY KEY,
    name text NOT NULL,
    oldest_code integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A week is made apart, filled with what waited for it, and then attached: nobody who writes elsewhere has to wait.

-- name: make_week
CREATE TABLE agui_bridge.{name} (LIKE agui_bridge.events INCLUDING ALL);

-- name: fill_week
WITH moved AS (
    DELETE FROM agui_bridge.events_default WHERE recorded_at >= {start} AND recorded_at < {end} RETURNING *
)
INSERT INTO agui_bridge.{name} SELECT * FROM moved;

-- name: attach_week
ALTER TABLE agui_bridge.events ATTACH PARTITION agui_bridge.{name} FOR VALUES FROM ({start}) TO ({end});
