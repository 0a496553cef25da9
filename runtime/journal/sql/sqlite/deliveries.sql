-- Runs of which somebody outside has to be told when they are over.

-- name: add_delivery
UPDATE runs SET delivery_due_at = 0 WHERE run_no = ?;

-- name: due_deliveries
SELECT run_id FROM runs INDEXED BY runs_to_be_delivered
WHERE delivery_due_at <= ? AND status NOT IN ('queued', 'running', 'cancelling')
ORDER BY delivery_due_at LIMIT ?;

-- name: claim_delivery
UPDATE runs SET delivery_due_at = ?, delivery_attempts = delivery_attempts + 1
WHERE run_id = ? AND delivery_due_at <= ? AND status NOT IN ('queued', 'running', 'cancelling')
RETURNING delivery_attempts;

-- name: put_off_delivery
UPDATE runs SET delivery_due_at = ? WHERE run_id = ? AND delivery_due_at IS NOT NULL;

-- name: end_delivery
UPDATE runs SET delivery_due_at = NULL WHERE run_id = ?;
