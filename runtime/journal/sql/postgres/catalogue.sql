-- The catalogue: lists of sessions and runs, and what changes a session. A place is (created_at, id), the newest first.

-- name: add_session
WITH thread AS (
    INSERT INTO agui_bridge.threads (thread_id, tenant_id, owner_id, created_at) VALUES ($4, $1, $2, $7)
)
INSERT INTO agui_bridge.sessions (
    tenant_id, owner_id, session_id, thread_id, agent_id, title, created_at, default_title
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: change_session
UPDATE agui_bridge.sessions SET
    agent_id = coalesce($4, agent_id),
    title = CASE WHEN $6::boolean AND NOT ($9::boolean AND title IS NOT NULL) THEN $5 ELSE title END,
    archived_at = CASE
        WHEN $7::boolean IS NULL THEN archived_at WHEN $7 THEN coalesce(archived_at, $8::bigint)
    END,
    changed_at = coalesce($8::bigint, changed_at)
WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND hidden_at IS NULL
RETURNING *;

-- name: give_default_title
UPDATE agui_bridge.sessions SET default_title = $2 WHERE thread_id = $1 AND default_title IS NULL;

-- The thread is held as by a beginning: either the run is named here, or it does not begin.

-- name: hold_session
SELECT t.thread_id FROM agui_bridge.sessions AS s JOIN agui_bridge.threads AS t ON t.thread_id = s.thread_id
WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.session_id = $3 FOR UPDATE OF t;

-- name: hide_session
UPDATE agui_bridge.sessions SET hidden_at = $4
WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3 AND hidden_at IS NULL
RETURNING thread_id;

-- name: active_run_of_thread
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.thread_id = $1 AND r.status IN ('queued', 'running', 'cancelling');

-- name: list_sessions
SELECT * FROM agui_bridge.sessions
WHERE tenant_id = $1 AND owner_id = $2 AND hidden_at IS NULL AND (created_at, session_id) < ($3::bigint, $4::text)
ORDER BY created_at DESC, session_id DESC LIMIT $5;

-- A session was used when the last run on its thread was asked for. All of the owner's are looked at for a page.

-- name: list_used_sessions
WITH used AS (
    SELECT s.*, (SELECT max(r.created_at) FROM agui_bridge.runs AS r WHERE r.thread_id = s.thread_id) AS last_run_at
    FROM agui_bridge.sessions AS s
    WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.hidden_at IS NULL
        AND ($6::text IS NULL OR s.agent_id = $6) AND ($7::boolean OR s.archived_at IS NULL)
)
SELECT * FROM used
WHERE (coalesce(last_run_at, created_at), session_id) < ($3::bigint, $4::text)
ORDER BY coalesce(last_run_at, created_at) DESC, session_id DESC LIMIT $5;

-- name: list_runs
SELECT r.*, l.lease_expires_at FROM agui_bridge.runs AS r
LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
LEFT JOIN agui_bridge.runs AS root ON root.run_id = r.root_run_id
LEFT JOIN agui_bridge.sessions AS s ON s.thread_id = root.thread_id
WHERE r.tenant_id = $1 AND r.owner_id = $2 AND (r.created_at, r.run_id) < ($3::bigint, $4::text)
    AND s.hidden_at IS NULL AND ($6::text[] IS NULL OR r.status = ANY ($6))
ORDER BY r.created_at DESC, r.run_id DESC LIMIT $5;

-- name: list_runs_of_session
SELECT r.*, l.lease_expires_at FROM agui_bridge.runs AS r
LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
JOIN agui_bridge.sessions AS s ON s.thread_id = r.thread_id
WHERE r.tenant_id = $1 AND r.owner_id = $2 AND r.session_id = $7
    AND (r.created_at, r.run_id) < ($3::bigint, $4::text)
    AND s.hidden_at IS NULL AND ($6::text[] IS NULL OR r.status = ANY ($6))
ORDER BY r.created_at DESC, r.run_id DESC LIMIT $5;

-- name: list_every_run
SELECT r.*, l.lease_expires_at FROM agui_bridge.runs AS r
LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE (r.created_at, r.run_id) < ($1::bigint, $2::text)
    AND ($4::text[] IS NULL OR r.status = ANY ($4)) AND ($5::text IS NULL OR r.session_id = $5)
ORDER BY r.created_at DESC, r.run_id DESC LIMIT $3;

-- name: find_visible_run
SELECT r.*, l.lease_expires_at FROM agui_bridge.runs AS r
LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
LEFT JOIN agui_bridge.runs AS root ON root.run_id = r.root_run_id
LEFT JOIN agui_bridge.sessions AS s ON s.thread_id = root.thread_id
WHERE r.run_id = $1 AND s.hidden_at IS NULL;

-- name: runs_of_tree
SELECT r.*, l.lease_expires_at FROM agui_bridge.runs AS r
LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.root_run_id = $1 ORDER BY r.run_no;

-- name: find_keyed
SELECT r.*, l.lease_expires_at, k.request_digest, k.message_id FROM agui_bridge.idempotency_keys AS k
JOIN agui_bridge.runs AS r ON r.run_id = k.run_id
LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE k.tenant_id = $1 AND k.owner_id = $2 AND k.key_digest = $3;

-- name: add_key
INSERT INTO agui_bridge.idempotency_keys (
    tenant_id, owner_id, key_digest, request_digest, message_id, run_id, created_at
) VALUES ($1, $2, $3, $4, $5, $6, $7);
