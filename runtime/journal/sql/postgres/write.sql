-- What changes facts. The status lists are those of runtime.run. A change of a run's row waits for the one before it
-- and then looks at the row again: whoever comes with an old fence or an old end of the journal changes nothing.

-- name: append
WITH clock AS MATERIALIZED (SELECT agui_bridge.now_ms() AS now),
given AS (
    SELECT * FROM unnest(
        $1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[], $7::text[], $8::bigint[],
        $9::bigint[], $10::text[], $11::bytea[], $12::bytea[]
    ) AS g (
        place, run_id, fence, expected_seq, last_seq, changed, status, started_at, finished_at, final_message_id,
        error, usage
    )
),
moved AS (
    UPDATE agui_bridge.runs AS r SET
        last_seq = g.last_seq,
        status = CASE WHEN g.changed THEN g.status ELSE r.status END,
        started_at = CASE WHEN g.changed THEN g.started_at ELSE r.started_at END,
        finished_at = CASE WHEN g.changed THEN g.finished_at ELSE r.finished_at END,
        final_message_id = CASE WHEN g.changed THEN g.final_message_id ELSE r.final_message_id END,
        error = CASE WHEN g.changed THEN g.error ELSE r.error END,
        usage = CASE WHEN g.changed THEN g.usage ELSE r.usage END,
        recorded_at = greatest(r.recorded_at, clock.now)
    FROM given AS g, clock
    WHERE r.run_id = g.run_id AND r.fence = g.fence AND r.last_seq = g.expected_seq
        AND r.status IN ('queued', 'running', 'cancelling')
    RETURNING g.place, r.run_no, r.tenant_id, r.recorded_at
),
added AS (
    INSERT INTO agui_bridge.events (
        run_no, seq, root_seq, event_type, occurred_at, recorded_at, payload, payload_checksum, schema_version,
        tenant_id, from_seq
    )
    SELECT m.run_no, e.seq, e.seq, e.event_type, e.occurred_at, m.recorded_at, e.payload, e.checksum, $13, m.tenant_id, e.from_seq
    FROM unnest($14::bigint[], $15::bigint[], $16::text[], $17::bigint[], $18::bytea[], $19::bytea[], $20::bigint[])
        AS e (place, seq, event_type, occurred_at, payload, checksum, from_seq)
    JOIN moved AS m ON m.place = e.place
)
SELECT place, recorded_at, NULL::bigint AS root_after FROM moved;

-- The same for a group in which there are runs of trees. It costs an eighth more than the statement above, which is
-- why runs without children do not use it.

-- name: append_in_trees
WITH clock AS MATERIALIZED (SELECT agui_bridge.now_ms() AS now),
given AS (
    SELECT * FROM unnest(
        $1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[], $7::text[], $8::bigint[],
        $9::bigint[], $10::text[], $11::bytea[], $12::bytea[], $21::text[], $22::boolean[]
    ) AS g (
        place, run_id, fence, expected_seq, last_seq, changed, status, started_at, finished_at, final_message_id,
        error, usage, root_run_id, opens_tree
    )
),
moved AS (
    UPDATE agui_bridge.runs AS r SET
        last_seq = g.last_seq,
        status = CASE WHEN g.changed THEN g.status ELSE r.status END,
        started_at = CASE WHEN g.changed THEN g.started_at ELSE r.started_at END,
        finished_at = CASE WHEN g.changed THEN g.finished_at ELSE r.finished_at END,
        final_message_id = CASE WHEN g.changed THEN g.final_message_id ELSE r.final_message_id END,
        error = CASE WHEN g.changed THEN g.error ELSE r.error END,
        usage = CASE WHEN g.changed THEN g.usage ELSE r.usage END,
        recorded_at = greatest(r.recorded_at, clock.now)
    FROM given AS g, clock
    WHERE r.run_id = g.run_id AND r.fence = g.fence AND r.last_seq = g.expected_seq
        AND r.status IN ('queued', 'running', 'cancelling')
    RETURNING g.place, r.run_no, r.tenant_id, r.recorded_at, g.expected_seq, g.last_seq, g.root_run_id, g.opens_tree
),
-- Whoever appends behind the opening of a tree has seen it committed: a tree that is not found here has no children.
grown AS (
    UPDATE agui_bridge.trees AS t SET last_seq = t.last_seq + its.count
    FROM (
        SELECT root_run_id, sum(last_seq - expected_seq)::bigint AS count FROM moved
        GROUP BY root_run_id ORDER BY root_run_id
    ) AS its
    WHERE t.root_run_id = its.root_run_id
    RETURNING t.root_run_id, t.last_seq - its.count AS before
),
opened AS (
    INSERT INTO agui_bridge.trees (root_run_id, last_seq, tenant_id)
    SELECT m.root_run_id, m.last_seq, m.tenant_id FROM moved AS m
    WHERE m.opens_tree AND NOT EXISTS (SELECT 1 FROM grown WHERE grown.root_run_id = m.root_run_id)
),
placed AS (
    SELECT m.*, coalesce(
        grown.before + sum(m.last_seq - m.expected_seq) OVER (PARTITION BY m.root_run_id ORDER BY m.place)
            - (m.last_seq - m.expected_seq),
        m.expected_seq
    )::bigint AS root_after
    FROM moved AS m LEFT JOIN grown ON grown.root_run_id = m.root_run_id
),
added AS (
    INSERT INTO agui_bridge.events (
        run_no, seq, root_seq, event_type, occurred_at, recorded_at, payload, payload_checksum, schema_version,
        tenant_id, from_seq
    )
    SELECT
        m.run_no, e.seq, m.root_after + e.seq - m.expected_seq, e.event_type, e.occurred_at, m.recorded_at, e.payload,
        e.checksum, $13, m.tenant_id, e.from_seq
    FROM unnest($14::bigint[], $15::bigint[], $16::text[], $17::bigint[], $18::bytea[], $19::bytea[], $20::bigint[])
        AS e (place, seq, event_type, occurred_at, payload, checksum, from_seq)
    JOIN placed AS m ON m.place = e.place
)
SELECT place, recorded_at, root_after FROM placed;

-- name: hold_names
WITH thread AS (
    INSERT INTO agui_bridge.threads (thread_id, tenant_id, owner_id, created_at)
    VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
)
INSERT INTO agui_bridge.sessions (
    tenant_id, owner_id, session_id, thread_id, agent_id, title, created_at, default_title
)
SELECT $2, $3, $5, $6, $7, $8, $9, $10 WHERE $5::text IS NOT NULL
ON CONFLICT DO NOTHING;

-- name: hold_thread
SELECT tenant_id, owner_id FROM agui_bridge.threads WHERE thread_id = $1 FOR UPDATE;

-- name: standing_runs
(
    SELECT 'same' AS part, r.*, l.lease_expires_at
    FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
    WHERE r.thread_id = $1 AND r.client_run_id = $2 AND r.input_digest = $3
    ORDER BY r.attempt DESC LIMIT 1
)
UNION ALL
(
    SELECT 'named', r.*, l.lease_expires_at
    FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
    WHERE r.thread_id = $1 AND r.client_run_id = $2
    ORDER BY r.run_no DESC LIMIT 1
)
UNION ALL
(
    SELECT 'active', r.*, l.lease_expires_at
    FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
    WHERE r.thread_id = $1 AND r.status IN ('running', 'cancelling')
)
UNION ALL
(
    SELECT 'queued', r.*, l.lease_expires_at
    FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
    WHERE r.thread_id = $1 AND r.status = 'queued'
    ORDER BY r.continues IS NULL, r.when_busy <> 'interrupt', r.run_no LIMIT 1
)
UNION ALL
(
    SELECT 'continued', r.*, l.lease_expires_at
    FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
    WHERE r.continues = $4
)
UNION ALL
(
    SELECT 'followed as ' || a.input_digest, r.*, l.lease_expires_at
    FROM agui_bridge.aliases AS a JOIN agui_bridge.runs AS r ON r.run_id = a.run_id
    LEFT JOIN agui_bridge.leases AS l ON l.run_no = r.run_no
    WHERE a.thread_id = $1 AND a.client_run_id = $2 AND a.input_digest <> ''
);

-- name: standing_thread
SELECT
    t.tenant_id AS thread_tenant_id, t.owner_id AS thread_owner_id, s.*,
    s.hidden_at IS NOT NULL OR EXISTS (
        SELECT 1 FROM agui_bridge.sessions AS its WHERE its.thread_id = t.thread_id AND its.hidden_at IS NOT NULL
    ) AS hidden,
    coalesce((
        SELECT r.base + r.last_seq FROM agui_bridge.runs AS r
        WHERE r.thread_id = coalesce(s.thread_id, t.thread_id) ORDER BY r.base DESC, r.last_seq DESC LIMIT 1
    ), 0) AS position,
    (SELECT count(*) FROM agui_bridge.runs AS r WHERE r.thread_id = t.thread_id AND r.status = 'queued') AS queued
FROM agui_bridge.threads AS t
LEFT JOIN agui_bridge.sessions AS s ON s.tenant_id = $2 AND s.owner_id = $3 AND s.session_id = $4
WHERE t.thread_id = $1;

-- name: start_run
WITH clock AS MATERIALIZED (SELECT agui_bridge.now_ms() AS now),
run AS (
    INSERT INTO agui_bridge.runs (
        run_id, tenant_id, owner_id, thread_id, session_id, agent_id, client_run_id, input_digest, attempt, status,
        base, last_seq, fence, root_run_id, created_at, parent_run_id, executor_instance_id, started_at, finished_at,
        final_message_id, error, usage, agent_snapshot_checksum, context_snapshot_checksum, trace_id, began_at,
        recorded_at, request_checksum, when_busy, continues
    )
    SELECT
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
        $23, $24, $25, clock.now, clock.now, $33, $34, $35
    FROM clock
    RETURNING run_no, tenant_id, executor_instance_id, fence
),
lease AS (
    INSERT INTO agui_bridge.leases (run_no, tenant_id, executor_instance_id, fence, lease_expires_at)
    SELECT run.run_no, run.tenant_id, run.executor_instance_id, run.fence, clock.now + $26::bigint FROM run, clock
    RETURNING lease_expires_at
),
grown AS (
    UPDATE agui_bridge.trees SET last_seq = last_seq + cardinality($29::bigint[])
    WHERE root_run_id = $14 AND root_run_id <> $1
    RETURNING last_seq - cardinality($29::bigint[]) AS before
),
added AS (
    INSERT INTO agui_bridge.events (
        run_no, seq, root_seq, event_type, occurred_at, recorded_at, payload, payload_checksum, schema_version,
        tenant_id
    )
    SELECT run.run_no, e.seq, coalesce((SELECT before FROM grown), 0) + e.seq, e.event_type, $27, clock.now, e.payload, e.checksum, $28, run.tenant_id
    FROM unnest($29::bigint[], $30::text[], $31::bytea[], $32::bytea[]) AS e (seq, event_type, payload, checksum)
    CROSS JOIN run CROSS JOIN clock
)
SELECT clock.now, lease.lease_expires_at, (SELECT before FROM grown) AS root_after FROM clock, lease;

-- name: put_contents
WITH held AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared($3))
INSERT INTO agui_bridge.contents (digest, data)
SELECT given.digest, given.data FROM held, unnest($1::text[], $2::bytea[]) AS given (digest, data)
ORDER BY given.digest
ON CONFLICT (digest) DO NOTHING;
