-- Aliases: further requests that a run answers.

-- name: run_of_thread
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.run_id = $1 AND r.thread_id = $2;

-- name: put_alias
INSERT INTO agui_bridge.aliases (thread_id, client_run_id, input_digest, run_id, tenant_id)
SELECT $1, $2, $3, $4, tenant_id FROM agui_bridge.threads WHERE thread_id = $1
ON CONFLICT (thread_id, client_run_id, input_digest) DO UPDATE SET run_id = excluded.run_id;

-- name: find_named_run
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.thread_id = $1 AND (
    r.client_run_id = $2
    OR r.run_id IN (SELECT run_id FROM agui_bridge.aliases WHERE thread_id = $1 AND client_run_id = $2)
)
ORDER BY r.run_no DESC LIMIT 1;
