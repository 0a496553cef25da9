"""The folds of threads that are kept in memory: those at work here, and the most recently used idle ones.

A thread at work has one fold, which its engine drives ahead of the journal; everybody else's is read up to the last
committed fact. The store stays the authority: a fold that is not kept is read anew.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence

from runtime import events as e
from runtime.journal import Journal
from runtime.run import RunRecord
from runtime.thread import Thread

THREADS_KEPT = 256
"""How many folds stay in memory."""

PAGE = 64
"""How many facts of a run are read at once: mostly all that came with its request."""


class Folds:
    """Threads as they stand. `at_work` marks one as driven here until `released`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._at_work: dict[str, Thread] = {}
        self._kept: OrderedDict[str, Thread] = OrderedDict()

    def clear(self) -> None:
        """Forget all idle folds: another life of the process begins."""
        self._kept.clear()

    async def thread(self, thread_id: str) -> Thread:
        """The fold of a thread, up to its last committed fact (or, while it runs here, its last fact)."""
        thread = self._at_work.get(thread_id)
        if thread is None:
            thread = self._kept.get(thread_id) or Thread(thread_id)
            await self._read_up(thread)
            thread = self._at_work.get(thread_id, thread)  # a run may have begun meanwhile, on another fold
        self.keep(thread)
        return thread

    async def committed(self, thread_id: str) -> Thread:
        """A fold of its own of all that is in the store."""
        thread = Thread(thread_id)
        await self._read_up(thread)
        return thread

    async def as_of(self, run: RunRecord) -> Thread:
        """A fold of its own of the thread as it was when `run` had taken its request in."""
        thread = await self.before(run)
        taken_in, end = 0, False
        while not end:
            page = await self._journal.read(run.run_id, taken_in, PAGE)
            records = list(itertools.takewhile(_is_intake, page))
            fold(thread, run, records)
            taken_in += len(records)
            end = len(records) < PAGE
        return thread

    async def before(self, run: RunRecord) -> Thread:
        """A fold of its own of the thread as it was before `run` began."""
        thread = Thread(run.thread_id)
        if run.base:
            for each, records in await self._journal.read_thread(run.thread_id, 0, run.base):
                fold(thread, each, records)
            await self._read_below(thread)
        return thread

    def keep(self, thread: Thread) -> None:
        """The fold was used: it stays, and the oldest idle one goes if there are too many."""
        self._kept[thread.thread_id] = thread
        self._kept.move_to_end(thread.thread_id)
        while len(self._kept) > THREADS_KEPT:
            oldest = next(iter(self._kept))
            if oldest in self._at_work:
                self._kept.move_to_end(oldest)
                break
            del self._kept[oldest]

    def at_work(self, thread: Thread) -> None:
        """A run drives this fold from now on."""
        self._at_work[thread.thread_id] = thread

    def released(self, thread: Thread) -> None:
        """No run drives this fold any more."""
        if self._at_work.get(thread.thread_id) is thread:
            del self._at_work[thread.thread_id]

    def forget(self, thread: Thread) -> None:
        """The fold holds what was never committed: nobody may be given it."""
        self._kept.pop(thread.thread_id, None)
        self._at_work.pop(thread.thread_id, None)

    def forget_all(self, thread_ids: Iterable[str]) -> None:
        """These threads are gone."""
        for thread_id in thread_ids:
            self._kept.pop(thread_id, None)

    async def _read_up(self, thread: Thread, known: Collection[str] | None = None) -> None:
        for run, records in await self._journal.read_thread(thread.thread_id, thread.position):
            if known is None or run.run_id in known:
                fold(thread, run, records)
        await self._read_below(thread)

    async def _read_below(self, thread: Thread) -> None:
        """Read on in the threads of the children; one that is over, or a fold that is driven here, has nothing more to
        say. A run of which the parent does not know yet goes on with a child later than this fold stands."""
        for below in thread.below.values():
            status = "running" if below.last_run is None else below.last_run.status
            if below is not self._at_work.get(below.thread_id) and status in ("running", "suspended"):
                await self._read_up(below, thread.below)


def fold(thread: Thread, run: RunRecord, records: Sequence[e.Record]) -> None:
    """Take records of a run into the thread; those it has already change nothing."""
    for record in records:
        if run.base + record.seq > thread.position:
            thread.apply(run.run_id, run.base, record.seq, record.event)


def _is_intake(record: e.Record) -> bool:
    """Whether a fact came with the request, before the run said or did anything."""
    return type(record.event) not in e.ENDS_INTAKE
