"""The writing end of one run: gives its events to the journal in order, a batch at a time, and lets readers see what
was committed, never anything else.

It waits for the journal, knows nothing of models or tools. What is ready while a batch is being committed goes into
the next one; at most `max_uncommitted` events are on their way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from runtime.errors import AguiBridgeError, StoreError
from runtime.events import Event
from runtime.journal.inbox import Part
from runtime.journal.store import Store
from runtime.journal.tail import Tail
from runtime.run import RunRecord
from runtime.system import Clock
from runtime.thread import Thread

log = logging.getLogger("agui_bridge.journal")


class RunLog:
    """Appends for one run under one fence, behind what the run has already."""

    def __init__(
        self, run: RunRecord, thread: Thread, journal: Store, tail: Tail, clock: Clock, max_uncommitted: int
    ) -> None:
        self._run = run
        self._thread = thread
        self._journal = journal
        self._tail = tail
        self._clock = clock
        self._max_uncommitted = max_uncommitted
        self._seq = run.last_seq
        self._committed = run.last_seq
        self._ready: list[Event] = []
        self._pump: asyncio.Task[None] | None = None
        self._progress: asyncio.Future[None] | None = None
        self._failure: AguiBridgeError | None = None
        self._ended = False
        self._together: asyncio.Task[bool] | None = None
        self._deferred: list[Event] = []
        self.on_failure: Callable[[], None] | None = None
        """Called once when the journal refuses this run's facts: there is no use in going on."""

    @property
    def crowded(self) -> bool:
        """Whether the writer must wait for room before it makes more events (or learn that there will be none)."""
        return self._failure is not None or self._seq - self._committed >= self._max_uncommitted

    def emit(self, events: Sequence[Event]) -> None:
        """Hand over the next events. They are folded into the thread now, and seen by readers once committed.

        After the end nothing is taken: work that ignored its cancellation speaks to nobody. Nor is it after a failure.
        """
        if self._ended or self._failure is not None:
            return
        if self._together is not None:
            self._deferred += events
            return
        try:
            for event in events:
                self._thread.apply(self._run.run_id, self._run.base, self._seq + 1, event)
                self._seq += 1
                self._ready.append(event)
        finally:
            if self._pump is None and self._ready:
                self._pump = asyncio.create_task(self._write())

    def end(self, events: Sequence[Event]) -> None:
        """Hand over the last events."""
        self.emit(events)
        self._ended = True

    async def append_with(self, events: Sequence[Event], others: Sequence[Part]) -> bool:
        """Commit these events and those of other runs, all of them or none; False if none.

        What is handed over meanwhile comes behind them. Raises what the journal raised.
        """
        await self.flush()
        self._together = asyncio.create_task(self._append_with(list(events), others))
        return await asyncio.shield(self._together)

    async def settled(self) -> None:
        """Return when no commit with other runs is under way, however it ends."""
        if self._together is not None:
            await asyncio.gather(self._together, return_exceptions=True)

    async def _append_with(self, events: list[Event], others: Sequence[Part]) -> bool:
        try:
            mine = [Part(self._run.run_id, self._run.fence, self._committed, events)] if events else []
            records = await self._journal.append_all([*mine, *others], self._clock.now())
            if records is None:
                return False
            for record in records[0] if mine else []:
                self._thread.apply(self._run.run_id, self._run.base, record.seq, record.event)
                self._seq = self._committed = record.seq
            if mine:
                self._tail.publish(self._run.run_id, records[0])
            return True
        except AguiBridgeError as failure:
            self._fail(failure)
            raise
        finally:
            self._together = None
            deferred, self._deferred = self._deferred, []
            self.emit(deferred)

    async def room(self) -> None:
        """Return when there is room for more. Raises what the journal raised."""
        while self.crowded and self._failure is None:
            await self._next_commit()
        self.check()

    async def flush(self) -> None:
        """Return when everything handed over is committed. Raises what the journal raised."""
        while self._committed < self._seq and self._failure is None:
            await self._next_commit()
        self.check()

    async def _next_commit(self) -> None:
        if self._progress is None:
            self._progress = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._progress)

    async def _write(self) -> None:
        try:
            while self._ready and self._failure is None:
                batch, self._ready = self._ready, []
                records = await self._journal.append(
                    self._run.run_id, self._run.fence, self._committed, batch, self._clock.now()
                )
                self._committed += len(records)
                self._tail.publish(self._run.run_id, records)
                self._wake()
        except AguiBridgeError as failure:
            self._fail(failure)
        except Exception as bug:
            log.exception("appending to run %s failed", self._run.run_id)
            self._fail(StoreError(f"The journal failed unexpectedly: {type(bug).__name__}."))
        finally:
            self._pump = None
            self._wake()

    def _fail(self, failure: AguiBridgeError) -> None:
        self._failure = failure
        if self.on_failure is not None:
            self.on_failure()

    def _wake(self) -> None:
        progress, self._progress = self._progress, None
        if progress is not None and not progress.done():
            progress.set_result(None)

    def check(self) -> None:
        """Raise what the journal raised, if it did."""
        if self._failure is not None:
            raise self._failure
