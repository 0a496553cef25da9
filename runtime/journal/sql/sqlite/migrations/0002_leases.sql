-- The mark by which anybody asks a run's executor to cancel it.

ALTER TABLE runs ADD COLUMN cancel_reason TEXT;
