"""The supervisor: begins runs, stops them, follows them, and has closed what a crash left behind.

One per process, over one store. It knows which runs are at work here (each an engine in a task of its own), holds
their leases, and watches whether anybody still reads. It knows nothing of AG-UI or HTTP: a front reconciles histories
and hands over a `RunRequest`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from runtime.artifacts import ArtifactShelf
from runtime.authority import Principal, authorize
from runtime.beginning import opening_of
from runtime.blobs import Blobs
from runtime.blobs.contents import ContentBlobs
from runtime.deliveries import Deliverer
from runtime.erasure import Erasure, Receipt
from runtime.errors import NotFound, ShuttingDown
from runtime.events import RunCancelled
from runtime.folds import Folds
from runtime.hand_over import HandOver
from runtime.heartbeat import Heartbeat
from runtime.journal import Begun, Queued, Session, Started
from runtime.journal.aliases import NO_REQUEST, Alias
from runtime.journal.catalogue import Place, RunFilter
from runtime.journal.inbox import INTERRUPT
from runtime.journal.store import Store
from runtime.journal.tail import MARK_S, Cursor, Tail
from runtime.journal.tree_tail import TreeCursor
from runtime.journal.wakes import Wake
from runtime.limits import Limits
from runtime.line import Line
from runtime.live_runs import LiveRuns, Performer
from runtime.media import INLINE_BYTES
from runtime.media_shelf import MediaShelf
from runtime.nursery import PerformWith, ProcessNursery
from runtime.reconciler import Reconciler
from runtime.recovery import Recovery
from runtime.request import RunRequest
from runtime.run import QUEUED, RunRecord
from runtime.sessions import Sessions, owner_of
from runtime.system import Clock, Mint, SystemClock, mint_uuid7
from runtime.thread import Thread
from runtime.tools.toolbox import ApproverPolicy

log = logging.getLogger("agui_bridge.supervisor")

DELIVERY_S = 1.0
"""How long the process waits at its end for hooks that are being told of runs, in seconds; the rest is told later."""

SUPERSEDED = "superseded"
"""Why a run was cancelled for whose thread another one wanted."""


@dataclass(frozen=True, slots=True)
class Leasing:
    """How long a run is held by its executor without a sign of life, and how often it gives one. In seconds."""

    lease_s: float = 15.0
    heartbeat_s: float = 5.0


class Supervisor:
    """Begins, follows, stops and closes runs. `start` before, `drain` and `stop` after everything else."""

    def __init__(
        self,
        store: Store,
        performers: Mapping[str, Performer],
        *,
        clock: Clock | None = None,
        mint: Mint = mint_uuid7,
        limits: Limits | None = None,
        leasing: Leasing | None = None,
        disconnect_grace_s: float = 10.0,
        blobs: Blobs | None = None,
        perform_with: PerformWith | None = None,
        recovers: bool = False,
        inline_media_bytes: int = INLINE_BYTES,
    ) -> None:
        self.journal = store
        self.performers = performers
        self.tail = Tail(store, mark_s=min(disconnect_grace_s / 3 or MARK_S, MARK_S))
        self.instance_id = mint("exec")
        self._clock = clock or SystemClock()
        self._mint = mint
        self._leasing = leasing or Leasing()
        self._folds = Folds(store)
        self.sessions = Sessions(store, self._clock, mint)
        blobs = blobs or ContentBlobs(store)
        self.artifacts = ArtifactShelf(store, blobs, self._clock, mint)
        self.media = MediaShelf(store, blobs, self._clock, mint, inline_media_bytes)
        self.erasure = Erasure(store, self.artifacts, self.cancel, self._folds.forget_all)
        self._reconciler = Reconciler(
            store,
            self._folds,
            self.tail,
            self._clock,
            instance_id=self.instance_id,
            lease_s=self._leasing.lease_s,
        )
        self.live = LiveRuns(
            store,
            self.tail,
            self._folds,
            self._reconciler,
            self.artifacts,
            self.media,
            clock=self._clock,
            mint=mint,
            limits=limits or Limits(),
            grace_s=disconnect_grace_s,
            lease_s=self._leasing.lease_s,
        )
        self.line = Line(
            store,
            self.live,
            self._folds,
            self.tail,
            performers,
            clock=self._clock,
            instance_id=self.instance_id,
            lease_s=self._leasing.lease_s,
        )
        self.live.steering.line = self.line
        self.live.on_free = self._reconciler.on_closed = self.line.look
        self._hand_over = HandOver(
            store,
            self.live,
            self._folds,
            self._reconciler,
            self.line,
            performers,
            instance_id=self.instance_id,
            lease_s=self._leasing.lease_s,
        )
        if recovers:
            recovery = Recovery(
                store,
                self.line,
                performers,
                self.line.joined,
                clock=self._clock,
                mint=mint,
                instance_id=self.instance_id,
            )
            self._reconciler.before_lost = self.live.before_giving_up = recovery.plan
        self.nursery = self.live.nursery = ProcessNursery(
            self.live,
            store,
            performers,
            perform_with,
            clock=self._clock,
            instance_id=self.instance_id,
            lease_s=self._leasing.lease_s,
        )
        self._deliverer = Deliverer(store, self.nursery.agents, lambda: self.live.tool_threads, self._folds.committed)
        self.live.on_over = self._deliverer.look
        self._heartbeat = Heartbeat(
            store,
            self.instance_id,
            lease_s=self._leasing.lease_s,
            every_s=self._leasing.heartbeat_s,
            held=self.live.runs.keys,
            on_leases=self.live.heard,
            on_expiry=self.live.expired,
            on_lost=self._reconciler.close_lost,
            on_look=self._look_around,
        )
        self._draining = False

    # --- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the journal and close the runs that a crash left behind. Raises what the journal raises."""
        self._draining = False
        self.live.begin_life()
        self.line.begin_life()
        self.tail.dropping = False
        self._folds.clear()
        self.journal.subscribe(self._heard)
        await self.journal.open()
        await self._close_left_behind()
        await self.line.look_around()
        await self._hand_over.look_around()
        await self._deliverer.look_around()
        self._heartbeat.start()

    async def _close_left_behind(self) -> None:
        if not self.journal.exclusive:
            await self._heartbeat.look_for_lost()
            return
        for run in await self.journal.active_runs():
            if run.status != QUEUED:
                await self._reconciler.close_lost(run)  # whatever its lease says: its executor is dead

    async def drain(self, patience_s: float) -> None:
        """Begin no new runs; let those at work finish for so long, then give them up as interrupted."""
        self._draining = True
        await self.line.close()
        await self.live.drain(patience_s)
        await self._deliverer.close(DELIVERY_S)
        self.tail.drop_readers()

    async def stop(self) -> None:
        """Let go of the journal. What is still at work now is closed by the next start."""
        await self.line.close()
        await self.live.stop()
        await self.tail.elsewhere.close()
        await self._heartbeat.stop()
        await self.journal.close()

    async def _look_around(self) -> None:
        """What a heartbeat looks for beside its own runs, where other processes may have left it."""
        if self._draining:
            return
        if not self.journal.exclusive:
            await self._hand_over.look_around()
            await self.line.look_around()
        await self._deliverer.look_around()

    def _heard(self, wake: Wake | None) -> None:
        """Another process has said something; None: it may have."""
        self.tail.elsewhere.heard(wake)
        if wake is None or wake.kind in ("cancel", "inbox"):
            self._heartbeat.hurry()
        elif wake.kind == "read" and self.is_at_work(wake.run_id):
            self.live.followed.begins(wake.run_id)

    @property
    def draining(self) -> bool:
        """Whether new runs are refused because the server is shutting down."""
        return self._draining

    # --- reading --------------------------------------------------------------------------------------------------

    async def session(self, principal: Principal, session_id: str) -> Session | None:
        """The principal's session with this id, if there is one. Raises NotFound for a deleted one."""
        return await self.sessions.lookup(principal, session_id, "run")

    async def run(self, principal: Principal, run_id: str, action: str = "read") -> RunRecord:
        """The run with this id. Raises NotFound if it is not the principal's, or not there, or in a deleted session."""
        run = await self.journal.find_visible_run(run_id)
        authorize(principal, action, run)
        if run is None:
            raise NotFound
        return run

    async def runs(self, principal: Principal, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        """At most `limit` of the principal's runs behind a place, the newest first."""
        return await self.journal.list_runs(owner_of(principal), wanted, before, limit)

    async def tree(self, run: RunRecord) -> list[RunRecord]:
        """All runs of the tree that the run belongs to, in the order in which they began."""
        return await self.journal.runs_of_tree(run.root_run_id)

    def agent_name(self, agent_id: str) -> str:
        """The name of an agent for people; one that is not here any more goes by its id."""
        performer = self.performers.get(agent_id)
        return agent_id if performer is None else performer.agent.name

    def now(self) -> int:
        """The time, in ms since the epoch."""
        return self._clock.now()

    @property
    def has_approvers(self) -> bool:
        """Whether any tool here says who may answer what it asks."""
        return self.nursery.has_approvers

    def approvers(self, agent_id: str, tool_name: str | None) -> ApproverPolicy | None:
        """Who may answer what a tool asks; None: whoever may use the session."""
        return self.nursery.approvers(agent_id, tool_name)

    def may_answer(self, principal: Principal, requester_id: str, agent_id: str | None, tool_name: str | None) -> bool:
        """Whether the principal may answer what a tool asks in a run that the requester has asked for."""
        policy = self.approvers(agent_id or "", tool_name)
        return policy is None or policy(principal, requester_id)

    def follow(self, run_id: str, after: int = 0) -> Cursor:
        """A reader of the run's facts behind `after`; it is to be closed."""
        return self.tail.follow(run_id, after)

    def follow_tree(self, root_run_id: str) -> Cursor:
        """A reader of the facts of a root run and all below it, in the order of `root_seq`; it is to be closed."""
        return TreeCursor(self.tail, root_run_id)

    async def tree_end(self, run: RunRecord) -> int:
        """The last `root_seq` of the tree of a root run."""
        return await self.journal.tree_end(run.run_id)

    def readers(self, run_id: str) -> int:
        """How many readers the run has in this process."""
        return self.tail.readers(run_id)

    async def open(self, principal: Principal, session_id: str) -> tuple[Session | None, Thread]:
        """The principal's session and its thread; for a session that is not there yet None and a new thread."""
        session = await self.session(principal, session_id)
        return session, (await self.thread(session.thread_id) if session else Thread(self._mint("thr")))

    async def thread(self, thread_id: str) -> Thread:
        """The fold of a thread, up to its last committed fact (or, while it runs here, its last fact)."""
        return await self._folds.thread(thread_id)

    async def committed_thread(self, thread_id: str) -> Thread:
        """A fold of its own of all that the store has of a thread, and nothing that is not committed yet."""
        return await self._folds.committed(thread_id)

    async def thread_as_of(self, run: RunRecord) -> Thread:
        """A fold of its own of the thread as it was when `run` had taken its request in."""
        return await self._folds.as_of(run)

    async def thread_before(self, run: RunRecord) -> Thread:
        """A fold of its own of the thread as it was before `run` began."""
        return await self._folds.before(run)

    async def answer_with(self, run: RunRecord, client_run_id: str, input_digest: str = NO_REQUEST) -> RunRecord:
        """Remember that a request which began nothing is answered by `run`; the run that answers it, which is another
        if the same request was answered before. Without a digest it only names the run. Raises NotFound, StoreError.
        """
        if run.client_run_id == client_run_id and input_digest in (NO_REQUEST, run.input_digest):
            return run
        return await self.journal.add_alias(Alias(run.thread_id, client_run_id, input_digest, run.run_id))

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
            lease_s=self._leasing.lease_s,
        )
        run_id = opening.run.run_id
        with self.live.beginning(run_id):
            begun = await self.journal.begin_run(opening)
            if isinstance(begun, Started):
                self.live.launch(begun.run, begun.records, request, performer, thread)
        if isinstance(begun, Queued):
            self.line.joined(begun.run)
            await self._make_known(begun)
        return begun

    async def _make_known(self, queued: Queued) -> None:
        """Whoever is at work on the thread hears that somebody waits, or has to make way."""
        behind = queued.behind
        if queued.run.when_busy == INTERRUPT and behind.status != QUEUED:
            await self.cancel(behind.run_id, SUPERSEDED)
        else:
            await self.journal.wake(Wake("inbox", behind.run_id))

    # --- stopping -------------------------------------------------------------------------------------------------

    async def cancel(self, run_id: str, reason: str, wait_s: float | None = None) -> None:
        """Ask a run to stop, wherever it is at work, and wait for its end if asked to.

        A run that is over stays as it is; one that nobody performs is closed here. Raises StoreError.
        """
        if await self.live.cancel(run_id, reason, wait_s):
            return
        run = await self.journal.mark_cancel(run_id, reason)
        if run is not None and run.status == QUEUED:
            if await self.line.withdraw(run, RunCancelled(reason, external_stop_confirmed=True)):
                return
            await self.cancel(run_id, reason, wait_s)  # it has begun meanwhile
            return
        if run is None or run.is_over or await self._reconciler.cancel_orphan(run, reason):
            return
        await self.journal.wake(Wake("cancel", run_id))
        if wait_s is not None:
            await self._until_ended_elsewhere(run, wait_s)

    async def _until_ended_elsewhere(self, run: RunRecord, wait_s: float) -> None:
        cursor = self.follow(run.run_id, run.last_seq)
        try:
            async with asyncio.timeout(wait_s):
                while await cursor.next():
                    pass
        except TimeoutError:
            log.warning("run %s, at work elsewhere, did not stop within %s s", run.run_id, wait_s)
        finally:
            cursor.close()

    async def delete_session(self, principal: Principal, session_id: str, wait_s: float) -> None:
        """Hide a session and cancel what is at work in it, waiting so long for the end. Raises NotFound, StoreError."""
        for run in await self.sessions.hide(principal, session_id):
            await self.cancel(run.run_id, "session_deleted", wait_s)

    async def purge_session(self, principal: Principal, session_id: str, wait_s: float) -> Receipt:
        """Erase a session, hidden or not, with all that happened in it: nothing of it is left anywhere.

        Raises NotFound, StoreError, ThreadBusy (a run in it does not end within `wait_s` seconds).
        """
        await self.sessions.close(principal, session_id)
        return await self.erasure.session(owner_of(principal), session_id, wait_s)

    async def close_lost(self, run: RunRecord) -> bool:
        """Close a run whose executor is gone. False if it is at work or beginning here, or held by another process."""
        if self.live.is_here(run.run_id):
            return False
        return await self._reconciler.close_lost(run)

    def is_at_work(self, run_id: str) -> bool:
        """Whether the run is performed by this process."""
        return run_id in self.live.runs

    async def is_unread(self, run_id: str) -> bool:
        """Whether nobody reads the run any more, in whatever process, and it is to be stopped for that: then it may be
        superseded. Raises StoreError."""
        if self.is_at_work(run_id):
            return self.live.unread.is_unread(run_id)
        return not self.tail.readers(run_id) and await self.journal.is_unread(run_id)
