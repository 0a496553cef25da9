-- Interrupts. Lists of ids are JSON. A place is (raised_at, id), the newest first.

-- name: raise_interrupt
INSERT INTO interrupts (
    interrupt_id, run_id, thread_id, root_run_id, tenant_id, owner_id, session_id, agent_id, raised, raised_at,
    expires_at
)
SELECT
    ?1, r.run_id, r.thread_id, r.root_run_id, r.tenant_id, r.owner_id, root.session_id, r.agent_id, ?3, ?4, ?5
FROM runs AS r LEFT JOIN runs AS root ON root.run_id = r.root_run_id
WHERE r.run_id = ?2;

-- name: close_interrupt
UPDATE interrupts SET status = ?2, answer_digest = ?3, answered_at = ?4, answering_run_id = ?5
WHERE interrupt_id = ?1 AND status IS NULL;

-- name: interrupts_among
SELECT * FROM interrupts WHERE interrupt_id IN (SELECT value FROM json_each(?));

-- name: find_interrupt
SELECT i.* FROM interrupts AS i
LEFT JOIN sessions AS s ON s.tenant_id = i.tenant_id AND s.owner_id = i.owner_id AND s.session_id = i.session_id
WHERE i.interrupt_id = ? AND s.hidden_at IS NULL;

-- name: open_interrupts
SELECT i.* FROM interrupts AS i
LEFT JOIN sessions AS s ON s.tenant_id = i.tenant_id AND s.owner_id = i.owner_id AND s.session_id = i.session_id
WHERE i.tenant_id = :tenant_id AND i.status IS NULL AND (i.raised_at, i.interrupt_id) < (:created_at, :id)
    AND s.hidden_at IS NULL
ORDER BY i.raised_at DESC, i.interrupt_id DESC LIMIT :limit;

-- name: open_interrupts_of_owner
SELECT i.* FROM interrupts AS i
LEFT JOIN sessions AS s ON s.tenant_id = i.tenant_id AND s.owner_id = i.owner_id AND s.session_id = i.session_id
WHERE i.tenant_id = :tenant_id AND i.owner_id = :owner_id AND i.status IS NULL
    AND (i.raised_at, i.interrupt_id) < (:created_at, :id)
    AND s.hidden_at IS NULL
ORDER BY i.raised_at DESC, i.interrupt_id DESC LIMIT :limit;
