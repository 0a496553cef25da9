-- What readers ask. The status and delta lists are those of runtime.run and runtime.events.

-- name: find_run
SELECT * FROM runs WHERE run_id = ?;

-- name: find_session
SELECT * FROM sessions WHERE tenant_id = ? AND owner_id = ? AND session_id = ?;

-- name: active_runs
SELECT * FROM runs INDEXED BY runs_active WHERE status IN ('running', 'cancelling')
UNION ALL
SELECT * FROM runs INDEXED BY runs_queued WHERE status = 'queued'
ORDER BY run_no;

-- name: runs_between
SELECT * FROM runs WHERE thread_id = ? AND base + last_seq > ? AND base < ? ORDER BY base, run_no;

-- name: events_of_run
SELECT
    e.seq, e.root_seq, e.event_type, e.payload, e.payload_checksum, e.occurred_at, e.recorded_at, e.schema_version,
    e.from_seq
FROM events AS e JOIN runs AS r ON r.run_no = e.run_no
WHERE r.run_id = ? AND e.seq > ?
ORDER BY e.seq LIMIT ?;

-- name: facts_of_run
SELECT
    e.seq, e.root_seq, e.event_type, e.payload, e.payload_checksum, e.occurred_at, e.recorded_at, e.schema_version,
    e.from_seq
FROM events AS e JOIN runs AS r ON r.run_no = e.run_no
WHERE r.run_id = ? AND e.seq > ? AND e.seq <= ?
    AND e.event_type NOT IN ('message.delta', 'reasoning.delta', 'tool.call.delta', 'tool.call.progress')
ORDER BY e.seq;

-- name: all_of_run
SELECT
    e.seq, e.root_seq, e.event_type, e.payload, e.payload_checksum, e.occurred_at, e.recorded_at, e.schema_version,
    e.from_seq
FROM events AS e JOIN runs AS r ON r.run_no = e.run_no
WHERE r.run_id = ? AND e.seq > ? AND coalesce(e.from_seq, e.seq) <= ?
ORDER BY e.seq;

-- name: find_content
SELECT data FROM contents WHERE digest = ?;

-- name: ping
SELECT count(*) FROM (SELECT 1 FROM runs LIMIT 1);

-- name: ends_of_runs
SELECT run_id, last_seq, status FROM runs WHERE run_id IN (SELECT value FROM json_each(?));
