-- What a session is called without a title of its own, when it was put away, and when it was last changed by its owner.

ALTER TABLE sessions ADD COLUMN default_title TEXT;
ALTER TABLE sessions ADD COLUMN archived_at INTEGER;
ALTER TABLE sessions ADD COLUMN changed_at INTEGER;
