-- What tools made to be fetched, and the store's own keys.

-- name: add_artifact
INSERT INTO agui_bridge.artifacts (
    artifact_id, tenant_id, owner_id, thread_id, run_id, name, media_type, size, digest, created_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: find_artifact
SELECT * FROM agui_bridge.artifacts WHERE artifact_id = $1;

-- name: artifacts_of_thread
SELECT * FROM agui_bridge.artifacts WHERE thread_id = $1 ORDER BY created_at, artifact_id;

-- name: is_named
SELECT 1 FROM agui_bridge.artifacts WHERE digest = $1
UNION ALL
SELECT 1 FROM agui_bridge.media WHERE digest = $1 LIMIT 1;

-- name: content_slice
SELECT substring(data FROM $2::integer + 1 FOR $3::integer) AS piece FROM agui_bridge.contents WHERE digest = $1;

-- name: add_secret
INSERT INTO agui_bridge.secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING;

-- name: find_secret
SELECT value FROM agui_bridge.secrets WHERE name = $1;
