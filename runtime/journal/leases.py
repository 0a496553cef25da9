"""Leases: who is at work on which run, as far as the store knows. A part of the store's port.

A lease says that somebody is at work; its end says nothing about the result. Times are those of the store's clock
alone, so that processes whose clocks differ agree. What a run's executor has to hear from elsewhere (a cancel mark,
whether anybody reads) comes with the answer to its heartbeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from runtime.run import RunRecord


@dataclass(frozen=True, slots=True)
class Lease:
    """What a heartbeat is told of one run that its executor holds.

    `cancel_reason` is the mark that somebody set, `unread_ms` how long ago the run was last read by another process
    (None if no other process reads it).
    """

    run_id: str
    fence: int
    cancel_reason: str | None
    unread_ms: int | None


class Leases(Protocol):
    """Every method may raise StoreError."""

    @property
    def exclusive(self) -> bool:
        """Whether the open store is this process's alone: then older executors are dead, whatever their leases say."""
        ...

    async def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
        """Hold these runs for `lease_s` seconds from now; one lease for each that is this executor's and not over.

        A run that is missing in the answer is lost: it is over, or another executor took it.
        """
        ...

    async def take_over(self, run_id: str, executor_instance_id: str, lease_s: float) -> RunRecord | None:
        """Raise the fence of a run for a new executor and return it with its new lease.

        None if the run is over or unknown, or if somebody else holds its lease. In an exclusive
        store no older lease holds.
        """
        ...

    async def hand_over(self, run_id: str, fence: int, for_s: float = 0.0) -> bool:
        """Let go of the run, so that another executor may take it now; False if the fence is not the run's.

        If nobody has within `for_s` seconds, it is lost.
        """
        ...

    async def handed_over(self) -> list[RunRecord]:
        """Runs at work that somebody has let go of and nobody has taken yet, oldest first; without those that are
        lost."""
        ...

    async def lost_runs(self) -> list[RunRecord]:
        """Runs at work (running or cancelling) whose lease ran out, oldest first."""
        ...

    async def mark_cancel(self, run_id: str, reason: str) -> RunRecord | None:
        """Leave a mark that the run is to be cancelled, unless it is over or has one; the run as it is afterwards.

        The mark is no event: whoever executes the run appends what follows. None if there is no such run.
        """
        ...

    async def mark_read(self, run_ids: Sequence[str]) -> None:
        """These runs are being read by this process now."""
        ...

    async def clear_read(self, run_id: str) -> None:
        """The last reader of this process has left the run."""
        ...

    async def mark_unread(self, run_id: str, *, unread: bool) -> None:
        """Nobody in its executor's process reads the run, which is to be stopped for that; or somebody does again."""
        ...

    async def is_unread(self, run_id: str) -> bool:
        """Whether the run is marked unread and no other process reads it either. In an exclusive store nobody asks, and
        nothing is kept."""
        ...
