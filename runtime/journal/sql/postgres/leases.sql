-- Who is at work, by the store's clock. Rows of `leases` are locked in the order of run_no, so that no two statements
-- wait for each other; a row of `runs` is locked behind that of its lease, never before it.

-- name: renew
WITH clock AS MATERIALIZED (SELECT agui_bridge.now_ms() AS now),
mine AS MATERIALIZED (
    SELECT run_no FROM agui_bridge.leases WHERE executor_instance_id = $1 ORDER BY run_no FOR UPDATE
),
held AS (
    UPDATE agui_bridge.leases AS l SET lease_expires_at = clock.now + $3::bigint
    FROM mine, agui_bridge.runs AS r, clock
    WHERE l.run_no = mine.run_no AND r.run_no = mine.run_no AND r.run_id = ANY ($2::text[])
        AND r.status IN ('queued', 'running', 'cancelling')
    RETURNING r.run_id, l.fence, l.cancel_reason, l.read_at
),
ended AS (
    DELETE FROM agui_bridge.leases AS l USING mine, agui_bridge.runs AS r
    WHERE l.run_no = mine.run_no AND r.run_no = mine.run_no AND r.status NOT IN ('queued', 'running', 'cancelling')
)
SELECT held.run_id, held.fence, held.cancel_reason, clock.now - held.read_at AS unread_ms FROM held, clock;

-- name: take_over
WITH clock AS MATERIALIZED (SELECT agui_bridge.now_ms() AS now),
free AS MATERIALIZED (
    SELECT l.run_no FROM agui_bridge.leases AS l
    WHERE l.run_no = (SELECT run_no FROM agui_bridge.runs WHERE run_id = $1)
        AND (
            l.executor_instance_id = $2 OR l.executor_instance_id IS NULL OR l.lease_expires_at IS NULL
            OR l.lease_expires_at <= (SELECT now FROM clock)
        )
    FOR UPDATE
),
taken AS (
    UPDATE agui_bridge.runs AS r SET fence = r.fence + 1, executor_instance_id = $2
    FROM free
    WHERE r.run_no = free.run_no AND r.status IN ('queued', 'running', 'cancelling')
    RETURNING r.*
),
leased AS (
    UPDATE agui_bridge.leases AS l
    SET executor_instance_id = $2, fence = taken.fence, lease_expires_at = clock.now + $3::bigint, unread_at = NULL
    FROM taken, clock
    WHERE l.run_no = taken.run_no
    RETURNING l.lease_expires_at
)
SELECT taken.*, leased.lease_expires_at FROM taken, leased;

-- name: hand_over
WITH held AS MATERIALIZED (
    SELECT l.run_no FROM agui_bridge.leases AS l
    WHERE l.run_no = (SELECT run_no FROM agui_bridge.runs WHERE run_id = $1) AND l.fence = $2 FOR UPDATE
),
left_alone AS (
    UPDATE agui_bridge.runs AS r SET executor_instance_id = NULL
    FROM held
    WHERE r.run_no = held.run_no AND r.status IN ('queued', 'running', 'cancelling')
    RETURNING r.run_no
)
UPDATE agui_bridge.leases AS l
SET executor_instance_id = NULL, lease_expires_at = agui_bridge.now_ms() + $3::bigint
FROM left_alone
WHERE l.run_no = left_alone.run_no
RETURNING l.run_no;

-- name: handed_over
SELECT r.*, l.lease_expires_at
FROM agui_bridge.leases AS l JOIN agui_bridge.runs AS r ON r.run_no = l.run_no
WHERE l.executor_instance_id IS NULL AND l.lease_expires_at > agui_bridge.now_ms()
    AND r.status IN ('running', 'cancelling')
ORDER BY r.run_no;

-- name: lost_runs
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.status IN ('running', 'cancelling')
    AND (l.lease_expires_at IS NULL OR l.lease_expires_at <= agui_bridge.now_ms())
ORDER BY r.run_no;

-- name: mark_cancel
WITH marked AS (
    UPDATE agui_bridge.leases AS l SET cancel_reason = coalesce(l.cancel_reason, $2)
    FROM agui_bridge.runs AS r
    WHERE r.run_id = $1 AND l.run_no = r.run_no AND r.status IN ('queued', 'running', 'cancelling')
)
SELECT r.*, l.lease_expires_at
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
WHERE r.run_id = $1;

-- name: mark_read
WITH wanted AS MATERIALIZED (
    SELECT l.run_no FROM agui_bridge.leases AS l JOIN agui_bridge.runs AS r ON r.run_no = l.run_no
    WHERE r.run_id = ANY ($1::text[]) ORDER BY l.run_no FOR UPDATE OF l
)
UPDATE agui_bridge.leases AS l SET read_at = agui_bridge.now_ms() FROM wanted WHERE l.run_no = wanted.run_no;

-- name: clear_read
UPDATE agui_bridge.leases AS l SET read_at = NULL
FROM agui_bridge.runs AS r WHERE r.run_id = $1 AND l.run_no = r.run_no;

-- name: mark_unread
UPDATE agui_bridge.leases AS l SET unread_at = CASE WHEN $2::boolean THEN agui_bridge.now_ms() END
FROM agui_bridge.runs AS r WHERE r.run_id = $1 AND l.run_no = r.run_no;

-- name: is_unread
SELECT l.unread_at IS NOT NULL AND l.read_at IS NULL AS unread
FROM agui_bridge.leases AS l JOIN agui_bridge.runs AS r ON r.run_no = l.run_no WHERE r.run_id = $1;

-- name: forget_leases
DELETE FROM agui_bridge.leases AS l USING agui_bridge.runs AS r
WHERE l.run_no IN (
        SELECT run_no FROM agui_bridge.leases
        WHERE lease_expires_at IS NULL OR lease_expires_at < agui_bridge.now_ms() - $1::bigint
        ORDER BY run_no FOR UPDATE SKIP LOCKED
    )
    AND r.run_no = l.run_no AND r.status NOT IN ('queued', 'running', 'cancelling');

-- name: ends
SELECT run_id, last_seq, status NOT IN ('queued', 'running', 'cancelling') AS is_over
FROM agui_bridge.runs WHERE run_id = ANY ($1::text[]);

-- name: notify
SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload;
