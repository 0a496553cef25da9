"""Channels: what is live in this process, and who waits for more of it.

A channel keeps the recent records of one run, a tree's those of a root run and all below it, in the order of their
`root_seq`. They are told what was committed and hold no reader's place. Everything happens on one event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from runtime.events import Record

MOST_EARLY = 256
"""How many records of a tree may wait for those before them."""


class _Waited:
    """Something that is waited for."""

    def __init__(self) -> None:
        self.over = False
        self._waiting: set[asyncio.Future[None]] = set()

    def wake(self) -> None:
        """Let everybody who waits look again."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def wait(self) -> None:
        """Return when something was published or the life here ended."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)


class Channel(_Waited):
    """A run that is live in this process: its recent records, without gaps, and who waits for the next."""

    def __init__(self, ring: int):
        super().__init__()
        self.recent: deque[Record] = deque(maxlen=ring)
        self.last: int | None = None

    def publish(self, records: Sequence[Record]) -> None:
        """These records were committed."""
        fresh = [record for record in records if self.last is None or record.seq > self.last]
        if not fresh:
            return
        if self.last is not None and fresh[0].seq != self.last + 1:
            # What lies between is in the store; readers fetch it from there.
            self.recent.clear()
        self.recent.extend(fresh)
        self.last = fresh[-1].seq
        self.wake()

    def covers(self, after: int) -> bool:
        """Whether everything that was published behind `after` is in the ring."""
        if self.last is None:
            return False
        return after >= self.last or self.recent[0].seq <= after + 1

    def behind(self, after: int, limit: int) -> list[Record]:
        """What the ring has behind `after`, which it covers."""
        if self.last is None or after >= self.last:
            return []
        start = after + 1 - self.recent[0].seq
        return [self.recent[index] for index in range(start, min(start + limit, len(self.recent)))]


class TreeChannel(_Waited):
    """A tree that is live in this process, from `last` on, the `root_seq` before the first child's first.

    Runs are published as their own commits return, which may be in another order: what comes early waits for what was
    committed before it. If that does not come, it is in the store, and readers fetch it from there.
    """

    def __init__(self, ring: int, last: int, root_run_id: str):
        super().__init__()
        self.recent: deque[Record] = deque(maxlen=ring)
        self.last = last
        self.runs = [root_run_id]
        """All runs of the tree, in the order in which they began."""
        self._early: dict[int, Record] = {}

    def publish(self, records: Sequence[Record]) -> None:
        """These records, of one run of the tree, were committed."""
        for record in records:
            if record.root_seq > self.last:
                self._early[record.root_seq] = record
        before = self.last
        while (record := self._early.pop(self.last + 1, None)) is not None:
            self.recent.append(record)
            self.last += 1
        if len(self._early) > MOST_EARLY:
            self._leap()
        if self.last > before:
            self.wake()

    def end(self) -> None:
        """The tree's life here is over."""
        if self._early:
            self._leap()
        self.over = True
        self.wake()

    def _leap(self) -> None:
        self.recent.clear()
        self.last = max(self._early)
        self._early.clear()

    def covers(self, after: int) -> bool:
        """Whether everything that was published behind `after` is in the ring."""
        return after >= self.last or (bool(self.recent) and self.recent[0].root_seq <= after + 1)

    def behind(self, after: int, limit: int) -> list[Record]:
        """What the ring has behind `after`, which it covers."""
        if after >= self.last:
            return []
        start = after + 1 - self.recent[0].root_seq
        return [self.recent[index] for index in range(start, min(start + limit, len(self.recent)))]
