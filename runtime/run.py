"""A run: its record, and its state machine as a table.

Two rules hold here and nowhere else: every change of a run's status goes through `TRANSITIONS`, and what is not in
the table is illegal: it raises and leaves everything as it was. The table knows nothing of leases, readers or time:
a lease says that somebody is at work, never how the work ended. A terminal status is never left again.

The diagram in docs/run-states.md is generated from this table.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.canonical import JsonObject
from runtime.errors import AguiBridgeError
from runtime.events import Event

QUEUED = "queued"
RUNNING = "running"
CANCELLING = "cancelling"
SUCCEEDED = "succeeded"
FAILED = "failed"
SUSPENDED = "suspended"
INTERRUPTED = "interrupted"
CANCELLED = "cancelled"

TRANSITIONS: dict[str, dict[str, str]] = {
    QUEUED: {
        "run.started": RUNNING,
        "run.cancelling": CANCELLING,
        "run.cancelled": CANCELLED,
        "run.interrupted": INTERRUPTED,
    },
    RUNNING: {
        "run.completed": SUCCEEDED,
        "run.failed": FAILED,
        "run.suspended": SUSPENDED,
        "run.interrupted": INTERRUPTED,
        "run.cancelling": CANCELLING,
    },
    CANCELLING: {
        "run.cancelled": CANCELLED,
        "run.interrupted": INTERRUPTED,
    },
    SUCCEEDED: {},
    FAILED: {},
    SUSPENDED: {},
    INTERRUPTED: {},
    CANCELLED: {},
}

ACTIVE = frozenset(status for status, moves in TRANSITIONS.items() if moves)
TERMINAL = frozenset(status for status, moves in TRANSITIONS.items() if not moves)


class IllegalTransition(AguiBridgeError):
    """The run cannot take this step from the state that it is in."""

    code = "illegal_transition"


def status_after(status: str, events: list[Event]) -> str:
    """The status when `events` have happened in this order. Raises IllegalTransition; a fact after the end is one."""
    for event in events:
        moves = TRANSITIONS[status]
        if not moves:
            raise IllegalTransition(f"The run is over ({status}); {event.event_type} comes too late.")
        if event.event_type.startswith("run."):
            if event.event_type not in moves:
                raise IllegalTransition(f"{event.event_type} is no move for a run that is {status}.")
            status = moves[event.event_type]
    return status


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as the store knows it. Times are ms since the epoch; `base` is the thread position at which it began.

    `fence` is the number of its present executor's claim: an append with another fence is refused.
    """

    run_id: str
    tenant_id: str
    owner_id: str
    thread_id: str
    session_id: str | None
    agent_id: str
    client_run_id: str
    input_digest: str
    attempt: int
    status: str
    base: int
    last_seq: int
    fence: int
    root_run_id: str
    created_at: int
    parent_run_id: str | None = None
    executor_instance_id: str | None = None
    lease_expires_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    final_message_id: str | None = None
    error: JsonObject | None = None
    usage: list[JsonObject] | None = None
    agent_snapshot_checksum: str | None = None
    context_snapshot_checksum: str | None = None
    trace_id: str | None = None
    expired_at: int | None = None
    """When its facts were removed; the record stays."""
    request_checksum: str | None = None
    """The content that says what was asked (see `stored_request`)."""
    when_busy: str | None = None
    """How it waits, or waited, for its thread (see `journal.inbox`); None if it began at once."""
    continues: str | None = None
    """The lost run that it goes on with."""

    @property
    def has_place(self) -> bool:
        """Whether its facts have places in the thread: not those of a run that ended while it was queued."""
        return self.when_busy is None or self.base > 0

    @property
    def is_over(self) -> bool:
        """Whether the run has its one terminal event."""
        return self.status in TERMINAL
