"""The tail: live reading of the journal within one process.

The engine publishes what was committed; readers pull from behind a cursor of their own. Recent records of a live run
are kept in a ring; whatever fell out of it, and runs that are not live here, are read from the journal. A reader
costs a cursor and, while it waits, a future: there is no queue per reader, so a slow one holds no memory and slows
nobody. Nothing is skipped: a gap stops the reader.

The supervisor opens a run here *before* it begins in the store (nobody can then find it in the store and not here),
and closes it when its life in this process ends. A run that is at work in another process is read from the store, and
waited for as `elsewhere` says. Everything happens on one event loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from runtime.errors import EventsExpired, InvalidCursor, NotFound, ReaderDropped, StoreError
from runtime.events import TERMINAL, Record
from runtime.journal.channel import Channel, TreeChannel
from runtime.journal.compaction import Place
from runtime.journal.elsewhere import Elsewhere, Stay
from runtime.journal.store import Store
from runtime.run import QUEUED
from runtime.system import Clock, SystemClock

RING = 1024
"""How many recent records of a live run are kept."""

PAGE = 512
"""The most records that a reader gets at once."""

MARK_S = 3.0
"""How often the store is told that a run at work elsewhere is read here, unless the tail is told otherwise."""

_TERMINAL_TYPES = frozenset(cls.event_type for cls in TERMINAL)


class Tail:
    """All live runs of this process and their readers."""

    def __init__(
        self,
        store: Store,
        *,
        ring: int = RING,
        page: int = PAGE,
        clock: Clock | None = None,
        mark_s: float = MARK_S,
    ):
        self._store = store
        self.elsewhere = Elsewhere(store, clock or SystemClock(), mark_s=mark_s)
        """Runs that are followed here and at work in other processes; it is to be told of wakes, and closed."""
        self._ring = ring
        self._page = page
        self._channels: dict[str, Channel] = {}
        self._trees: dict[str, TreeChannel] = {}
        """The trees that are live in this process, by each run in them; a run without children is in none."""
        self._readers: dict[str, int] = {}
        self.dropping = False
        """Whether nobody is waited for any more that is at work elsewhere: the process is ending."""
        self.on_published: Callable[[str, int], None] | None = None
        """Called with a run's id and the seq up to which it was published."""
        self.on_readers_changed: Callable[[str, int], None] | None = None
        """Called with a run's id and the number of its open cursors whenever that number changes."""

    def opened(self, run_id: str, root_run_id: str | None = None) -> None:
        """The run is, or is about to be, at work in this process; a child below its root, which is."""
        self._channels.setdefault(run_id, Channel(self._ring))
        if root_run_id is not None and root_run_id != run_id:
            self._joined(run_id, root_run_id)
        self.elsewhere.came(run_id)

    def publish(self, run_id: str, records: Sequence[Record]) -> None:
        """These records of the run, in order, were committed. Repeated ones are ignored, as are runs not opened."""
        channel = self._channels.get(run_id)
        if channel is not None:
            channel.publish(records)
        tree = self._trees.get(run_id)
        if tree is not None:
            tree.publish(records)
        if records and self.on_published is not None:
            self.on_published(run_id, records[-1].seq)

    def _joined(self, run_id: str, root_run_id: str) -> None:
        """The run has joined the tree of this root: from here on its readers are told what the tree does."""
        root = self._channels.get(root_run_id)
        if root is None:
            return
        tree = self._trees.get(root_run_id)
        if tree is None:
            tree = self._trees[root_run_id] = TreeChannel(self._ring, root.last or 0, root_run_id)
            root.wake()
        self._trees[run_id] = tree
        tree.runs.append(run_id)

    def tree(self, root_run_id: str) -> TreeChannel | None:
        """What is live of the root's tree, if it has children."""
        return self._trees.get(root_run_id)

    def drop_readers(self) -> None:
        """Wait for nothing more that is not at work here: whoever reads it is sent away, and comes back elsewhere."""
        self.dropping = True
        self.elsewhere.heard(None)

    def closed(self, run_id: str) -> None:
        """The run's life in this process is over: readers get the rest and then the end, or learn that it goes on."""
        channel = self._channels.pop(run_id, None)
        tree = self._trees.pop(run_id, None)
        if tree is not None and tree.runs[0] == run_id:
            tree.end()
        if channel is not None:
            channel.over = True
            channel.wake()

    def follow(self, run_id: str, after: int) -> Cursor:
        """A reader of everything behind `after`; the caller closes it."""
        self._count(run_id, 1)
        return Cursor(self, run_id, after)

    def readers(self, run_id: str) -> int:
        """The number of the run's open cursors in this process."""
        return self._readers.get(run_id, 0)

    @property
    def read_runs(self) -> list[str]:
        """The runs that have open cursors in this process."""
        return list(self._readers)

    def _count(self, run_id: str, change: int) -> None:
        count = self.readers(run_id) + change
        if count:
            self._readers[run_id] = count
        else:
            self._readers.pop(run_id, None)
        if self.on_readers_changed is not None:
            self.on_readers_changed(run_id, count)

    async def _is_at_end(self, run_id: str, after: int) -> bool:
        """Whether a run that is not live here ends at `after`. Raises as `Cursor.next` does."""
        run = await self._store.find_run(run_id)
        if run is None:
            raise NotFound
        if not run.is_over and self._store.exclusive and run.status != QUEUED:
            raise StoreError(f"Run {run_id} is not at work in this process.", code="run_elsewhere")
        if after > run.last_seq:
            raise InvalidCursor
        if run.expired_at is not None and after < run.last_seq:
            raise EventsExpired
        return run.is_over and after == run.last_seq


class Cursor:
    """One reader's place in one run. `after` is the seq of the last record given."""

    def __init__(self, tail: Tail, run_id: str, after: int):
        self._tail = tail
        self._channel = tail._channels.get(run_id)
        self._stay: Stay | None = None
        self._at_end = False
        self._open = True
        self._place = Place()
        self.run_id = run_id
        self.after = after

    async def next(self) -> list[Record]:
        """All records that are ready, at least one, waiting for it if need be; [] when the run is over and all given.

        Raises StoreError `run_elsewhere` (the run is not over and not at work here, in a store that no other process
        has open), `journal_gap`, `cursor_closed`; ReaderDropped, NotFound, InvalidCursor, EventsExpired.
        """
        while not self._at_end:
            if not self._open:
                raise StoreError("The cursor was closed.", code="cursor_closed")
            # The ring of a run that has just ended is still good for what it holds.
            channel = self._tail._channels.get(self.run_id, self._channel)
            records = await (self._from_store() if channel is None else self._from_channel(channel))
            if records:
                return self._advance(records, is_live=channel is not None)
        return []

    def close(self) -> None:
        """Stop reading; harmless when done already."""
        if self._open:
            self._open = False
            if self._channel is not None:
                self._channel.wake()
            self._leave_elsewhere()
            self._tail._count(self.run_id, -1)

    async def _from_store(self) -> list[Record]:
        """What the store has; nothing at the end, or after waiting for a run that is at work elsewhere."""
        stay = self._stay
        news = 0 if stay is None else stay.news
        records = await self._page()
        if records:
            return records
        self._at_end = await self._tail._is_at_end(self.run_id, self.after)
        if self._at_end or not self._open:
            self._leave_elsewhere()
        elif self._tail.dropping:
            self._leave_elsewhere()
            raise ReaderDropped
        elif stay is None:
            # To be read once more: what is committed from here on brings a hint, what was before may not have.
            self._stay = self._tail.elsewhere.follow(self.run_id)
        else:
            await stay.wait(self.after, news)
        return []

    def _leave_elsewhere(self) -> None:
        stay, self._stay = self._stay, None
        if stay is not None:
            stay.leave()

    async def _from_channel(self, channel: Channel) -> list[Record]:
        """What is ready; nothing after waiting, or when only the store knows how it goes on."""
        self._leave_elsewhere()
        self._channel = channel
        published = channel.last
        if published is not None and self.after >= published:
            await self._wait(channel)
            return []
        if channel.covers(self.after):
            return channel.behind(self.after, self._tail._page)
        records = await self._page()
        if not records and published is not None:
            raise self._gap()
        if not records and channel.last is None:
            await self._wait(channel)
        return records

    async def _wait(self, channel: Channel) -> None:
        if channel.over:
            self._channel = None
        else:
            await channel.wait()

    async def _page(self) -> list[Record]:
        return await self._tail._store.read(self.run_id, self.after, self._tail._page)

    def _advance(self, records: list[Record], *, is_live: bool) -> list[Record]:
        if records[0].first_seq <= self.after:  # compacted since this reader came here
            records[0] = self._place.rest_of(records[0], self.after)
        first, last = records[0].first_seq, records[-1].seq
        if first != self.after + 1 or (last - first + 1 != len(records) and not _follow_each_other(records)):
            raise self._gap()
        self.after = last
        if is_live:
            self._place = Place()  # nobody compacts what is at work or is read here
        else:
            self._place.passed(records)
        # Nothing follows a terminal event: its reader need not ask again.
        self._at_end = records[-1].event_type in _TERMINAL_TYPES
        if self._at_end:
            self._leave_elsewhere()
        return records

    def _gap(self) -> StoreError:
        return StoreError(f"The journal of run {self.run_id} has a gap behind {self.after}.", code="journal_gap")


def _follow_each_other(records: Sequence[Record]) -> bool:
    return all(before.seq + 1 == record.first_seq for before, record in itertools.pairwise(records))
