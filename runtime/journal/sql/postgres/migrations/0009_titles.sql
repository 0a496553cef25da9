-- What a session is called without a title of its own, when it was put away, and when it was last changed by its owner.

ALTER TABLE agui_bridge.sessions
ADD COLUMN default_title text,
ADD COLUMN archived_at bigint,
ADD COLUMN changed_at bigint;
