"""The supervisor: begins runs, stops them, follows them, and closes what a crash left behind.

One per process, over one journal. It knows which runs are at work here (each an engine in a task of its own), keeps
the folds of recent threads, and watches whether anybody still reads. It knows nothing of AG-UI or HTTP: a front
reconciles histories and hands over a `RunRequest`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from runtime import events as e
from runtime.agent import Agent
from runtime.authority import Principal, authorize
from runtime.beginning import opening_of
from runtime.ending import ending
from runtime.engine import Engine, Limits
from runtime.errors import AguiBridgeError, FenceLost, NotFound, ShuttingDown
from runtime.journal import Begun, Journal, Session, Started
from runtime.journal.tail import Cursor, Tail
from runtime.models import Model
from runtime.request import RunRequest
from runtime.run import CANCELLING, RunRecord
from runtime.run_log import RunLog
from runtime.system import Clock, Mint, SystemClock, mint_uuid7
from runtime.thread import Thread
from runtime.tools.execute import ThreadLimiter

log = logging.getLogger("agui_bridge.supervisor")

COMMIT_S = 1.0
"""How long, behind the grace for stopping, a terminal event may take to be committed at shutdown, in seconds."""

THREADS_KEPT = 256
"""How many folds of idle threads stay in memory."""


@dataclass(frozen=True, slots=True)
class Performer:
    """An agent with the model that was resolved for it."""

    agent: Agent
    model: Model


@dataclass(slots=True)
class _Live:
    """A run at work in this process."""

    run: RunRecord
    engine: Engine
    cancel_when_unread: bool
    task: asyncio.Task[None] | None = None
    grace: asyncio.Task[None] | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Supervisor:
    """Begins, follows, stops and closes runs. `start` before, `drain` and `stop` after everything else."""

    def __init__(
        self,
        journal: Journal,
        performers: Mapping[str, Performer],
        *,
        clock: Clock | None = None,
        mint: Mint = mint_uuid7,
        limits: Limits | None = None,
        disconnect_grace_s: float = 10.0,
    ) -> None:
        self.journal = journal
        self.performers = performers
        self.tail = Tail(journal)
        self.tail.on_readers_changed = self._readers_changed
        self.instance_id = mint("exec")
        self._clock = clock or SystemClock()
        self._mint = mint
        self._limits = limits or Limits()
        self._grace_s = disconnect_grace_s
        self._tool_threads = ThreadLimiter()
        self._live: dict[str, _Live] = {}
        self._live_threads: dict[str, Thread] = {}
        self._threads: OrderedDict[str, Thread] = OrderedDict()
        self._beginning = 0
        self._idle = asyncio.Event()
        self._draining = False
        self._giving_up = False

    # --- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the journal and close the runs that a crash left behind. Raises what the journal raises."""
        self._draining = self._giving_up = False
        self._idle = asyncio.Event()  # of this event loop: a host may start its bridge again in another
        self._tool_threads = ThreadLimiter()
        self._threads.clear()
        await self.journal.open()
        for run in await self.journal.active_runs():
            await self.close_lost(run)

    async def drain(self, patience_s: float) -> None:
        """Begin no new runs; let those at work finish for so long, then give them up as interrupted."""
        self._draining = True
        await self._until_idle(patience_s)
        self._giving_up = True
        for live in list(self._live.values()):
            live.engine.interrupt("shutdown")
        await self._until_idle(self._limits.stop_grace_s + COMMIT_S)

    async def stop(self) -> None:
        """Let go of the journal. What is still at work now is closed by the next start."""
        tasks = [live.task for live in self._live.values() if live.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.journal.close()

    @property
    def draining(self) -> bool:
        """Whether new runs are refused because the server is shutting down."""
        return self._draining

    async def _until_idle(self, patience_s: float) -> None:
        """Return when no run is at work or about to begin, or after so many seconds."""
        self._look_idle()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._idle.wait()

    def _look_idle(self) -> None:
        if self._live or self._beginning:
            self._idle.clear()
        else:
            self._idle.set()

    # --- reading --------------------------------------------------------------------------------------------------

    async def session(self, principal: Principal, session_id: str) -> Session | None:
        """The principal's session with this id, if there is one."""
        session = await self.journal.find_session(principal.tenant_id, principal.id, session_id)
        if session is not None:
            authorize(principal, "run", session)
        return session

    async def run(self, principal: Principal, run_id: str) -> RunRecord:
        """The run with this id. Raises NotFound if it is not the principal's, or is not there."""
        run = await self.journal.find_run(run_id)
        authorize(principal, "read", run)
        if run is None:
            raise NotFound
        return run

    def follow(self, run_id: str, after: int = 0) -> Cursor:
        """A reader of the run's facts behind `after`; it is to be closed."""
        return self.tail.follow(run_id, after)

    def readers(self, run_id: str) -> int:
        """How many readers the run has in this process."""
        return self.tail.readers(run_id)

    async def open(self, principal: Principal, session_id: str) -> tuple[Session | None, Thread]:
        """The principal's session and its thread; for a session that is not there yet None and a new thread."""
        session = await self.session(principal, session_id)
        return session, (await self.thread(session.thread_id) if session else Thread(self._mint("thr")))

    async def thread(self, thread_id: str) -> Thread:
        """The fold of a thread, up to its last committed fact (or, while it runs here, its last fact)."""
        thread = self._live_threads.get(thread_id)
        if thread is None:
            thread = self._threads.get(thread_id) or Thread(thread_id)
            await self._read_up(thread)
            thread = self._live_threads.get(thread_id, thread)  # a run may have begun meanwhile, on another fold
        self._keep(thread)
        return thread

    async def thread_as_of(self, run: RunRecord) -> Thread:
        """A fold of its own of the thread as it was when `run` had taken its request in."""
        thread = Thread(run.thread_id)
        for each, records in await self.journal.read_thread(run.thread_id, 0):
            if each.run_id == run.run_id:
                _fold(thread, each, list(itertools.takewhile(_is_intake, records)))
                break
            _fold(thread, each, records)
        return thread

    async def _read_up(self, thread: Thread) -> None:
        for run, records in await self.journal.read_thread(thread.thread_id, thread.position):
            _fold(thread, run, records)

    def _keep(self, thread: Thread) -> None:
        self._threads[thread.thread_id] = thread
        self._threads.move_to_end(thread.thread_id)
        while len(self._threads) > THREADS_KEPT:
            oldest = next(iter(self._threads))
            if oldest in self._live_threads:
                self._threads.move_to_end(oldest)
                break
            del self._threads[oldest]

    # --- beginning ------------------------------------------------------------------------------------------------

    async def begin(self, request: RunRequest, session: Session | None, thread: Thread) -> Begun:
        """Begin a run on `thread`, as it was read; without a session one is made. See `Journal.begin_run`.

        Raises ShuttingDown, NotFound for an agent that is not there, StoreError.
        """
        if self._draining:
            raise ShuttingDown
        performer = self.performers.get(request.agent_id)
        if performer is None:
            raise NotFound(f"There is no agent {request.agent_id!r}.")
        opening = opening_of(
            request,
            session,
            thread,
            performer.agent.snapshot(performer.model),
            run_id=self._mint("run"),
            executor_instance_id=self.instance_id,
            now=self._clock.now(),
        )
        run_id = opening.run.run_id
        self.tail.opened(run_id)  # before it is in the store: nobody may find it there and not here
        self._beginning += 1
        at_work = False
        try:
            begun = await self.journal.begin_run(opening)
            if isinstance(begun, Started):
                at_work = self._launch(begun, request, performer, thread)
            return begun
        finally:
            self._beginning -= 1
            self._look_idle()
            if not at_work:
                self.tail.closed(run_id)

    def _launch(self, started: Started, request: RunRequest, performer: Performer, thread: Thread) -> bool:
        """Take the run's first facts in and set it to work; False if they were all of it."""
        run = started.run
        _fold(thread, run, started.records)
        self._keep(thread)
        if run.is_over:
            return False
        run_log = RunLog(run, thread, self.journal, self.tail, self._clock, self._limits.max_uncommitted)
        engine = Engine(
            run=run,
            request=request,
            agent=performer.agent,
            model=performer.model,
            thread=thread,
            run_log=run_log,
            clock=self._clock,
            mint=self._mint,
            threads=self._tool_threads,
            limits=self._limits,
        )
        live = self._live[run.run_id] = _Live(run, engine, request.cancel_when_unread)
        self._live_threads[run.thread_id] = thread
        self.tail.publish(run.run_id, started.records)
        if self._giving_up:
            engine.interrupt("shutdown")
        live.task = asyncio.create_task(self._perform(live, thread), name=f"perform {run.run_id}")
        return True

    async def _perform(self, live: _Live, thread: Thread) -> None:
        run_id = live.run.run_id
        try:
            await live.engine.drive()
        except Exception as error:
            log.exception("run %s could not be written", run_id)
            self._forget(thread)
            await self._close_failed(live.run, error)
        finally:
            if live.grace is not None:
                live.grace.cancel()
            del self._live[run_id]
            if all(other.run.thread_id != thread.thread_id for other in self._live.values()):
                self._live_threads.pop(thread.thread_id, None)  # the thread's next run may have begun already
            self.tail.closed(run_id)
            self._look_idle()
            live.over.set()

    def _forget(self, thread: Thread) -> None:
        """The fold holds what was never committed: nobody may be given it."""
        self._threads.pop(thread.thread_id, None)
        self._live_threads.pop(thread.thread_id, None)

    # --- stopping -------------------------------------------------------------------------------------------------

    async def cancel(self, run_id: str, reason: str, wait_s: float | None = None) -> None:
        """Ask a run of this process to stop, and wait for its end if asked to. A run that is over stays as it is."""
        live = self._live.get(run_id)
        if live is None:
            return
        live.engine.cancel(reason)
        if wait_s is not None:
            try:
                async with asyncio.timeout(wait_s):
                    await live.over.wait()
            except TimeoutError:
                log.warning("run %s did not stop within %s s", run_id, wait_s)

    def is_at_work(self, run_id: str) -> bool:
        """Whether the run is performed by this process."""
        return run_id in self._live

    def is_unread(self, run_id: str) -> bool:
        """Whether the run is at work here and nobody reads it: it may be superseded."""
        live = self._live.get(run_id)
        return live is not None and live.cancel_when_unread and self.tail.readers(run_id) == 0

    def _readers_changed(self, run_id: str, count: int) -> None:
        live = self._live.get(run_id)
        if live is None or not live.cancel_when_unread:
            return
        if live.grace is not None:
            live.grace.cancel()
            live.grace = None
        if count == 0:
            live.grace = asyncio.create_task(self._cancel_unread(live))

    async def _cancel_unread(self, live: _Live) -> None:
        await self._clock.sleep(self._grace_s)
        live.engine.cancel("client_disconnected")

    # --- closing what was lost ------------------------------------------------------------------------------------

    async def close_lost(self, run: RunRecord) -> bool:
        """Reconciliation: the run's executor is gone; say so, and what became of the calls it had begun.

        Comes to nothing (False) for a run that is at work or beginning here. A thread that cannot be read any more
        ends bare: one that is damaged must not keep the others from being served.
        """
        if run.run_id in self._live or self._beginning:
            return False
        lost = e.RunInterrupted("executor_lost")
        try:
            await self._close(run, lost)
        except AguiBridgeError:
            log.exception("run %s cannot be read; it ends without its message", run.run_id)
            taken = await self.journal.take_over(run.run_id, self.instance_id)
            if taken is not None:
                await self.journal.append(run.run_id, taken.fence, taken.last_seq, [lost], self._clock.now())
        return True

    async def _close_failed(self, run: RunRecord, error: Exception) -> None:
        """The run's facts could not be written: end it with what the journal holds, if that takes it.

        A run whose fence was lost has another owner, or is over.
        """
        if isinstance(error, FenceLost):
            return
        known = error if isinstance(error, AguiBridgeError) else AguiBridgeError("The server failed; its log says why.")
        try:
            await self._close(run, e.RunFailed(known.as_payload()))
        except Exception:
            log.exception("run %s stays open until the next start", run.run_id)

    async def _close(self, run: RunRecord, terminal: e.Event) -> None:
        taken = await self.journal.take_over(run.run_id, self.instance_id)
        if taken is None:
            return
        thread = Thread(run.thread_id)
        await self._read_up(thread)
        if taken.status == CANCELLING:
            terminal = e.RunInterrupted("executor_lost")
        facts = ending(thread.turn, terminal)
        records = await self.journal.append(run.run_id, taken.fence, taken.last_seq, facts, self._clock.now())
        self.tail.publish(run.run_id, records)


def _fold(thread: Thread, run: RunRecord, records: list[e.Record]) -> None:
    for record in records:
        if run.base + record.seq > thread.position:
            thread.apply(run.run_id, run.base, record.seq, record.event)


def _is_intake(record: e.Record) -> bool:
    """Whether a fact came with the request, before the run said or did anything."""
    return not isinstance(record.event, e.MessageStarted) and type(record.event) not in e.TERMINAL
