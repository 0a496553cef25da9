-- Aliases: further requests that a run answers.

-- name: followed_runs
SELECT a.input_digest AS followed_as, r.* FROM aliases AS a JOIN runs AS r ON r.run_id = a.run_id
WHERE a.thread_id = ? AND a.client_run_id = ? AND a.input_digest <> ''
ORDER BY r.run_no;

-- name: run_of_thread
SELECT * FROM runs WHERE run_id = ? AND thread_id = ?;

-- name: put_alias
INSERT INTO aliases (thread_id, client_run_id, input_digest, run_id, tenant_id)
SELECT ?1, ?2, ?3, ?4, tenant_id FROM threads WHERE thread_id = ?1
ON CONFLICT (thread_id, client_run_id, input_digest) DO UPDATE SET run_id = excluded.run_id;

-- name: find_named_run
SELECT * FROM runs
WHERE thread_id = :thread_id AND (
    client_run_id = :client_run_id
    OR run_id IN (SELECT run_id FROM aliases WHERE thread_id = :thread_id AND client_run_id = :client_run_id)
)
ORDER BY run_no DESC LIMIT 1;
