-- Trees as readers see them.

-- name: events_of_tree
SELECT
    w.run_id, e.seq, e.root_seq, e.event_type, e.payload, e.payload_checksum, e.occurred_at, e.recorded_at,
    e.schema_version, e.from_seq
FROM unnest($1::text[], $2::bigint[]) AS w (run_id, after)
JOIN agui_bridge.runs AS r ON r.run_id = w.run_id
CROSS JOIN LATERAL (
    SELECT * FROM agui_bridge.events AS its
    WHERE its.run_no = r.run_no AND its.recorded_at >= r.began_at AND its.recorded_at <= r.recorded_at
        AND its.seq > w.after
    ORDER BY its.seq LIMIT $3
) AS e
ORDER BY e.root_seq LIMIT $3;

-- name: tree_end
SELECT coalesce(t.last_seq, r.last_seq) AS root_seq
FROM agui_bridge.runs AS r LEFT JOIN agui_bridge.trees AS t ON t.root_run_id = r.run_id
WHERE r.run_id = $1;
