"""Retention: how facts get fewer with time, and how they go for good. A part of the store's port.

Three things happen to the facts of runs that are over. *Compacted*: the deltas of each part become one event (see
`compaction`). *Expired*: a thread that nobody used for long is gone with its session; the records of its runs stay
(who ran what, how it ended, what it cost), their facts do not. *Erased*: nothing stays. What has expired is told so at
once, and swept away afterwards, a bounded amount at a time: nobody who writes has to wait long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from runtime.journal import Session
from runtime.journal.catalogue import Owner

SWEEP_RUNS = 64
"""The facts of how many runs one sweep removes at most."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A receipt: how many rows of each kind are gone, and the contents that artifacts no longer name (their bytes are
    the caller's to remove, as far as they do not lie in the store)."""

    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    digests: frozenset[str] = frozenset()

    def __add__(self, other: Removed) -> Removed:
        return Removed(dict(Counter(self.counts) + Counter(other.counts)), self.digests | other.digests)

    def __bool__(self) -> bool:
        return any(self.counts.values())


NOTHING = Removed()


class Retention(Protocol):
    """Every method may raise StoreError."""

    async def uncompacted_runs(self, ended_before: int, limit: int, without: Collection[str] = ()) -> list[str]:
        """At most `limit` runs that ended before that time and were not compacted, the earliest first."""
        ...

    async def compact(self, run_id: str, at: int) -> int:
        """Compact the run's deltas and say how many rows that saved; 0 if it is not over, or compacted already.

        Places in the run stay what they are but for those within what became one event.
        """
        ...

    async def expire(self, idle_before: int, at: int, limit: int, without: Collection[str] = ()) -> Removed:
        """Let at most `limit` threads go in which no run was at work since `idle_before`, with all below them.

        A thread of `without`, which are ids of runs that are being read, stays for now; one that waits for an answer
        is idle like any other. Sessions, aliases, keys, interrupts, artifacts and snapshots that nothing else names are
        gone; the facts are no longer read and go with `sweep`.
        """
        ...

    async def sweep(self, at: int) -> Removed:
        """Remove facts of what has expired, of at most `SWEEP_RUNS` runs. Nothing: there are none left."""
        ...

    async def threads_of_session(self, owner: Owner, session_id: str) -> list[str]:
        """The thread of a session, hidden or not, and of all runs below it; none if there is no such session."""
        ...

    async def threads_of_owner(self, owner: Owner) -> list[str]:
        """All threads of an owner, in the order in which they came."""
        ...

    async def sessions_of_owner(self, owner: Owner) -> list[Session]:
        """All sessions of an owner, hidden ones too, oldest first."""
        ...

    async def erase(self, thread_ids: Sequence[str]) -> Removed:
        """Remove these threads and everything that belongs to them, in one transaction, even what has expired.

        Raises ThreadBusy, and removes nothing, while a run is at work on one of them.
        """
        ...
