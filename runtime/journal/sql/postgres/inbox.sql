-- Runs that wait for their thread. The order of the line is that of `changes.place_in_line`. Who begins one holds the
-- thread as a beginning does.

-- name: queued_runs
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.thread_id = $1 AND r.status = 'queued'
ORDER BY r.continues IS NULL, r.when_busy <> 'interrupt', r.run_no;

-- name: next_queued
SELECT first.* FROM (
    SELECT DISTINCT ON (r.thread_id) r.*, l.lease_expires_at
    FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
    WHERE r.status = 'queued' AND ($1::text IS NULL OR r.thread_id = $1)
    ORDER BY r.thread_id, r.continues IS NULL, r.when_busy <> 'interrupt', r.run_no
) AS first
WHERE NOT EXISTS (
    SELECT 1 FROM agui_bridge.runs AS other
    WHERE other.thread_id = first.thread_id AND other.status IN ('running', 'cancelling')
)
ORDER BY first.run_no;

-- name: thread_of_run
SELECT thread_id FROM agui_bridge.runs WHERE run_id = $1;

-- name: place_of_thread
SELECT base + last_seq AS position FROM agui_bridge.runs
WHERE thread_id = $1 ORDER BY base DESC, last_seq DESC LIMIT 1;

-- name: start_queued
WITH clock AS MATERIALIZED (SELECT agui_bridge.now_ms() AS now),
held AS MATERIALIZED (
    SELECT l.run_no FROM agui_bridge.leases AS l
    WHERE l.run_no = (SELECT run_no FROM agui_bridge.runs WHERE run_id = $1) FOR UPDATE
),
run AS (
    UPDATE agui_bridge.runs AS r SET
        status = $3, base = $4, last_seq = $5, fence = $6, executor_instance_id = $7, started_at = $8,
        finished_at = $9, final_message_id = $10, agent_snapshot_checksum = $11,
        recorded_at = greatest(r.recorded_at, clock.now)
    FROM held, clock
    WHERE r.run_no = held.run_no AND r.fence = $2 AND r.status = 'queued'
    RETURNING r.run_no, r.tenant_id, r.recorded_at
),
leased AS (
    UPDATE agui_bridge.leases AS l
    SET executor_instance_id = $7, fence = $6, lease_expires_at = clock.now + $12::bigint
    FROM run, clock
    WHERE l.run_no = run.run_no
    RETURNING l.lease_expires_at
),
added AS (
    INSERT INTO agui_bridge.events (
        run_no, seq, root_seq, event_type, occurred_at, recorded_at, payload, payload_checksum, schema_version,
        tenant_id
    )
    SELECT run.run_no, e.seq, e.seq, e.event_type, $13, run.recorded_at, e.payload, e.checksum, $14, run.tenant_id
    FROM unnest($15::bigint[], $16::text[], $17::bytea[], $18::bytea[]) AS e (seq, event_type, payload, checksum)
    CROSS JOIN run
)
SELECT run.recorded_at, leased.lease_expires_at FROM run, leased;

-- name: run_at_work
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.thread_id = $1 AND r.status IN ('running', 'cancelling');
