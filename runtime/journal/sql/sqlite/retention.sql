-- How facts get fewer and go. Lists of ids and of digests are JSON.

-- name: uncompacted_runs
SELECT run_id FROM runs
WHERE compacted_at IS NULL AND expired_at IS NULL AND finished_at IS NOT NULL AND finished_at < :before
    AND run_id NOT IN (SELECT value FROM json_each(:without))
ORDER BY finished_at, run_no LIMIT :limit;

-- name: compactable_run
SELECT run_no FROM runs
WHERE run_id = ? AND finished_at IS NOT NULL AND compacted_at IS NULL AND expired_at IS NULL;

-- name: deltas_of_run
SELECT
    e.seq, e.root_seq, e.event_type, e.payload, e.payload_checksum, e.occurred_at, e.recorded_at, e.schema_version,
    e.from_seq
FROM events AS e
WHERE e.run_no = ? AND e.event_type IN ('message.delta', 'reasoning.delta', 'tool.call.delta', 'tool.call.progress')
ORDER BY e.seq;

-- name: compact_event
UPDATE events SET payload = ?, payload_checksum = ?, from_seq = ? WHERE run_no = ? AND seq = ?;

-- name: remove_compacted
DELETE FROM events WHERE run_no = ? AND seq >= ? AND seq < ?;

-- name: mark_compacted
UPDATE runs SET compacted_at = ? WHERE run_no = ?;

-- name: idle_threads
SELECT DISTINCT r.thread_id FROM runs AS r
WHERE r.expired_at IS NULL AND r.finished_at < :before AND r.run_id = r.root_run_id
    AND NOT EXISTS (
        SELECT 1 FROM runs AS root JOIN runs AS below ON below.root_run_id = root.run_id
        WHERE root.thread_id = r.thread_id AND (
            below.finished_at IS NULL OR below.finished_at >= :before
            OR below.run_id IN (SELECT value FROM json_each(:without))
        )
    )
LIMIT :limit;

-- name: threads_with_below
SELECT value AS thread_id FROM json_each(:threads)
UNION
SELECT below.thread_id FROM runs AS root JOIN runs AS below ON below.root_run_id = root.run_id
WHERE root.thread_id IN (SELECT value FROM json_each(:threads));

-- name: threads_of_owner
SELECT thread_id FROM threads WHERE tenant_id = ? AND owner_id = ? ORDER BY created_at, thread_id;

-- name: sessions_of_owner
SELECT * FROM sessions WHERE tenant_id = ? AND owner_id = ? ORDER BY created_at, session_id;

-- name: thread_of_session
SELECT thread_id FROM sessions WHERE tenant_id = ? AND owner_id = ? AND session_id = ?;

-- name: busy_run_among
SELECT run_id FROM runs
WHERE thread_id IN (SELECT value FROM json_each(:threads)) AND status IN ('queued', 'running', 'cancelling')
LIMIT 1;

-- name: digests_of_threads
SELECT digest FROM artifacts WHERE thread_id IN (SELECT value FROM json_each(:threads))
UNION
SELECT digest FROM media WHERE thread_id IN (SELECT value FROM json_each(:threads));

-- name: snapshots_of_threads
SELECT agent_snapshot_checksum AS digest FROM runs WHERE thread_id IN (SELECT value FROM json_each(:threads))
UNION
SELECT context_snapshot_checksum FROM runs WHERE thread_id IN (SELECT value FROM json_each(:threads))
UNION
SELECT request_checksum FROM runs WHERE thread_id IN (SELECT value FROM json_each(:threads));

-- name: named_blobs
SELECT digest FROM artifacts WHERE digest IN (SELECT value FROM json_each(:digests))
UNION
SELECT digest FROM media WHERE digest IN (SELECT value FROM json_each(:digests));

-- name: expire_runs
UPDATE runs SET expired_at = :at
WHERE thread_id IN (SELECT value FROM json_each(:threads)) AND expired_at IS NULL;

-- name: remove_artifacts
DELETE FROM artifacts WHERE thread_id IN (SELECT value FROM json_each(:threads));

-- name: remove_media
DELETE FROM media WHERE thread_id IN (SELECT value FROM json_each(:threads));

-- name: remove_aliases
DELETE FROM aliases WHERE thread_id IN (SELECT value FROM json_each(:threads));

-- name: remove_keys
DELETE FROM idempotency_keys WHERE run_id IN (
    SELECT run_id FROM runs WHERE thread_id IN (SELECT value FROM json_each(:threads))
);

-- name: remove_interrupts
DELETE FROM interrupts WHERE thread_id IN (SELECT value FROM json_each(:threads));

-- name: remove_sessions
DELETE FROM sessions WHERE thread_id IN (SELECT value FROM json_each(:threads));

-- name: remove_events
DELETE FROM events WHERE run_no IN (
    SELECT run_no FROM runs WHERE thread_id IN (SELECT value FROM json_each(:threads))
);

-- name: remove_runs
DELETE FROM runs WHERE thread_id IN (SELECT value FROM json_each(:threads));

-- name: remove_threads
DELETE FROM threads WHERE thread_id IN (SELECT value FROM json_each(:threads));

-- Contents are named by the snapshots and requests of runs that are kept, by artifacts and by media. Whatever names
-- them from now on has to stand here, too.

-- name: remove_contents
DELETE FROM contents WHERE digest IN (SELECT value FROM json_each(:digests))
    AND digest NOT IN (
        SELECT agent_snapshot_checksum FROM runs WHERE expired_at IS NULL AND agent_snapshot_checksum IS NOT NULL
        UNION ALL
        SELECT context_snapshot_checksum FROM runs WHERE expired_at IS NULL AND context_snapshot_checksum IS NOT NULL
        UNION ALL
        SELECT request_checksum FROM runs WHERE expired_at IS NULL AND request_checksum IS NOT NULL
        UNION ALL
        SELECT digest FROM artifacts
        UNION ALL
        SELECT digest FROM media
    );

-- name: unswept_runs
SELECT run_no FROM runs WHERE expired_at IS NOT NULL AND swept_at IS NULL ORDER BY expired_at LIMIT ?;

-- name: sweep_events
DELETE FROM events WHERE run_no IN (SELECT value FROM json_each(?));

-- name: mark_swept
UPDATE runs SET swept_at = ? WHERE run_no IN (SELECT value FROM json_each(?));
