-- The last root_seq of a root run's tree, from the moment when it has children.

ALTER TABLE runs ADD COLUMN tree_seq INTEGER;
