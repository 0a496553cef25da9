-- What readers ask. The status and delta lists are those of runtime.run and runtime.events. A run's events lie in the
-- partitions of the time from its beginning to its end: no other is looked into.

-- name: find_run
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.run_id = $1;

-- name: find_runs
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.run_id = ANY ($1::text[]);

-- name: find_session
SELECT * FROM agui_bridge.sessions WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3;

-- name: active_runs
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.status IN ('queued', 'running', 'cancelling')
ORDER BY r.run_no;

-- name: runs_between
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.thread_id = $1 AND r.base + r.last_seq > $2 AND r.base < $3
ORDER BY r.base, r.run_no;

-- name: events_of_run
SELECT
    e.seq, e.root_seq, e.event_type, e.payload, e.payload_checksum, e.occurred_at, e.recorded_at, e.schema_version,
    e.from_seq
FROM agui_bridge.events AS e
WHERE e.run_no = (SELECT run_no FROM agui_bridge.runs WHERE run_id = $1)
    AND e.recorded_at >= (SELECT began_at FROM agui_bridge.runs WHERE run_id = $1)
    AND e.recorded_at <= (SELECT recorded_at FROM agui_bridge.runs WHERE run_id = $1)
    AND e.seq > $2
ORDER BY e.seq LIMIT $3;

-- name: events_of_runs
SELECT
    w.run_id, e.seq, e.root_seq, e.event_type, e.payload, e.payload_checksum, e.occurred_at, e.recorded_at,
    e.schema_version, e.from_seq
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::boolean[])
    AS w (run_no, run_id, after, up_to, is_over)
JOIN agui_bridge.events AS e ON e.run_no = w.run_no AND e.seq > w.after AND coalesce(e.from_seq, e.seq) <= w.up_to
WHERE e.recorded_at >= $6 AND e.recorded_at <= $7
    AND NOT (
        w.is_over
        AND e.event_type IN ('message.delta', 'reasoning.delta', 'tool.call.delta', 'tool.call.progress')
    )
ORDER BY e.run_no, e.seq;

-- name: find_content
SELECT data FROM agui_bridge.contents WHERE digest = $1;

-- name: ping
SELECT count(*) FROM (SELECT 1 FROM agui_bridge.runs LIMIT 1) AS any_run;
