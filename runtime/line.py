"""The line: queued runs, and who starts the next one when a thread becomes free.

Whoever sees the thread free may do it: the process whose run has just ended does so at once, the others look when they
are woken and at each heartbeat. The store decides which of them it is. In a store of this process alone it is known
here on which threads anybody waits, and nothing is asked about the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from runtime import events as e
from runtime.beginning import starting_of
from runtime.errors import AguiBridgeError, AppendConflict, FenceLost, StoreError
from runtime.folds import Folds
from runtime.journal.store import Store
from runtime.journal.tail import Tail
from runtime.journal.wakes import Wake
from runtime.live_runs import LiveRuns, Performer
from runtime.request import RunRequest
from runtime.run import RunRecord
from runtime.stored_request import request_of
from runtime.system import Clock

log = logging.getLogger("agui_bridge.supervisor")

TRIES = 16
"""How often the start of a run is tried while its thread moves."""

AGENT_GONE = "agent_gone"
REQUEST_LOST = "request_lost"
"""Why a queued run ended as interrupted that nobody can perform."""


class Line:
    """The runs of one store that wait for their threads, as far as this process has to do with them."""

    def __init__(
        self,
        store: Store,
        live: LiveRuns,
        folds: Folds,
        tail: Tail,
        performers: Mapping[str, Performer],
        *,
        clock: Clock,
        instance_id: str,
        lease_s: float,
    ) -> None:
        self._store = store
        self._live = live
        self._folds = folds
        self._tail = tail
        self._performers = performers
        self._clock = clock
        self._instance_id = instance_id
        self._lease_s = lease_s
        self._known: set[str] = set()
        """The threads on which somebody is known to wait."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.closed = False
        """Whether nothing is started any more: the process is ending."""

    def begin_life(self) -> None:
        """A life of the process begins, maybe on another event loop: nothing is known yet of who waits."""
        self.closed = False
        self._known.clear()
        self._tasks.clear()

    def may_wait(self, thread_id: str) -> bool:
        """Whether anybody may wait for the thread: False is certain."""
        return not self._store.exclusive or thread_id in self._known

    def joined(self, run: RunRecord) -> None:
        """A run has begun to wait for its thread."""
        self._known.add(run.thread_id)
        self.look(run.thread_id)

    def look(self, thread_id: str) -> None:
        """The thread may have become free: start the next one on it, if there is one. Returns at once."""
        if self.may_wait(thread_id) and not self.closed and thread_id not in self._tasks:
            task = self._tasks[thread_id] = asyncio.create_task(self._look(thread_id), name=f"line of {thread_id}")
            task.add_done_callback(lambda _: self._tasks.pop(thread_id, None))

    async def look_around(self) -> None:
        """Start the next one on every free thread. Raises StoreError."""
        if self.closed:
            return
        if self._store.exclusive:
            self._known |= {run.thread_id for run in await self._store.active_runs()}
        for run in await self._store.next_queued():
            self.look(run.thread_id)

    async def close(self) -> None:
        """Start nothing more; others may."""
        self.closed = True
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def withdraw(self, run: RunRecord, terminal: e.Event) -> bool:
        """End a queued run; False if it is no longer queued. Raises StoreError."""
        try:
            await self._store.append(run.run_id, run.fence, 0, [terminal], self._clock.now())
        except (FenceLost, AppendConflict):
            return False
        await self.told(run.run_id, 1)
        return True

    async def told(self, run_id: str, last_seq: int) -> None:
        """A queued run has facts without ever having been at work: whoever waits is told. Raises StoreError."""
        self._tail.elsewhere.came(run_id)
        await self._store.wake(Wake("events", run_id, last_seq))

    async def _look(self, thread_id: str) -> None:
        try:
            for _ in range(TRIES):
                waiting = await self._store.next_queued(thread_id)
                if not waiting:
                    if not await self._store.queued_runs(thread_id):
                        self._known.discard(thread_id)
                    return
                if self.closed or not await self._start(waiting[0]):
                    return
        except AguiBridgeError as error:
            log.warning("the next run on thread %s could not be started: %s", thread_id, error.message)
        except Exception:
            log.exception("the next run on thread %s could not be started", thread_id)

    async def _start(self, run: RunRecord) -> bool:
        """Set a queued run to work; False if it is not for this process to look at the line again."""
        performer = self._performers.get(run.agent_id)
        if performer is None:  # another process may have it
            return self._store.exclusive and await self.withdraw(run, e.RunInterrupted(AGENT_GONE))
        try:
            request = await self.request_of(run)
        except StoreError:
            log.exception("the request of run %s is lost", run.run_id)
            return await self.withdraw(run, e.RunInterrupted(REQUEST_LOST))
        thread = await self._folds.thread(run.thread_id)
        starting = starting_of(
            run,
            request,
            thread,
            performer.agent.snapshot(performer.model),
            executor_instance_id=self._instance_id,
            now=self._clock.now(),
            lease_s=self._lease_s,
        )
        with self._live.beginning(run.run_id):
            begun = await self._store.start_queued(starting)
            if begun is None:
                return True
            live = self._live.launch(begun.run, begun.records, request, performer, thread, unasked=True)
        if live is None:
            await self.told(run.run_id, begun.run.last_seq)
        return live is None

    async def request_of(self, run: RunRecord) -> RunRequest:
        """What a run of the store was asked. Raises StoreError."""
        data = None if run.request_checksum is None else await self._store.content(run.request_checksum)
        if data is None:
            raise StoreError(f"The request of run {run.run_id} is not there.", code="store_corrupt")
        return request_of(run, data)
