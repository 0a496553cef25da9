-- When somebody outside is to be told of a run that is over; NULL if nobody is, or was already.

ALTER TABLE runs ADD COLUMN delivery_due_at INTEGER;
ALTER TABLE runs ADD COLUMN delivery_attempts INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_to_be_delivered ON runs (delivery_due_at) WHERE delivery_due_at IS NOT NULL;
