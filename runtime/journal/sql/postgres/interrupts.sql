-- Interrupts. They are written behind the facts, in the same transaction. A place is (raised_at, id), the newest first.

-- name: raise_interrupts
INSERT INTO agui_bridge.interrupts (
    interrupt_id, run_id, thread_id, root_run_id, tenant_id, owner_id, session_id, agent_id, raised, raised_at,
    expires_at
)
SELECT
    new.interrupt_id, r.run_id, r.thread_id, r.root_run_id, r.tenant_id, r.owner_id, root.session_id, r.agent_id,
    new.raised, new.raised_at, new.expires_at
FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[], $5::bigint[])
    AS new (interrupt_id, run_id, raised, raised_at, expires_at)
JOIN agui_bridge.runs AS r ON r.run_id = new.run_id
LEFT JOIN agui_bridge.runs AS root ON root.run_id = r.root_run_id;

-- Rows are locked in the order of their ids, so that no two statements wait for each other. What another transaction
-- has closed meanwhile is left as it is.

-- name: close_interrupts
WITH still_open AS MATERIALIZED (
    SELECT interrupt_id FROM agui_bridge.interrupts
    WHERE interrupt_id = ANY ($1::text[]) AND status IS NULL ORDER BY interrupt_id FOR UPDATE
)
UPDATE agui_bridge.interrupts AS i SET
    status = given.status, answer_digest = given.answer_digest, answered_at = given.answered_at,
    answering_run_id = given.answering_run_id
FROM still_open
JOIN unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    AS given (interrupt_id, status, answer_digest, answered_at, answering_run_id)
    ON given.interrupt_id = still_open.interrupt_id
WHERE i.interrupt_id = still_open.interrupt_id
RETURNING i.interrupt_id;

-- name: interrupts_among
SELECT * FROM agui_bridge.interrupts WHERE interrupt_id = ANY ($1::text[]);

-- name: find_interrupt
SELECT i.* FROM agui_bridge.interrupts AS i
LEFT JOIN agui_bridge.sessions AS s
    ON s.tenant_id = i.tenant_id AND s.owner_id = i.owner_id AND s.session_id = i.session_id
WHERE i.interrupt_id = $1 AND s.hidden_at IS NULL;

-- name: open_interrupts
SELECT i.* FROM agui_bridge.interrupts AS i
LEFT JOIN agui_bridge.sessions AS s
    ON s.tenant_id = i.tenant_id AND s.owner_id = i.owner_id AND s.session_id = i.session_id
WHERE i.tenant_id = $1 AND i.status IS NULL AND (i.raised_at, i.interrupt_id) < ($2::bigint, $3::text)
    AND s.hidden_at IS NULL
ORDER BY i.raised_at DESC, i.interrupt_id DESC LIMIT $4;

-- name: open_interrupts_of_owner
SELECT i.* FROM agui_bridge.interrupts AS i
LEFT JOIN agui_bridge.sessions AS s
    ON s.tenant_id = i.tenant_id AND s.owner_id = i.owner_id AND s.session_id = i.session_id
WHERE i.tenant_id = $1 AND i.owner_id = $5 AND i.status IS NULL
    AND (i.raised_at, i.interrupt_id) < ($2::bigint, $3::text)
    AND s.hidden_at IS NULL
ORDER BY i.raised_at DESC, i.interrupt_id DESC LIMIT $4;
