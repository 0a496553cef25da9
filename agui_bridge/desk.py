"""The desk: takes one request for a run from its JSON to a stream that can be followed.

It waits for the runtime and knows the order of things: read the thread, reconcile, begin; what to do when the thread
moved, is busy, or the same was asked before; and what a page is told that only comes back. It knows nothing of HTTP:
the web side and the library side both come here.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial

from agui_bridge.encoders import Encoder, Late, Rendering, agui_encoder, plain_frames, reopening_encoder
from agui_bridge.intake import IntakePolicy, Plan, reconcile
from agui_bridge.interrupts import Answerer, resumes
from agui_bridge.langgraph_pages import styled
from agui_bridge.links import Links
from agui_bridge.media_intake import MediaIntake
from agui_bridge.page_tools import client_tools, doubts, tool_choice
from agui_bridge.prelude import Prelude, prelude
from agui_bridge.projection import Echo, Projector
from agui_bridge.reopening import Reopening, at_rest
from agui_bridge.run_input import RunInput, input_digest
from agui_bridge.transcript import shows
from agui_bridge.wire.codec import SSE, Codec
from agui_bridge.wire.versions import current
from agui_bridge.wire.versions.before_1_0 import Before10
from runtime import events as e
from runtime.agent import STANDARD
from runtime.authority import Principal
from runtime.beginning import messages_alone
from runtime.errors import NotFound, RunConflict, ThreadBusy, ThreadQueueFull
from runtime.interrupts import Interrupt
from runtime.journal import Answered, Busy, Conflict, KeyReused, Moved, Queued, QueueFull, Replay, Session, Started
from runtime.journal.inbox import REJECT
from runtime.journal.tail import Cursor
from runtime.request import RunRequest
from runtime.run import QUEUED, RUNNING, RunRecord
from runtime.supervisor import Supervisor
from runtime.thread import Thread

log = logging.getLogger("agui_bridge.desk")

SETTLE_S = 10.0
"""How long a superseded run may take to end before its thread counts as busy, in seconds."""
TRIES = 16
"""How often a thread that moves under the reader is read again."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A run to be followed: its reader (to be closed) and what turns its records into this client's frames."""

    run: RunRecord
    cursor: Cursor
    encode: Encoder | Late


@dataclass(frozen=True, slots=True)
class _Waits:
    """The messages of a request that may wait for its thread."""

    messages: list[e.Event]


@dataclass(frozen=True, slots=True)
class Told:
    """There is no run to follow: the whole answer, in frames."""

    frames: bytes


@dataclass(frozen=True, slots=True)
class Manners:
    """How pages are told: in which form, of artifacts with which links; and of those that say no version, whether they
    are told of child runs as such, and of a stopped run without a word of why."""

    codec: Codec = SSE
    link_of: Links | None = None
    legacy_subagents: bool = False
    stops_quietly: bool = False

    def rendering(self, run_input: RunInput) -> Rendering:
        """How the page is told that sent this request."""
        if run_input.protocol_version is not None:
            return Rendering(self.codec, current, self.link_of)
        warn = partial(log.warning, "thread %s: %s", run_input.thread_id)
        shape = Before10(
            warn,
            subagents=self.legacy_subagents,
            resumes=resumes(run_input),
            stops_quietly=self.stops_quietly,
        )
        return Rendering(self.codec, shape, self.link_of)


@dataclass(frozen=True, slots=True)
class WhenBusy:
    """What becomes of a new message on a busy thread (see `journal.inbox`), and how many may wait for one."""

    policy: str = REJECT
    queue_limit: int | None = None


class Desk:
    """Accepts requests for runs. `cancel_when_unread`: what a reader that goes away for good means."""

    def __init__(
        self,
        supervisor: Supervisor,
        policy: IntakePolicy,
        *,
        cancel_when_unread: bool,
        manners: Manners = Manners(),
        when_busy: WhenBusy = WhenBusy(),
    ) -> None:
        self._when_busy = when_busy
        self._supervisor = supervisor
        self._policy = policy
        self._cancel_when_unread = cancel_when_unread
        self._manners = manners

    @property
    def manners(self) -> Manners:
        """How its pages are told."""
        return self._manners

    def telling(self, codec: Codec, link_of: Links, *, stops_quietly: bool = False) -> Desk:
        """This desk for one page, which is told in this form, and of artifacts with these links."""
        manners = replace(self._manners, codec=codec, link_of=link_of, stops_quietly=stops_quietly)
        cancel, busy = self._cancel_when_unread, self._when_busy
        return Desk(self._supervisor, self._policy, cancel_when_unread=cancel, manners=manners, when_busy=busy)

    async def accept(self, run_input: RunInput, agent_id: str, principal: Principal) -> Accepted | Told:
        """Begin the run that is asked for, or find it.

        Raises NotFound (no such agent), MediumNotFound, InvalidInput (of media), StateMisfit, RunConflict, ThreadBusy,
        ShuttingDown, StoreError.
        """
        performer = self._supervisor.performers.get(agent_id)
        if performer is None:
            raise NotFound(f"There is no agent {agent_id!r}.")
        ours = {spec.name for spec in performer.agent.specs(performer.model)}
        for doubt in doubts(run_input, ours):
            log.warning("thread %s: %s", run_input.thread_id, doubt)
        media = self._media()
        for _ in range(TRIES):
            session, thread = await self._supervisor.open(principal, run_input.thread_id)
            asked, referred = await media.take(run_input, principal, thread.thread_id)
            plan = reconcile(asked, thread, self._policy, self._answerer(principal, thread))
            if (kind := performer.agent.shared_state) is not None:
                for fact in plan.facts:
                    if isinstance(fact, e.StateSnapshot):
                        kind.read(fact.snapshot)
            for warning in plan.warnings:
                log.warning("thread %s: %s", run_input.thread_id, warning)
            if plan.nothing:
                return Told(nothing(run_input, self._manners.rendering(run_input)))
            await media.keep(plan.facts, principal, thread.thread_id, referred)
            accepted = await self._try(asked, agent_id, principal, session, thread, plan)
            if accepted is not None:
                return accepted
        raise ThreadBusy("The thread kept changing while it was read; try again.")

    def _media(self) -> MediaIntake:
        link_of = self._manners.link_of
        return MediaIntake(self._supervisor.media, link_of.id_in if link_of is not None else lambda _: None)

    async def _try(
        self,
        run_input: RunInput,
        agent_id: str,
        principal: Principal,
        session: Session | None,
        thread: Thread,
        plan: Plan,
    ) -> Accepted | None:
        if plan.follow is not None:
            return await self._follow(run_input, await self._supervisor.run(principal, plan.follow))
        request = _request(run_input, agent_id, principal, thread, plan, cancel_when_unread=self._cancel_when_unread)
        return await self._begin(run_input, request, session, thread, plan)

    def _answerer(self, principal: Principal, thread: Thread) -> Answerer:
        def may_answer(asked: Interrupt) -> bool:
            agent_id = thread.agent_of(asked.run_id)
            return self._supervisor.may_answer(principal, principal.id, agent_id, asked.raised.tool_name)

        return Answerer(principal.id, self._supervisor.now(), may_answer)

    async def _begin(
        self, run_input: RunInput, request: RunRequest, session: Session | None, thread: Thread, plan: Plan
    ) -> Accepted | None:
        match await self._supervisor.begin(request, session, thread):
            case Started(run):
                opening = _prelude(thread, run, run_input)
                return self._accepted(run_input, run, opening)
            case Replay(run):
                return await self._existing(run_input, run)
            case Conflict(run):
                raise RunConflict(details={"run_id": run.run_id})
            case Queued(run):
                return self._waiting(run_input, run)
            case QueueFull(run):
                raise ThreadQueueFull(details={"run_id": run.run_id})
            case Busy(run):
                waits = await self._busy(run_input, run, plan)
                if isinstance(waits, Accepted | None):
                    return waits
                facts, busy = waits.messages, self._when_busy
                asked = replace(request, facts=facts, when_busy=busy.policy, queue_limit=busy.queue_limit)
                return await self._begin(run_input, asked, session, thread, plan)
            case Moved() | Answered() | KeyReused():  # no request of AG-UI has an idempotency key
                pass
        return None

    async def _busy(self, run_input: RunInput, run: RunRecord, plan: Plan) -> Accepted | _Waits | None:
        """Another run has the thread: follow it, if nothing new was said; take its place, if nobody reads it; else
        wait, where that is the policy and there are only new messages, or refuse. A run that was lost is closed first;
        one that is not at work here may be at work elsewhere."""
        is_waiting = run.status == QUEUED
        if not (is_waiting or self._supervisor.is_at_work(run.run_id)) and await self._supervisor.close_lost(run):
            return None
        if is_waiting or not await self._supervisor.is_unread(run.run_id):
            messages = messages_alone(plan.facts) if plan.call_model else None
            if self._when_busy.policy != REJECT and messages is not None:
                return _Waits(messages)
            raise ThreadBusy(details={"run_id": run.run_id})
        if not plan.call_model and not plan.facts:
            return await self._follow(run_input, run)
        await self._supervisor.cancel(run.run_id, "superseded", SETTLE_S)
        return None

    async def _follow(self, run_input: RunInput, run: RunRecord) -> Accepted:
        """The stream of a run that another request began; this one is answered by it from now on, whenever it comes."""
        run = await self._supervisor.answer_with(run, run_input.run_id, input_digest(run_input))
        return await self._existing(run_input, run)

    async def _existing(self, run_input: RunInput, run: RunRecord) -> Accepted:
        """The stream of a run that began before, as this request would have been answered then; for a page that shows
        something of the run, as for one that comes back."""
        if run.status == QUEUED or not run.has_place:
            return self._waiting(run_input, run)
        if shows(run_input.messages, run.run_id, await self._supervisor.thread(run.thread_id)):
            return await self._reopen(run_input, run)
        thread = await self._supervisor.thread_as_of(run)
        return self._accepted(run_input, run, _prelude(thread, run, run_input))

    def _accepted(self, run_input: RunInput, run: RunRecord, opening: Prelude) -> Accepted:
        return Accepted(run, self._supervisor.follow_tree(run.run_id), self._encoder(run_input, run, opening))

    def _encoder(self, run_input: RunInput, run: RunRecord, opening: Prelude) -> Encoder:
        return agui_encoder(Projector(_echo(run_input), opening), rendering=self._rendering(run_input, run.agent_id))

    def _rendering(self, run_input: RunInput, agent_id: str) -> Rendering:
        rendering = self._manners.rendering(run_input)
        performer = self._supervisor.performers.get(agent_id)
        style = STANDARD if performer is None else performer.agent.interrupt_style
        return replace(rendering, shape=styled(rendering.shape, style))

    def _waiting(self, run_input: RunInput, run: RunRecord) -> Accepted:
        """The stream of a run that waits for its thread; what it restates is found when it begins."""

        async def make() -> Encoder:
            begun = await self._supervisor.journal.find_run(run.run_id)
            if begun is None or not begun.has_place:  # withdrawn, or taken in by another run
                return self._encoder(run_input, run, Prelude())
            thread = await self._supervisor.thread_as_of(begun)
            return self._encoder(run_input, run, _prelude(thread, run, run_input))

        return Accepted(run, self._supervisor.follow_tree(run.run_id), Late(make))

    # --- a page that comes back -----------------------------------------------------------------------------------

    async def connect(self, run_input: RunInput, agent_id: str, principal: Principal) -> Accepted | Told:
        """What a page that comes back is told: where its thread stands, and how a run at work goes on.

        Nothing of the request is taken in; its run id becomes a further name of that run. Raises NotFound (no such
        agent), ThreadBusy, StoreError.
        """
        if agent_id not in self._supervisor.performers:
            raise NotFound(f"There is no agent {agent_id!r}.")
        for _ in range(TRIES):
            session, thread = await self._supervisor.open(principal, run_input.thread_id)
            last = thread.last_run
            if session is None or last is None:
                return Told(nothing(run_input, self._manners.rendering(run_input)))
            run_input, _ = await self._media().take(run_input, principal, thread.thread_id, strict=False)
            run = await self._supervisor.run(principal, last.run_id)
            if not run.is_over:
                return await self._reopen(run_input, run)
            if thread.last_run is last and last.status != RUNNING:  # the fold has all of it, and nothing behind it
                events = at_rest(thread, _echo(run_input), run_input.messages)
                return Told(plain_frames(events, self._rendering(run_input, agent_id)))
        raise ThreadBusy("The thread kept changing while it was read; try again.")

    async def _reopen(self, run_input: RunInput, run: RunRecord) -> Accepted:
        before = await self._supervisor.thread_before(run)
        await self._supervisor.answer_with(run, run_input.run_id)
        end = await self._supervisor.tree_end(run)
        reopening = Reopening(_echo(run_input), run, before, run_input.messages, end)
        encode = reopening_encoder(reopening, self._rendering(run_input, run.agent_id))
        return Accepted(run, self._supervisor.follow_tree(run.run_id), encode)


def _prelude(thread: Thread, run: RunRecord, run_input: RunInput) -> Prelude:
    return prelude(thread, run.run_id, run_input.messages, run_input.state, anew=run_input.has_large_media)


def _echo(run_input: RunInput) -> Echo:
    return Echo(
        run_input.thread_id,
        run_input.run_id,
        run_input.parent_run_id,
        resumes=resumes(run_input),
        folds_state=run_input.protocol_version is None,
    )


def _request(
    run_input: RunInput,
    agent_id: str,
    principal: Principal,
    thread: Thread,
    plan: Plan,
    *,
    cancel_when_unread: bool,
) -> RunRequest:
    return RunRequest(
        principal=principal,
        agent_id=agent_id,
        session_id=run_input.thread_id,
        client_run_id=run_input.run_id,
        input_digest=input_digest(run_input),
        base=thread.position,
        facts=plan.facts,
        call_model=plan.call_model,
        snapshots=plan.snapshots,
        client_tools=client_tools(run_input),
        context=run_input.context,
        forwarded_props=run_input.forwarded_props,
        repeatable=resumes(run_input),
        tool_choice=tool_choice(run_input),
        cancel_when_unread=cancel_when_unread,
    )


def nothing(run_input: RunInput, rendering: Rendering) -> bytes:
    """The whole stream of a request with nothing to run and nothing to tell."""
    projector = Projector(_echo(run_input))
    facts: list[e.Event] = [
        e.RunStarted(0, run_input.run_id, "", "", []),
        e.RunCompleted(),
    ]
    return plain_frames([event for fact in facts for event in projector.feed(fact)], rendering)
