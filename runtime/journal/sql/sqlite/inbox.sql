-- Runs that wait for their thread. The order of the line is that of `changes.place_in_line`.

-- name: queued_runs
SELECT * FROM runs INDEXED BY runs_queued WHERE thread_id = ? AND status = 'queued'
ORDER BY continues IS NULL, when_busy <> 'interrupt', run_no;

-- name: next_queued
SELECT * FROM (
    SELECT r.*, row_number() OVER (
        PARTITION BY r.thread_id ORDER BY r.continues IS NULL, r.when_busy <> 'interrupt', r.run_no
    ) AS place
    FROM runs AS r INDEXED BY runs_queued WHERE r.status = 'queued' AND (:thread_id IS NULL OR r.thread_id = :thread_id)
) AS first
WHERE place = 1 AND NOT EXISTS (
    SELECT 1 FROM runs AS other INDEXED BY runs_active
    WHERE other.thread_id = first.thread_id AND other.status IN ('running', 'cancelling')
)
ORDER BY run_no;

-- name: run_that_continues
SELECT * FROM runs WHERE continues = ?;

-- name: place_run
UPDATE runs SET base = ?, agent_snapshot_checksum = ?, lease_expires_at = ? WHERE run_id = ?;
