"""The journal port: the append-only store of facts, and what every implementation promises.

Above it stand the supervisor (begins runs, reconciles lost ones) and the engine (appends); below it a database. It
knows events as bytes with a type, runs as records, and nothing of models, tools, AG-UI or HTTP.

Promises, held by tests/contract/ for every implementation:

1. `begin_run` is one transaction: either all of it is in the store, or nothing.
2. `append` gives `seq` at commit, without gaps, in the order of `events`; only when it has returned may anybody see
   them. It is refused (`FenceLost`) for a fence that is not the run's, or when the run is over.
3. `append` with an `expected_seq` that the store is already past, by exactly these events, is the same append and
   succeeds: a commit whose answer was lost never doubles. Anything else is `AppendConflict`.
4. A run has one terminal event; one run at a time is at work on a thread, others may wait for it (see `inbox`).
5. Readers see a prefix of the journal, never a gap.
6. An event that cannot be stored fails its own run's append, and nobody else's.
7. What a run asks of somebody outside is answered once (see `interrupts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from runtime.events import Event, Record
from runtime.run import RunRecord

DEFAULT_TENANT = "-"


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation as a user sees it, with the thread (the model's memory) behind it."""

    tenant_id: str
    owner_id: str
    session_id: str
    thread_id: str
    agent_id: str
    title: str | None
    created_at: int
    hidden_at: int | None = None
    """When it was deleted, as far as anybody outside can see."""
    default_title: str | None = None
    """What it is called without a title: the first words that were said in it."""
    archived_at: int | None = None
    """When its owner has put it away: it is left out of lists, and nothing else."""
    changed_at: int | None = None
    """When its owner has changed it last."""

    @property
    def name(self) -> str | None:
        """What it is called; None before anything was said in it."""
        return self.default_title if self.title is None else self.title


@dataclass(frozen=True, slots=True)
class Idempotency:
    """What makes a request safe to repeat: its key and what it asks for, as digests, and the id of the message that it
    gives, which its repeats are told. A key belongs to its owner."""

    key_digest: str
    request_digest: str
    message_id: str


@dataclass(frozen=True, slots=True)
class KeyedRun:
    """What an idempotency key was used for."""

    run: RunRecord
    request_digest: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What `begin_run` writes in one transaction.

    `run` is the record as it shall be: status queued, last_seq 0; `base` is the thread position that the caller read,
    `attempt` the least one wanted (a higher one is given if that is taken by a run that may be repeated).
    `session` is created if it is new; `contents` are blobs by digest, written once. `events` are the first facts and
    take the run to the status that they imply.
    """

    run: RunRecord
    session: Session | None
    events: Sequence[Event]
    occurred_at: int
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    repeatable: bool = False
    """Whether the same request may run again when its last run ended failed or interrupted (a `resume`)."""
    lease_s: float | None = None
    """For how long, by the store's clock, the run's executor holds it from the start (see `leases`)."""
    idempotency: Idempotency | None = None
    when_busy: str = "reject"
    """What becomes of it while another run is at work on the thread, or waits for it (see `inbox`)."""
    queue_limit: int | None = None
    """How many runs may wait for the thread at most."""
    default_title: str | None = None
    """What a session that was there before, and in which nothing was said, is called from now on."""
    delivers: bool = False
    """Whether somebody outside is to be told when the run is over (see `deliveries`)."""


@dataclass(frozen=True, slots=True)
class Started:
    """The run is in the store, with its first events."""

    run: RunRecord
    records: list[Record]


@dataclass(frozen=True, slots=True)
class Replay:
    """The same request was made before: this is its run. `message_id` is the one that its idempotency key was told."""

    run: RunRecord
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The owner used this idempotency key for another request."""

    run: RunRecord


@dataclass(frozen=True, slots=True)
class Conflict:
    """The client's run id was used on this thread for other content."""

    run: RunRecord


@dataclass(frozen=True, slots=True)
class Answered:
    """An interrupt that the opening answers was answered before, in this root run."""

    run: RunRecord
    interrupt_id: str


@dataclass(frozen=True, slots=True)
class Busy:
    """This run is at work on the thread."""

    run: RunRecord


@dataclass(frozen=True, slots=True)
class Queued:
    """The run is in the store, without facts, and waits for its thread. `behind` is at work there, or the first in
    line."""

    run: RunRecord
    behind: RunRecord


@dataclass(frozen=True, slots=True)
class QueueFull:
    """This run is at work on the thread, and as many wait for it as may."""

    run: RunRecord


@dataclass(frozen=True, slots=True)
class Moved:
    """The thread does not stand where the caller read it; read it again."""

    position: int


Begun: TypeAlias = Started | Queued | Replay | KeyReused | Conflict | Answered | Busy | QueueFull | Moved


class Journal(Protocol):
    """See the module's docstring for what is promised. Every method may raise StoreError."""

    async def open(self) -> None:
        """Connect, lock and migrate. Raises StoreVersionError, StoreLocked."""
        ...

    async def close(self) -> None:
        """Write what was handed in, then let go of the store."""
        ...

    async def begin_run(self, opening: Opening) -> Begun:
        """Begin a run, or say why not. Looked for in this order: the idempotency key, replay and conflict, answered,
        busy, moved.

        Raises NotFound for somebody else's thread, and for one whose session is hidden (see `catalogue`). A key that
        was used is a replay for the same request and reused for another; a new one is kept in the same transaction.
        An opening that may wait is queued where it would be busy: without facts, lease or executor.
        Replay: a run of this thread has the same client_run_id and input digest (the newest attempt; if that is over
        as failed or interrupted and the opening is `repeatable`, a new attempt starts instead). Conflict: the same
        client_run_id, another digest, and the opening is not `repeatable`.
        Each `interrupt.answered` of the opening claims its interrupt (see `interrupts`): one that is open, or that was
        answered in the same root run. Raises Unstorable for one that is not there.
        """
        ...

    async def append(
        self, run_id: str, fence: int, expected_seq: int, events: Sequence[Event], occurred_at: int
    ) -> list[Record]:
        """Commit `events` behind `expected_seq` and return them with their places. See promises 2 and 3.

        The run's status, times, error, usage, final message and last_seq follow from the events, in the same commit.
        Raises FenceLost, AppendConflict, IllegalTransition.
        """
        ...

    async def put_contents(self, contents: dict[str, bytes]) -> None:
        """Store blobs by their digest; what is there already stays."""
        ...

    async def content(self, digest: str) -> bytes | None:
        """A blob by its digest."""
        ...

    async def find_run(self, run_id: str) -> RunRecord | None:
        """A run by its id."""
        ...

    async def find_session(self, tenant_id: str, owner_id: str, session_id: str) -> Session | None:
        """An owner's session by its id."""
        ...

    async def active_runs(self) -> list[RunRecord]:
        """All runs that are not over, oldest first."""
        ...

    async def read(self, run_id: str, after: int, limit: int) -> list[Record]:
        """At most `limit` records of a run with seq greater than `after`, in order."""
        ...

    async def read_thread(
        self, thread_id: str, after: int, up_to: int | None = None
    ) -> list[tuple[RunRecord, list[Record]]]:
        """The thread's facts behind position `after`, and up to `up_to`, run by run in order, each with its records.

        Deltas of runs that are over are left out: their `message.completed` has what they said. Both are thread
        positions (a run's base plus seq); runs that lie outside are not named.
        """
        ...

    async def healthy(self) -> None:
        """Return if the store answers; raise StoreError if not."""
        ...
