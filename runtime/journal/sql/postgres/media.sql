-- What users gave to be shown to a model.

-- Who names a content holds this lock with those who store contents: none of them is removed while it is being named.

-- name: hold_contents_shared
SELECT pg_advisory_xact_lock_shared($1);

-- name: add_medium
INSERT INTO agui_bridge.media (
    media_id, tenant_id, owner_id, thread_id, given_id, name, media_type, size, digest, created_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (media_id) DO NOTHING;

-- name: use_upload
DELETE FROM agui_bridge.media WHERE media_id = $1 AND tenant_id = $2 AND owner_id = $3 AND thread_id IS NULL;

-- name: find_medium
SELECT * FROM agui_bridge.media AS m
WHERE (m.media_id = $1 OR m.given_id = $1)
    AND NOT EXISTS (
        SELECT 1 FROM agui_bridge.sessions AS s WHERE s.thread_id = m.thread_id AND s.hidden_at IS NOT NULL
    )
ORDER BY m.media_id = $1 DESC, m.created_at, m.media_id LIMIT 1;

-- name: medium_of_owner
SELECT * FROM agui_bridge.media
WHERE (media_id = $1 OR given_id = $1) AND tenant_id = $2 AND owner_id = $3
ORDER BY created_at, media_id LIMIT 1;

-- name: media_of_thread
SELECT * FROM agui_bridge.media WHERE thread_id = $1 ORDER BY created_at, media_id;

-- name: uploads_of_owner
SELECT * FROM agui_bridge.media
WHERE thread_id IS NULL AND tenant_id = $1 AND owner_id = $2 ORDER BY created_at, media_id;

-- name: unused_media
SELECT m.media_id, m.digest FROM agui_bridge.media AS m
WHERE m.created_at >= $1 AND m.created_at < $2
    AND ($4::text IS NULL OR (m.tenant_id = $4 AND m.owner_id = $5))
    AND NOT EXISTS (SELECT 1 FROM agui_bridge.threads AS t WHERE t.thread_id = m.thread_id)
ORDER BY m.created_at LIMIT $3 FOR UPDATE OF m SKIP LOCKED;

-- name: remove_media_by_id
DELETE FROM agui_bridge.media WHERE media_id = ANY ($1::text[]);
