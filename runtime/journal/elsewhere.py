"""Waiting for runs that are at work in other processes.

Whoever follows such a run stays here until the run ends, comes to this process, or is left. A wake ends the wait, and
since wakes may be lost, one question a second asks for all followed runs where they end; while nobody follows a run
elsewhere, nothing is asked. The store is told which runs are read from here, so that their owners send wakes for them
and do not take them for unread. Everything happens on one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from runtime.errors import StoreError
from runtime.journal.store import Store
from runtime.journal.wakes import End, Wake
from runtime.system import Clock

POLL_S = 1.0
"""How often is asked where the followed runs end."""

LEAST_POLL_S = 0.1
"""However short the time after which an unread run is stopped, the store is not told more often."""

log = logging.getLogger("agui_bridge.journal")


class _Followed:
    """A run at work elsewhere: how many follow it, what they have, and who waits for more."""

    def __init__(self) -> None:
        self.readers = 0
        self.news = 0
        self.waiting: dict[asyncio.Future[None], int] = {}

    def wake(self) -> None:
        self.news += 1
        for future in self.waiting:
            if not future.done():
                future.set_result(None)

    def has_more(self, end: End | None) -> bool:
        """Whether anybody who waits lacks something, as far as that end goes; an unknown run is for them to find."""
        return bool(self.waiting) and (end is None or end.is_over or end.last_seq > min(self.waiting.values()))


class Stay:
    """One reader's wait for one run; it ends with `leave`."""

    def __init__(self, followed: _Followed, leave: Callable[[], None]):
        self._followed = followed
        self._leave = leave
        self._here = True
        self._waits: asyncio.Future[None] | None = None

    @property
    def news(self) -> int:
        """A number that changes with every hint: to be taken before the store is read."""
        return self._followed.news

    async def wait(self, after: int, news: int) -> None:
        """Return when there may be more than `after`, or when a hint came since `news` was taken."""
        if news != self._followed.news or not self._here:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waits = future
        self._followed.waiting[future] = after
        try:
            await future
        finally:
            self._waits = None
            del self._followed.waiting[future]

    def leave(self) -> None:
        """Follow the run no longer and end the wait; harmless when done already."""
        if self._here:
            self._here = False
            if self._waits is not None and not self._waits.done():
                self._waits.set_result(None)
            self._leave()


class Elsewhere:
    """All runs that are followed from here and at work in other processes.

    `mark_s` is how often the store is told that they are read: well within the time after which an unread run is
    stopped.
    """

    def __init__(self, store: Store, clock: Clock, *, mark_s: float, poll_s: float = POLL_S):
        self._store = store
        self._clock = clock
        self._mark_s = mark_s
        self._poll_s = max(min(poll_s, mark_s), LEAST_POLL_S)
        self._followed: dict[str, _Followed] = {}
        self._marks: dict[str, bool] = {}
        self._polling: asyncio.Task[None] | None = None
        self._marking: asyncio.Task[None] | None = None

    def follow(self, run_id: str) -> Stay:
        """Begin to follow a run; what was committed before is to be read after this."""
        followed = self._followed.setdefault(run_id, _Followed())
        followed.readers += 1
        if followed.readers == 1:
            self._mark(run_id, read=True)
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll(), name="follow-elsewhere")
        return Stay(followed, lambda: self._left(run_id, followed))

    def heard(self, wake: Wake | None) -> None:
        """A hint came from another process; None: hints may have been lost."""
        if wake is None:
            for followed in list(self._followed.values()):
                followed.wake()
        elif wake.kind == "events":
            self.came(wake.run_id)

    def came(self, run_id: str) -> None:
        """The run has more, or is at work in this process now."""
        followed = self._followed.get(run_id)
        if followed is not None:
            followed.wake()

    async def close(self) -> None:
        """Stop asking, and say who has left."""
        polling, self._polling = self._polling, None
        if polling is not None:
            polling.cancel()
            await asyncio.wait({polling})
        if self._marking is not None:
            await asyncio.wait({self._marking})

    def _left(self, run_id: str, followed: _Followed) -> None:
        followed.readers -= 1
        if followed.readers == 0:
            del self._followed[run_id]
            self._mark(run_id, read=False)
        if not self._followed and self._polling is not None:
            self._polling.cancel()
            self._polling = None

    async def _poll(self) -> None:
        until_mark = self._mark_s
        while True:
            await self._clock.sleep(self._poll_s)
            until_mark -= self._poll_s
            try:
                if until_mark <= 0:
                    until_mark = self._mark_s
                    await self._store.mark_read(list(self._followed))
                await self._look()
            except StoreError as error:
                log.info("runs that are at work elsewhere could not be looked at: %s", error)

    async def _look(self) -> None:
        waited_for = [run_id for run_id, followed in self._followed.items() if followed.waiting]
        if not waited_for:
            return
        ends = await self._store.ends(waited_for)
        for run_id in waited_for:
            followed = self._followed.get(run_id)
            if followed is not None and followed.has_more(ends.get(run_id)):
                followed.wake()

    def _mark(self, run_id: str, *, read: bool) -> None:
        self._marks[run_id] = read
        if self._marking is None:
            self._marking = asyncio.create_task(self._tell(), name="mark-read")

    async def _tell(self) -> None:
        """Tell the store, in order, who came and who left."""
        try:
            while self._marks:
                marks, self._marks = self._marks, {}
                try:
                    if came := [run_id for run_id, read in marks.items() if read]:
                        await self._store.mark_read(came)
                    for run_id, read in marks.items():
                        if read:
                            await self._store.wake(Wake("read", run_id))
                        else:
                            await self._store.clear_read(run_id)
                except StoreError as error:
                    log.info("the store was not told who reads: %s", error)
        finally:
            self._marking = None
