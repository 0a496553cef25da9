-- What tools made to be fetched, and the store's own keys.

-- name: add_artifact
INSERT INTO artifacts (
    artifact_id, tenant_id, owner_id, thread_id, run_id, name, media_type, size, digest, created_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: find_artifact
SELECT * FROM artifacts WHERE artifact_id = ?;

-- name: artifacts_of_thread
SELECT * FROM artifacts WHERE thread_id = ? ORDER BY created_at, artifact_id;

-- name: is_named
SELECT 1 FROM artifacts WHERE digest = :digest UNION ALL SELECT 1 FROM media WHERE digest = :digest LIMIT 1;

-- name: content_slice
SELECT coalesce(substr(data, ? + 1, ?), x'') AS piece FROM contents WHERE digest = ?;

-- name: add_secret
INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING;

-- name: find_secret
SELECT value FROM secrets WHERE name = ?;
