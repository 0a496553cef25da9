"""Watching for readers: a run that only its reader wants is stopped when nobody has read it for a while.

The grace is watched by the run's owner alone. It knows its own readers at once, and those of other processes from what
its heartbeat brings: each tells the store now and then that it reads, and the last one to leave says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from runtime.journal.leases import Lease
from runtime.journal.tail import Tail
from runtime.system import Clock

Stop = Callable[[str], None]
"""Stops a run, given its id."""


@dataclass(slots=True)
class _Watched:
    """A run that is stopped when nobody reads it. `read_at` is when another process was last known to read it."""

    grace: asyncio.Task[None] | None = None
    read_at: int | None = None


class UnreadWatch:
    """The runs of this process that are to be stopped when nobody has read them for `grace_s` seconds."""

    def __init__(self, tail: Tail, clock: Clock, *, grace_s: float, stop: Stop) -> None:
        self.clock = clock
        self._tail = tail
        self._grace_s = grace_s
        self._stop = stop
        self._watched: dict[str, _Watched] = {}
        self.on_change: Callable[[str, bool], None] | None = None
        """Called with a watched run's id when this process begins (True) or ceases to have no reader of it."""

    def watch(self, run_id: str, *, now: bool = False) -> None:
        """Watch a run from its next reader on; with `now` from now on, be there a reader or not."""
        self._watched[run_id] = _Watched()
        if now and not self._tail.readers(run_id):
            self.readers_changed(run_id, 0)

    def forget(self, run_id: str) -> None:
        """The run is over, or another's."""
        watched = self._watched.pop(run_id, None)
        if watched is not None and watched.grace is not None:
            watched.grace.cancel()

    def is_unread(self, run_id: str) -> bool:
        """Whether the run is watched and nobody reads it, as far as this process knows: it may be superseded."""
        watched = self._watched.get(run_id)
        return watched is not None and not self._tail.readers(run_id) and not self._left_s(watched)

    def readers_changed(self, run_id: str, count: int) -> None:
        """How many readers the run has in this process now."""
        watched = self._watched.get(run_id)
        if watched is None:
            return
        if watched.grace is not None:
            watched.grace.cancel()
            watched.grace = None
            if count and self.on_change is not None:
                self.on_change(run_id, False)
        if count == 0:
            watched.grace = asyncio.create_task(self._give_grace(run_id, watched))
            if self.on_change is not None:
                self.on_change(run_id, True)

    def heard(self, leases: Iterable[Lease]) -> None:
        """What a heartbeat brought of readers in other processes."""
        now = self.clock.now()
        for lease in leases:
            watched = self._watched.get(lease.run_id)
            if watched is not None:
                watched.read_at = None if lease.unread_ms is None else now - lease.unread_ms

    async def _give_grace(self, run_id: str, watched: _Watched) -> None:
        left_s = self._grace_s
        while True:
            await self.clock.sleep(left_s)
            left_s = self._left_s(watched)
            if not left_s:
                self._stop(run_id)
                return

    def _left_s(self, watched: _Watched) -> float:
        """How much of the grace is left since another process read the run, in seconds; 0 if none is."""
        if watched.read_at is None:
            return 0.0
        return max(0.0, self._grace_s - (self.clock.now() - watched.read_at) / 1000)
