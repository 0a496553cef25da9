-- How facts get fewer and go. Whoever removes holds the threads as a beginning does.

-- name: uncompacted_runs
SELECT run_id FROM agui_bridge.runs
WHERE compacted_at IS NULL AND expired_at IS NULL AND finished_at IS NOT NULL AND finished_at < $1
    AND run_id <> ALL ($3::text[])
ORDER BY finished_at, run_no LIMIT $2;

-- name: hold_compactable
SELECT run_no, began_at, recorded_at FROM agui_bridge.runs
WHERE run_id = $1 AND finished_at IS NOT NULL AND compacted_at IS NULL AND expired_at IS NULL
FOR UPDATE SKIP LOCKED;

-- name: deltas_of_run
SELECT
    e.seq, e.root_seq, e.event_type, e.payload, e.payload_checksum, e.occurred_at, e.recorded_at, e.schema_version,
    e.from_seq
FROM agui_bridge.events AS e
WHERE e.run_no = $1 AND e.recorded_at >= $2 AND e.recorded_at <= $3
    AND e.event_type IN ('message.delta', 'reasoning.delta', 'tool.call.delta', 'tool.call.progress')
ORDER BY e.seq;

-- name: compact_events
WITH stretch AS (
    SELECT * FROM unnest($4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[])
        AS given (from_seq, seq, payload, checksum)
),
gone AS (
    DELETE FROM agui_bridge.events AS e USING stretch
    WHERE e.run_no = $1 AND e.seq >= stretch.from_seq AND e.seq < stretch.seq
        AND e.recorded_at >= $2 AND e.recorded_at <= $3
)
UPDATE agui_bridge.events AS e
SET payload = stretch.payload, payload_checksum = stretch.checksum, from_seq = stretch.from_seq
FROM stretch
WHERE e.run_no = $1 AND e.seq = stretch.seq AND e.recorded_at >= $2 AND e.recorded_at <= $3;

-- name: mark_compacted
UPDATE agui_bridge.runs SET compacted_at = $2 WHERE run_no = $1;

-- name: idle_threads
SELECT DISTINCT r.thread_id FROM agui_bridge.runs AS r
WHERE r.expired_at IS NULL AND r.finished_at < $1 AND r.run_id = r.root_run_id
    AND ($4::text[] IS NULL OR r.thread_id = ANY ($4))
    AND NOT EXISTS (
        SELECT 1 FROM agui_bridge.runs AS root JOIN agui_bridge.runs AS below ON below.root_run_id = root.run_id
        WHERE root.thread_id = r.thread_id
            AND (below.finished_at IS NULL OR below.finished_at >= $1 OR below.run_id = ANY ($3::text[]))
    )
LIMIT $2;

-- name: threads_with_below
SELECT thread_id FROM unnest($1::text[]) AS given (thread_id)
UNION
SELECT below.thread_id FROM agui_bridge.runs AS root JOIN agui_bridge.runs AS below ON below.root_run_id = root.run_id
WHERE root.thread_id = ANY ($1);

-- name: threads_of_owner
SELECT thread_id FROM agui_bridge.threads WHERE tenant_id = $1 AND owner_id = $2 ORDER BY created_at, thread_id;

-- name: sessions_of_owner
SELECT * FROM agui_bridge.sessions WHERE tenant_id = $1 AND owner_id = $2 ORDER BY created_at, session_id;

-- name: thread_of_session
SELECT thread_id FROM agui_bridge.sessions WHERE tenant_id = $1 AND owner_id = $2 AND session_id = $3;

-- name: hold_threads
SELECT thread_id FROM agui_bridge.threads WHERE thread_id = ANY ($1::text[]) ORDER BY thread_id FOR UPDATE;

-- name: busy_run_among
SELECT run_id FROM agui_bridge.runs
WHERE thread_id = ANY ($1::text[]) AND status IN ('queued', 'running', 'cancelling') LIMIT 1;

-- name: digests_of_threads
SELECT digest FROM agui_bridge.artifacts WHERE thread_id = ANY ($1::text[])
UNION
SELECT digest FROM agui_bridge.media WHERE thread_id = ANY ($1::text[]);

-- name: snapshots_of_threads
SELECT agent_snapshot_checksum AS digest FROM agui_bridge.runs
WHERE thread_id = ANY ($1::text[]) AND agent_snapshot_checksum IS NOT NULL
UNION
SELECT context_snapshot_checksum FROM agui_bridge.runs
WHERE thread_id = ANY ($1::text[]) AND context_snapshot_checksum IS NOT NULL
UNION
SELECT request_checksum FROM agui_bridge.runs WHERE thread_id = ANY ($1::text[]) AND request_checksum IS NOT NULL;

-- name: named_blobs
SELECT digest FROM agui_bridge.artifacts WHERE digest = ANY ($1::text[])
UNION
SELECT digest FROM agui_bridge.media WHERE digest = ANY ($1::text[]);

-- name: expire_runs
WITH gone AS (
    UPDATE agui_bridge.runs SET expired_at = $2 WHERE thread_id = ANY ($1::text[]) AND expired_at IS NULL RETURNING 1
)
SELECT count(*) FROM gone;

-- name: remove_artifacts
WITH gone AS (DELETE FROM agui_bridge.artifacts WHERE thread_id = ANY ($1::text[]) RETURNING 1)
SELECT count(*) FROM gone;

-- name: remove_media
WITH gone AS (DELETE FROM agui_bridge.media WHERE thread_id = ANY ($1::text[]) RETURNING 1)
SELECT count(*) FROM gone;

-- name: remove_aliases
WITH gone AS (DELETE FROM agui_bridge.aliases WHERE thread_id = ANY ($1::text[]) RETURNING 1)
SELECT count(*) FROM gone;

-- name: remove_keys
WITH gone AS (
    DELETE FROM agui_bridge.idempotency_keys AS k USING agui_bridge.runs AS r
    WHERE r.run_id = k.run_id AND r.thread_id = ANY ($1::text[]) RETURNING 1
)
SELECT count(*) FROM gone;

-- name: remove_interrupts
WITH gone AS (DELETE FROM agui_bridge.interrupts WHERE thread_id = ANY ($1::text[]) RETURNING 1)
SELECT count(*) FROM gone;

-- name: remove_sessions
WITH gone AS (DELETE FROM agui_bridge.sessions WHERE thread_id = ANY ($1::text[]) RETURNING 1)
SELECT count(*) FROM gone;

-- name: remove_events
WITH gone AS (
    DELETE FROM agui_bridge.events AS e USING agui_bridge.runs AS r
    WHERE r.thread_id = ANY ($1::text[]) AND e.run_no = r.run_no
        AND e.recorded_at >= r.began_at AND e.recorded_at <= r.recorded_at
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: remove_runs
WITH gone AS (DELETE FROM agui_bridge.runs WHERE thread_id = ANY ($1::text[]) RETURNING 1)
SELECT count(*) FROM gone;

-- name: remove_threads
WITH gone AS (DELETE FROM agui_bridge.threads WHERE thread_id = ANY ($1::text[]) RETURNING 1)
SELECT count(*) FROM gone;

-- Who stores contents holds this lock with others (see put_contents): none of them is removed before it is named.

-- name: hold_contents
SELECT pg_advisory_xact_lock($1);

-- Contents are named by the snapshots and requests of runs that are kept, by artifacts and by media. Whatever names
-- them from now on has to stand here, too.

-- name: remove_contents
WITH gone AS (
    DELETE FROM agui_bridge.contents WHERE digest = ANY ($1::text[])
        AND digest NOT IN (
            SELECT agent_snapshot_checksum FROM agui_bridge.runs
            WHERE expired_at IS NULL AND agent_snapshot_checksum = ANY ($1)
            UNION ALL
            SELECT context_snapshot_checksum FROM agui_bridge.runs
            WHERE expired_at IS NULL AND context_snapshot_checksum = ANY ($1)
            UNION ALL
            SELECT request_checksum FROM agui_bridge.runs WHERE expired_at IS NULL AND request_checksum = ANY ($1)
            UNION ALL
            SELECT digest FROM agui_bridge.artifacts WHERE digest = ANY ($1)
            UNION ALL
            SELECT digest FROM agui_bridge.media WHERE digest = ANY ($1)
        )
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: unswept_runs
SELECT run_no FROM agui_bridge.runs WHERE expired_at IS NOT NULL AND swept_at IS NULL
ORDER BY expired_at LIMIT $1 FOR UPDATE SKIP LOCKED;

-- name: sweep_events
WITH gone AS (
    DELETE FROM agui_bridge.events AS e USING agui_bridge.runs AS r
    WHERE r.run_no = ANY ($1::bigint[]) AND e.run_no = r.run_no
        AND e.recorded_at >= r.began_at AND e.recorded_at <= r.recorded_at
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: mark_swept
UPDATE agui_bridge.runs SET swept_at = $2 WHERE run_no = ANY ($1::bigint[]);

-- name: weeks
SELECT c.relname AS name FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'agui_bridge.events'::regclass ORDER BY c.relname;

-- name: is_kept
SELECT EXISTS (
    SELECT 1 FROM agui_bridge.runs
    WHERE swept_at IS NULL AND expired_at IS NULL AND began_at < $2 AND recorded_at >= $1
) AS is_kept;

-- name: drop_week
DROP TABLE agui_bridge.{name};
