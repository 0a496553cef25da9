-- The catalogue: lists of sessions and runs, and what changes a session. A place is (created_at, id), the newest first.

-- name: list_sessions
SELECT * FROM sessions
WHERE tenant_id = :tenant_id AND owner_id = :owner_id AND hidden_at IS NULL
    AND (created_at, session_id) < (:created_at, :id)
ORDER BY created_at DESC, session_id DESC LIMIT :limit;

-- A session was used when the last run on its thread was asked for. All of the owner's are looked at for a page.

-- name: list_used_sessions
WITH used AS (
    SELECT s.*, (SELECT max(r.created_at) FROM runs AS r WHERE r.thread_id = s.thread_id) AS last_run_at
    FROM sessions AS s
    WHERE s.tenant_id = :tenant_id AND s.owner_id = :owner_id AND s.hidden_at IS NULL
        AND (:agent_id IS NULL OR s.agent_id = :agent_id) AND (:archived OR s.archived_at IS NULL)
)
SELECT * FROM used
WHERE (coalesce(last_run_at, created_at), session_id) < (:created_at, :id)
ORDER BY coalesce(last_run_at, created_at) DESC, session_id DESC LIMIT :limit;

-- name: list_runs
SELECT r.* FROM runs AS r
LEFT JOIN runs AS root ON root.run_id = r.root_run_id
LEFT JOIN sessions AS s ON s.thread_id = root.thread_id
WHERE r.tenant_id = :tenant_id AND r.owner_id = :owner_id AND (r.created_at, r.run_id) < (:created_at, :id)
    AND s.hidden_at IS NULL
    AND (:statuses IS NULL OR EXISTS (SELECT 1 FROM json_each(:statuses) WHERE value = r.status))
ORDER BY r.created_at DESC, r.run_id DESC LIMIT :limit;

-- name: list_runs_of_session
SELECT r.* FROM runs AS r
JOIN sessions AS s ON s.thread_id = r.thread_id
WHERE r.tenant_id = :tenant_id AND r.owner_id = :owner_id AND r.session_id = :session_id
    AND (r.created_at, r.run_id) < (:created_at, :id)
    AND s.hidden_at IS NULL
    AND (:statuses IS NULL OR EXISTS (SELECT 1 FROM json_each(:statuses) WHERE value = r.status))
ORDER BY r.created_at DESC, r.run_id DESC LIMIT :limit;

-- name: list_every_run
SELECT r.* FROM runs AS r
WHERE (r.created_at, r.run_id) < (:created_at, :id) AND (:session_id IS NULL OR r.session_id = :session_id)
    AND (:statuses IS NULL OR EXISTS (SELECT 1 FROM json_each(:statuses) WHERE value = r.status))
ORDER BY r.created_at DESC, r.run_id DESC LIMIT :limit;

-- name: find_visible_run
SELECT r.* FROM runs AS r
LEFT JOIN runs AS root ON root.run_id = r.root_run_id
LEFT JOIN sessions AS s ON s.thread_id = root.thread_id
WHERE r.run_id = ? AND s.hidden_at IS NULL;

-- name: runs_of_tree
SELECT * FROM runs WHERE root_run_id = ? ORDER BY run_no;

-- name: find_keyed
SELECT r.*, k.request_digest, k.message_id FROM idempotency_keys AS k
JOIN runs AS r ON r.run_id = k.run_id
WHERE k.tenant_id = ? AND k.owner_id = ? AND k.key_digest = ?;

-- name: add_key
INSERT INTO idempotency_keys (tenant_id, owner_id, key_digest, request_digest, message_id, run_id, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: hidden_at_of_thread
SELECT hidden_at FROM sessions WHERE thread_id = ?;

-- name: change_session
UPDATE sessions SET
    agent_id = coalesce(:agent_id, agent_id),
    title = CASE WHEN :retitle AND NOT (:if_untitled AND title IS NOT NULL) THEN :title ELSE title END,
    archived_at = CASE WHEN :archived IS NULL THEN archived_at WHEN :archived THEN coalesce(archived_at, :at) END,
    changed_at = coalesce(:at, changed_at)
WHERE tenant_id = :tenant_id AND owner_id = :owner_id AND session_id = :session_id AND hidden_at IS NULL
RETURNING *;

-- name: give_default_title
UPDATE sessions SET default_title = ? WHERE thread_id = ? AND default_title IS NULL;

-- name: hide_session
UPDATE sessions SET hidden_at = ?
WHERE tenant_id = ? AND owner_id = ? AND session_id = ? AND hidden_at IS NULL
RETURNING thread_id;
