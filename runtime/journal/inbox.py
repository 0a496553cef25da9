"""The inbox: runs that wait in line for their thread, and what is committed for several runs at once.

A part of the store's port. A queued run has no facts and no place in its thread. When nobody is at work on the thread,
the first in line is started by whichever process comes first; until then it can be withdrawn (an append of its end,
under its fence) or taken into the run at work (an append to both). The line is first in, first out, but a continuation
of a lost run goes before everything else, and behind it what interrupts goes before what only waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from runtime.events import Event, Record
from runtime.journal import Started
from runtime.run import RunRecord

REJECT: Final = "reject"
ENQUEUE: Final = "enqueue"
INTERRUPT: Final = "interrupt"
STEER: Final = "steer"

BUSY_POLICIES: Final = (REJECT, ENQUEUE, INTERRUPT, STEER)
"""What may become of a request whose thread is busy: it is refused; it waits in line; the run at work is stopped for
it; it is taken into the run at work, or waits in line if that ends first."""


@dataclass(frozen=True, slots=True)
class Starting:
    """What `start_queued` writes in one transaction: the queued run `run_id`, read under `fence`, begins at the thread
    position `base` with these first facts. Its agent snapshot is as of now."""

    run_id: str
    fence: int
    base: int
    executor_instance_id: str
    events: Sequence[Event]
    occurred_at: int
    lease_s: float
    agent_snapshot_checksum: str
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True, slots=True)
class Part:
    """An append to one run, as `Journal.append` takes it."""

    run_id: str
    fence: int
    expected_seq: int
    events: Sequence[Event]


class Inbox(Protocol):
    """Every method may raise StoreError."""

    async def queued_runs(self, thread_id: str) -> list[RunRecord]:
        """The runs that wait for this thread, in the order of the line."""
        ...

    async def next_queued(self, thread_id: str | None = None) -> list[RunRecord]:
        """The first in line of each thread on which nobody is at work; of this thread alone if one is named."""
        ...

    async def start_queued(self, starting: Starting) -> Started | None:
        """Begin a queued run. None if it is no longer queued under that fence or not the first in line, if somebody is
        at work on the thread, or if the thread does not stand at `base`."""
        ...

    async def append_all(self, parts: Sequence[Part], occurred_at: int) -> list[list[Record]] | None:
        """Append to several runs in one commit, or to none of them: then None, and no word of which one refused."""
        ...
