-- What the one writer does. Every statement runs inside its transaction.

-- name: thread_owner
SELECT tenant_id, owner_id FROM threads WHERE thread_id = ?;

-- name: newest_same_run
SELECT * FROM runs
WHERE thread_id = ? AND client_run_id = ? AND input_digest = ?
ORDER BY attempt DESC LIMIT 1;

-- name: newest_named_run
SELECT * FROM runs WHERE thread_id = ? AND client_run_id = ? ORDER BY run_no DESC LIMIT 1;

-- name: active_run_of_thread
SELECT * FROM runs WHERE thread_id = ? AND status IN ('running', 'cancelling');

-- name: thread_position
SELECT base + last_seq FROM runs WHERE thread_id = ? ORDER BY base DESC, last_seq DESC LIMIT 1;

-- name: add_thread
INSERT INTO threads (thread_id, tenant_id, owner_id, created_at) VALUES (?, ?, ?, ?);

-- name: add_session
INSERT INTO sessions (tenant_id, owner_id, session_id, thread_id, agent_id, title, created_at, default_title)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_run
INSERT INTO runs (
    run_id, tenant_id, owner_id, thread_id, session_id, agent_id, client_run_id, input_digest, attempt, status, base,
    last_seq, fence, root_run_id, created_at, parent_run_id, executor_instance_id, lease_expires_at, started_at,
    finished_at, final_message_id, error, usage, agent_snapshot_checksum, context_snapshot_checksum, trace_id,
    request_checksum, when_busy, continues
) VALUES (
    :run_id, :tenant_id, :owner_id, :thread_id, :session_id, :agent_id, :client_run_id, :input_digest, :attempt,
    :status, :base, :last_seq, :fence, :root_run_id, :created_at, :parent_run_id, :executor_instance_id,
    :lease_expires_at, :started_at, :finished_at, :final_message_id, :error, :usage, :agent_snapshot_checksum,
    :context_snapshot_checksum, :trace_id, :request_checksum, :when_busy, :continues
);

-- name: append_event
INSERT INTO events (
    run_no, seq, root_seq, event_type, occurred_at, recorded_at, payload, payload_checksum, schema_version, tenant_id,
    from_seq
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_run
UPDATE runs SET last_seq = ? WHERE run_no = ?;

-- name: change_run
UPDATE runs SET
    status = :status, last_seq = :last_seq, fence = :fence, executor_instance_id = :executor_instance_id,
    started_at = :started_at, finished_at = :finished_at, final_message_id = :final_message_id, error = :error,
    usage = :usage
WHERE run_id = :run_id;

-- name: put_content
INSERT INTO contents (digest, data) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING;

-- name: renew_leases
UPDATE runs SET lease_expires_at = ?
WHERE executor_instance_id = ? AND run_id IN (SELECT value FROM json_each(?))
    AND status IN ('queued', 'running', 'cancelling')
RETURNING run_id, fence, cancel_reason;

-- name: lease_run
UPDATE runs SET lease_expires_at = ?
WHERE run_id = ? AND fence = ? AND status IN ('queued', 'running', 'cancelling')
RETURNING run_id;

-- name: mark_cancel
UPDATE runs SET cancel_reason = ?
WHERE run_id = ? AND cancel_reason IS NULL AND status IN ('queued', 'running', 'cancelling')
RETURNING run_id;
