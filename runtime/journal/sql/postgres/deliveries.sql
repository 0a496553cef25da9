-- Runs of which somebody outside has to be told when they are over.

-- name: add_delivery
UPDATE agui_bridge.runs SET delivery_due_at = 0 WHERE run_id = $1;

-- name: due_deliveries
SELECT run_id FROM agui_bridge.runs
WHERE delivery_due_at <= agui_bridge.now_ms() AND status NOT IN ('queued', 'running', 'cancelling')
ORDER BY delivery_due_at LIMIT $1;

-- name: claim_delivery
UPDATE agui_bridge.runs SET delivery_due_at = agui_bridge.now_ms() + $2, delivery_attempts = delivery_attempts + 1
WHERE run_id = $1 AND delivery_due_at <= agui_bridge.now_ms() AND status NOT IN ('queued', 'running', 'cancelling')
RETURNING delivery_attempts;

-- name: put_off_delivery
UPDATE agui_bridge.runs SET delivery_due_at = agui_bridge.now_ms() + $2
WHERE run_id = $1 AND delivery_due_at IS NOT NULL;

-- name: end_delivery
UPDATE agui_bridge.runs SET delivery_due_at = NULL WHERE run_id = $1;
