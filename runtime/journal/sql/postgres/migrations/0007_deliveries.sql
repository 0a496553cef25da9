-- When somebody outside is to be told of a run that is over; NULL if nobody is, or was already. Processes of the release
-- before this one begin runs of which nobody is told.

ALTER TABLE agui_bridge.runs
    ADD COLUMN delivery_due_at bigint,
    ADD COLUMN delivery_attempts integer NOT NULL DEFAULT 0;
CREATE INDEX runs_to_be_delivered ON agui_bridge.runs (delivery_due_at) WHERE delivery_due_at IS NOT NULL;
