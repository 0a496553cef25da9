-- What users gave to be shown to a model.

-- name: add_medium
INSERT INTO media (
    media_id, tenant_id, owner_id, thread_id, given_id, name, media_type, size, digest, created_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (media_id) DO NOTHING;

-- name: use_upload
DELETE FROM media WHERE media_id = ? AND tenant_id = ? AND owner_id = ? AND thread_id IS NULL;

-- name: find_medium
SELECT * FROM media AS m
WHERE (m.media_id = :id OR m.given_id = :id)
    AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.thread_id = m.thread_id AND s.hidden_at IS NOT NULL)
ORDER BY m.media_id = :id DESC, m.created_at, m.media_id LIMIT 1;

-- name: medium_of_owner
SELECT * FROM media
WHERE (media_id = :id OR given_id = :id) AND tenant_id = :tenant AND owner_id = :owner
ORDER BY created_at, media_id LIMIT 1;

-- name: media_of_thread
SELECT * FROM media WHERE thread_id = ? ORDER BY created_at, media_id;

-- name: uploads_of_owner
SELECT * FROM media WHERE thread_id IS NULL AND tenant_id = ? AND owner_id = ? ORDER BY created_at, media_id;

-- name: unused_media
SELECT m.media_id, m.digest FROM media AS m
WHERE m.created_at >= :since AND m.created_at < :before
    AND (:tenant IS NULL OR (m.tenant_id = :tenant AND m.owner_id = :owner))
    AND NOT EXISTS (SELECT 1 FROM threads AS t WHERE t.thread_id = m.thread_id)
ORDER BY m.created_at LIMIT :limit;

-- name: remove_media_by_id
DELETE FROM media WHERE media_id IN (SELECT value FROM json_each(?));
