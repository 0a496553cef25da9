"""The runs at work in this process: each an engine in a task of its own.

Here a run is set to work, performed, stopped, and taken off the list. What is at work is the process's own business:
who asked for it and what waits behind it is not known here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from runtime.agent import Agent
from runtime.artifacts import ArtifactShelf
from runtime.children import ROOT, Lineage, Nursery
from runtime.engine import Engine
from runtime.events import Event, Record
from runtime.folds import Folds, fold
from runtime.followed import Followed
from runtime.journal.leases import Lease
from runtime.journal.store import Store
from runtime.journal.tail import Tail
from runtime.journal.wakes import Wake
from runtime.limits import Limits
from runtime.media_shelf import MediaShelf
from runtime.models import Model
from runtime.progress import Progress
from runtime.reconciler import Reconciler
from runtime.request import RunRequest
from runtime.run import RunRecord
from runtime.run_log import RunLog
from runtime.steering import Steering
from runtime.system import Clock, Mint
from runtime.thread import Thread
from runtime.tools.execute import ThreadLimiter
from runtime.unread import UnreadWatch

log = logging.getLogger("agui_bridge.supervisor")

COMMIT_S = 1.0
"""How long, behind the grace for stopping, a terminal event may take to be committed at shutdown, in seconds."""

UNREAD = "client_disconnected"
"""Why a run was cancelled that nobody reads any more."""


@dataclass(frozen=True, slots=True)
class Performer:
    """An agent with the model that was resolved for it."""

    agent: Agent
    model: Model


@dataclass(slots=True)
class LiveRun:
    """A run at work in this process."""

    run: RunRecord
    engine: Engine
    task: asyncio.Task[None] | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def terminal(self) -> Event | None:
        """Its terminal event, if its engine could commit one."""
        return self.engine.terminal

    def cancel(self, reason: str) -> None:
        """Stop it on purpose."""
        self.engine.cancel(reason)

    def interrupt(self, reason: str) -> None:
        """Give up its executor."""
        self.engine.interrupt(reason)


class LiveRuns:
    """What is at work here, between `begin_life` and `stop`. `runs` are those at work by id."""

    def __init__(
        self,
        store: Store,
        tail: Tail,
        folds: Folds,
        reconciler: Reconciler,
        shelf: ArtifactShelf,
        media: MediaShelf,
        *,
        clock: Clock,
        mint: Mint,
        limits: Limits,
        grace_s: float,
        lease_s: float,
    ) -> None:
        self._store = store
        self._tail = tail
        self._folds = folds
        self._reconciler = reconciler
        self._shelf = shelf
        self._media = media
        self._clock = clock
        self._mint = mint
        self._limits = limits
        self.runs: dict[str, LiveRun] = {}
        self.unread = UnreadWatch(tail, clock, grace_s=grace_s, stop=self._stop_unread)
        tail.on_readers_changed = self.unread.readers_changed
        self.tool_threads = ThreadLimiter()
        self.giving_up = False
        self.leaving = False
        """Whether runs are handed over: the process is ending, and others may go on with them."""
        self.steering = Steering(store, clock)
        self.followed = Followed(store)
        tail.on_published = self.followed.published
        self.unread.on_change = self.followed.unread_changed
        self._lease_s = lease_s
        self.before_giving_up: Callable[[RunRecord], Awaitable[None]] | None = None
        """Waited for before a run is given up at the end of the process."""
        self.nursery: Nursery
        """Begins children; it is to be set before anything is launched."""
        self._beginning: dict[str, asyncio.Event] = {}
        self._idle = asyncio.Event()
        self.on_free: Callable[[str], None] | None = None
        """Called with a thread's id when a run on it is no longer at work here."""
        self.on_over: Callable[[str, str], None] | None = None
        """Called with the ids of a run and its agent when it has ended here."""

    def begin_life(self) -> None:
        """A life of the process begins, on the running event loop: a host may start its bridge again in another."""
        self.giving_up = self.leaving = False
        self._idle = asyncio.Event()
        self.tool_threads = ThreadLimiter()

    # --- at work --------------------------------------------------------------------------------------------------

    def is_here(self, run_id: str) -> bool:
        """Whether the run is at work or about to begin in this process."""
        return run_id in self.runs or run_id in self._beginning

    @contextmanager
    def beginning(self, run_id: str, root_run_id: str | None = None) -> Generator[None, None, None]:
        """While it lasts the run is being begun: nobody may find it in the store and not here. A child has a root."""
        self._tail.opened(run_id, root_run_id)
        self._beginning[run_id] = asyncio.Event()
        try:
            yield
        finally:
            self._beginning.pop(run_id).set()
            self._look_idle()
            if run_id not in self.runs:
                self._tail.closed(run_id)

    def launch(
        self,
        run: RunRecord,
        records: Sequence[Record],
        request: RunRequest,
        performer: Performer,
        thread: Thread,
        *,
        unasked: bool = False,
        lineage: Lineage = ROOT,
        progress: Progress | None = None,
    ) -> LiveRun | None:
        """Take the run's new facts in and set it to work, unless they were all of it.

        Returns the run at work. `unasked` if nobody is just about to read it: then it counts as unread from now on.
        With `progress` it goes on from there.
        """
        fold(thread, run, records)
        self._folds.keep(thread)
        if run.is_over:
            self._tell_over(run)
            return None
        run_log = RunLog(run, thread, self._store, self._tail, self._clock, self._limits.max_uncommitted)
        engine = Engine(
            run=run,
            request=request,
            agent=performer.agent,
            model=performer.model,
            thread=thread,
            run_log=run_log,
            clock=self._clock,
            mint=self._mint,
            threads=self.tool_threads,
            limits=self._limits,
            shelf=self._shelf,
            media=self._media,
            nursery=self.nursery,
            steering=self.steering,
            lineage=lineage,
            progress=progress,
        )
        live = self.runs[run.run_id] = LiveRun(run, engine)
        self._folds.at_work(thread)
        if unasked:
            self.followed.begins(run.run_id)
        self._tail.publish(run.run_id, records)
        if request.cancel_when_unread:
            self.unread.watch(run.run_id, now=unasked)
        if self.giving_up:
            engine.interrupt("shutdown")
        elif self.leaving:
            self._leave(live)
        live.task = asyncio.create_task(self._perform(live, thread), name=f"perform {run.run_id}")
        return live

    async def _perform(self, live: LiveRun, thread: Thread) -> None:
        run_id = live.run.run_id
        try:
            await live.engine.drive()
            if live.engine.left:
                await self._let_go(live.run)
        except Exception as error:
            log.exception("run %s could not be written", run_id)
            self._folds.forget(thread)
            await self._reconciler.close_failed(live.run, error)
        finally:
            self.unread.forget(run_id)
            self.followed.forget(run_id)
            del self.runs[run_id]
            if all(other.run.thread_id != thread.thread_id for other in self.runs.values()):
                self._folds.released(thread)  # the thread's next run may have begun already
            self._tail.closed(run_id)
            self._look_idle()
            live.over.set()
            if live.terminal is not None:
                self._tell_over(live.run)
            if self.on_free is not None:
                self.on_free(live.run.thread_id)

    def _tell_over(self, run: RunRecord) -> None:
        if self.on_over is not None:
            self.on_over(run.run_id, run.agent_id)

    async def _let_go(self, run: RunRecord) -> None:
        if await self._store.hand_over(run.run_id, run.fence, self._lease_s):
            await self._store.wake(Wake("inbox", run.run_id))

    def _leave(self, live: LiveRun) -> None:
        if live.run.root_run_id == live.run.run_id:  # a child goes with its parent, which waits for it in a tool
            live.engine.leave()

    # --- stopping -------------------------------------------------------------------------------------------------

    async def cancel(self, run_id: str, reason: str, wait_s: float | None = None) -> bool:
        """Ask a run to stop, and wait for its end if asked to; False if it is not at work here."""
        if (beginning := self._beginning.get(run_id)) is not None:
            await beginning.wait()
        live = self.runs.get(run_id)
        if live is None:
            return False
        live.engine.cancel(reason)
        if wait_s is not None:
            try:
                async with asyncio.timeout(wait_s):
                    await live.over.wait()
            except TimeoutError:
                log.warning("run %s did not stop within %s s", run_id, wait_s)
        return not live.engine.left

    def _stop_unread(self, run_id: str) -> None:
        if (live := self.runs.get(run_id)) is not None:
            live.engine.cancel(UNREAD)

    async def drain(self, patience_s: float) -> None:
        """Let what is at work finish for so long, or be handed over, then give it up as interrupted."""
        if not self._store.exclusive:
            self.leaving = True
            for live in list(self.runs.values()):
                self._leave(live)
        await self._until_idle(patience_s)
        self.giving_up = True
        for live in list(self.runs.values()):
            if self.before_giving_up is not None:
                await self.before_giving_up(live.run)
            live.engine.interrupt("shutdown")
        await self._until_idle(self._limits.stop_grace_s + COMMIT_S)

    async def stop(self) -> None:
        """Let go of what is still at work: the next start closes it."""
        tasks = [live.task for live in self.runs.values() if live.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _until_idle(self, patience_s: float) -> None:
        """Return when no run is at work or about to begin, or after so many seconds."""
        self._look_idle()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._idle.wait()

    def _look_idle(self) -> None:
        if self.runs or self._beginning:
            self._idle.clear()
        else:
            self._idle.set()

    # --- leases ---------------------------------------------------------------------------------------------------

    def heard(self, held: Set[str], leases: list[Lease]) -> None:
        """What a heartbeat brought: a run that is missing is another's now, or over."""
        by_run = {lease.run_id: lease for lease in leases}
        for run_id in held:
            live, lease = self.runs.get(run_id), by_run.get(run_id)
            if live is None:
                continue
            if lease is None or lease.fence != live.run.fence:
                live.engine.interrupt("lease_lost")
            elif lease.cancel_reason is not None:
                live.engine.cancel(lease.cancel_reason)
        self.unread.heard(leases)
        self.followed.heard(leases)

    def expired(self) -> None:
        """The store cannot be asked for so long that others may take the runs of this process: its work stops."""
        for live in list(self.runs.values()):
            live.engine.interrupt("lease_lost")
