"""Housekeeping: what a server does with old facts by itself, a little at a time, between other work.

It compacts runs some time after they have ended, and lets threads go that nobody used for long. What somebody reads in
this process is left alone. Any number of processes may do this over one store: each step is taken by one of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from runtime.erasure import Erasure, Receipt
from runtime.errors import StoreError
from runtime.journal.retention import Removed
from runtime.journal.store import Store
from runtime.system import Clock

log = logging.getLogger("agui_bridge.housekeeping")

EVERY_S: Final = 60.0
TOGETHER: Final = 32
"""How many runs or threads are asked for at once."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """After how many seconds a run that has ended is compacted, an unused thread goes, and an upload that no message
    has used. None: never."""

    compact_after_s: float | None = 3600.0
    expire_after_s: float | None = None
    unused_media_s: float | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a round of housekeeping came to: the rows that compaction saved, and what has gone."""

    compacted_runs: int = 0
    saved_rows: int = 0
    gone: Receipt = field(default_factory=Receipt)


class Housekeeper:
    """Keeps one store in order between `start` and `stop`. `read_runs` names what is being read in this process."""

    def __init__(
        self,
        store: Store,
        erasure: Erasure,
        clock: Clock,
        policy: RetentionPolicy,
        read_runs: Callable[[], Collection[str]] = frozenset,
        every_s: float = EVERY_S,
    ) -> None:
        self._store = store
        self._erasure = erasure
        self._clock = clock
        self._policy = policy
        self._read_runs = read_runs
        self._every_s = every_s
        self._media_looked_at = 0
        """Media up to this time have been looked at: whatever of them is unused is gone, and what is used stays so."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, on the running event loop, if there is anything to do."""
        if self._policy != RetentionPolicy(None, None, None):
            self._task = asyncio.create_task(self._run(), name="housekeeping")

    async def stop(self) -> None:
        """Stop; a step that has begun is finished or undone by the store."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def keep(self) -> Kept:
        """All that is due now. Raises StoreError."""
        runs, saved = 0, 0
        if (after_s := self._policy.compact_after_s) is not None:
            runs, saved = await self._compact(self._before(after_s))
        gone = Receipt()
        if (after_s := self._policy.expire_after_s) is not None:
            gone = await self._expire(self._before(after_s))
        if (after_s := self._policy.unused_media_s) is not None:
            before = self._before(after_s)
            gone += await self._erasure.unused_media(self._media_looked_at, before)
            self._media_looked_at = before
        return Kept(runs, saved, gone)

    async def _run(self) -> None:
        while True:
            try:
                kept = await self.keep()
                if kept.saved_rows or kept.gone.database:
                    log.info("compacted %s runs, removed %s", kept.compacted_runs, kept.gone.as_payload())
            except StoreError as error:
                log.warning("old facts could not be looked after: %s", error)
            await asyncio.sleep(self._every_s)

    async def _compact(self, ended_before: int) -> tuple[int, int]:
        runs, saved = 0, 0
        tried: set[str] = set()
        while True:
            due = await self._store.uncompacted_runs(ended_before, TOGETHER, [*self._read_runs(), *tried])
            if not due:
                return runs, saved
            for run_id in due:
                rows = await self._store.compact(run_id, self._clock.now())
                runs, saved = runs + 1, saved + rows
                await asyncio.sleep(0)
            tried.update(due)  # one that another process is at is not asked for again

    async def _expire(self, idle_before: int) -> Receipt:
        gone = Receipt()
        while removed := await self._store.expire(idle_before, self._clock.now(), TOGETHER, self._read_runs()):
            gone += await self._erasure.remove_files(removed)
        while removed := await self._store.sweep(self._clock.now()):
            gone += Receipt(_facts(removed))
        return gone

    def _before(self, seconds: float) -> int:
        return self._clock.now() - round(seconds * 1000)


def _facts(swept: Removed) -> Removed:
    """A sweep's counts without the runs: they were counted when they expired."""
    return Removed({kind: count for kind, count in swept.counts.items() if kind != "swept_runs"})
