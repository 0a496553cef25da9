-- Events of a tree are counted in the row of its root.

-- name: find_tree
SELECT run_no, tree_seq FROM runs WHERE run_id = ?;

-- name: move_tree
UPDATE runs SET tree_seq = ? WHERE run_no = ?;

-- name: tree_end
SELECT coalesce(tree_seq, last_seq) AS root_seq FROM runs WHERE run_id = ?;
