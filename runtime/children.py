"""The child runs of one run: work that its tools hand to other agents.

A child is a run like any other, on a thread of its own; its parent waits for it within a tool call. Here is what binds
the two: each `child.started` is committed before there is a child, and has exactly one end in the parent's journal,
which comes behind the child's own. Nothing below a run is at work when it ends. How a run is begun and performed is
the `Nursery`'s business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from runtime import events as e
from runtime.agent import Agent
from runtime.budget import Budget
from runtime.canonical import Json, digest
from runtime.ending import child_over
from runtime.entries import Child
from runtime.errors import AguiBridgeError
from runtime.interrupts import Suspended
from runtime.items import Content
from runtime.request import RunRequest
from runtime.run import RunRecord
from runtime.run_log import RunLog
from runtime.system import Mint
from runtime.thread import Thread
from runtime.tools.toolbox import ReplayMismatch, ToolError
from runtime.usage import Spending

PARENT_CANCELLED = "parent_cancelled"
"""Why a child was cancelled whose parent was."""
CALL_ENDED = "call_ended"
"""Why a child was cancelled whose call does not wait for it any more."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a run stands in its tree: how far below the root, and who counts what it spends."""

    depth: int = 0
    above: Spending | None = None


ROOT = Lineage()


@dataclass(frozen=True, slots=True)
class Asked:
    """An agent that work is handed to. `owes_value`: its answer is a value, not text."""

    agent_id: str
    name: str
    description: str
    owes_value: bool


@dataclass(frozen=True, slots=True)
class Order:
    """A child run to be begun."""

    run_id: str
    request: RunRequest
    agent: Agent | str
    thread: Thread
    lineage: Lineage


class ChildAtWork(Protocol):
    """A child run that has begun."""

    @property
    def over(self) -> asyncio.Event:
        """Set when the run has ended, and is no longer at work here."""
        ...

    @property
    def terminal(self) -> e.Event | None:
        """Its terminal event, if its engine could commit one."""
        ...

    def cancel(self, reason: str) -> None:
        """Stop it on purpose."""
        ...

    def interrupt(self, reason: str) -> None:
        """Give up its executor."""
        ...


class Nursery(Protocol):
    """Begins child runs."""

    def asked(self, agent: Agent | str) -> Asked:
        """Who that is. Raises NotFound, ConfigurationError."""
        ...

    async def begin(self, order: Order) -> ChildAtWork:
        """Begin the run and set it to work. Raises AguiBridgeError."""
        ...

    async def ended(self, run_id: str) -> RunRecord | None:
        """The record of a run that could not write its own end."""
        ...


class _Slot:
    """One child of this run, from before it has begun until its end was told."""

    def __init__(self, tool_call_id: str) -> None:
        self.tool_call_id = tool_call_id
        self._child: ChildAtWork | None = None
        self._stop: Callable[[ChildAtWork], None] | None = None

    def has(self, child: ChildAtWork) -> None:
        self._child = child
        if self._stop is not None:
            self._stop(child)

    @property
    def stopped(self) -> bool:
        return self._stop is not None

    def stop(self, how: Callable[[ChildAtWork], None]) -> None:
        if self._stop is None:
            self._stop = how
            if self._child is not None:
                how(self._child)


class Children:
    """The children of one run, which its tools make by `delegate`; at most `max_depth` runs deep."""

    def __init__(
        self,
        run: RunRecord,
        request: RunRequest,
        thread: Thread,
        log: RunLog,
        *,
        nursery: Nursery,
        mint: Mint,
        lineage: Lineage,
        spending: Spending,
        max_depth: int,
    ) -> None:
        self._run = run
        self._request = request
        self._thread = thread
        self._log = log
        self._nursery = nursery
        self._mint = mint
        self._lineage = Lineage(lineage.depth + 1, spending)
        self._max_depth = max_depth
        self._open: dict[asyncio.Task[Json], _Slot] = {}
        self._stop: Callable[[ChildAtWork], None] | None = None
        self.unconfirmed: list[str] = []
        """Children that have ended and of which something may still be at work, as `run:ID`."""

    async def delegate(
        self, tool_call_id: str, number: int, agent: Agent | str, prompt: Content, budget: Budget | None
    ) -> Json:
        """Have an agent do something; its answer, a text or its value. `number` counts the call's delegations.

        Raises ToolError if nothing comes of it. If the waiting is cancelled, so is the child.
        """
        try:
            asked = self._nursery.asked(agent)
        except AguiBridgeError as error:
            raise ToolError(error.message) from error
        if self._lineage.depth > self._max_depth:
            raise ToolError(f"{asked.name} was not asked: this work has been handed on too often already.")
        request_digest = digest({"agent": asked.agent_id, "prompt": prompt})
        earlier = self._earlier(tool_call_id, number)
        if earlier is not None and earlier.request_digest != request_digest:
            raise ReplayMismatch(f"{ReplayMismatch().message} (work handed on, number {number})")
        if earlier is not None and earlier.over is not None and not isinstance(earlier.over, e.ChildSuspended):
            return _answer(asked, earlier.over, self._thread.below[earlier.run_id])
        order = self._order(asked, agent, prompt, budget, tool_call_id, number, request_digest, earlier)
        slot = _Slot(tool_call_id)
        if self._stop is not None:
            slot.stop(self._stop)
        task = asyncio.create_task(self._perform(order, asked, slot), name=f"child {order.run_id}")
        self._open[task] = slot
        task.add_done_callback(self._forget)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            slot.stop(lambda child: child.cancel(CALL_ENDED))
            raise

    def _earlier(self, call_id: str, number: int) -> Child | None:
        """The child that an earlier execution of the call has made there."""
        children = (child for child in self._thread.children.values() if not child.continued)
        return next((child for child in children if (child.tool_call_id, child.number) == (call_id, number)), None)

    def _order(
        self,
        asked: Asked,
        agent: Agent | str,
        prompt: Content,
        budget: Budget | None,
        call_id: str,
        number: int,
        request_digest: str,
        earlier: Child | None,
    ) -> Order:
        run_id = self._mint("run")
        thread_id = self._mint("thr") if earlier is None else earlier.thread_id
        started = e.ChildStarted(
            run_id,
            thread_id,
            asked.agent_id,
            asked.name,
            call_id,
            number,
            request_digest,
            asked.description or None,
            None if earlier is None else earlier.run_id,
        )
        self._log.emit([started])
        thread = self._thread.below.get(run_id) or Thread(thread_id, of_child=True)
        facts: list[e.Event] = [e.MessageCompleted(self._mint("msg"), "user", prompt, digest(prompt))]
        if earlier is not None:
            answers = (self._thread.answers.get(interrupt.id) for interrupt in thread.open_interrupts())
            facts = [answer.event for answer in answers if answer is not None]
        mine = self._request
        request = RunRequest(
            principal=mine.principal,
            agent_id=asked.agent_id,
            session_id=None,
            client_run_id=None,
            input_digest=request_digest,
            base=thread.position,
            facts=facts,
            call_model=True,
            forwarded_props=mine.forwarded_props,
            budget=budget,
            cancel_when_unread=False,
            parent_run_id=self._run.run_id,
            root_run_id=self._run.root_run_id,
        )
        return Order(run_id, request, agent, thread, self._lineage)

    async def _perform(self, order: Order, asked: Asked, slot: _Slot) -> Json:
        try:
            await self._log.flush()  # there is no child that its parent's journal does not know of
            if slot.stopped:
                self._log.emit([e.ChildCancelled(order.run_id, PARENT_CANCELLED)])
                raise ToolError(f"{asked.name} was stopped before it began.")
            child = await self._nursery.begin(order)
        except ToolError:
            raise
        except AguiBridgeError as error:
            self._log.emit([e.ChildFailed(order.run_id, error.as_payload())])
            raise ToolError(f"{asked.name} could not begin. {error.message}") from error
        slot.has(child)
        await child.over.wait()
        terminal = child.terminal
        if terminal is None:
            told = child_over(order.run_id, await self._nursery.ended(order.run_id))
        else:
            told = _told(order.run_id, terminal)
        if isinstance(terminal, e.RunCancelled) and not terminal.external_stop_confirmed:
            self.unconfirmed.append(f"run:{order.run_id}")
        self._log.emit([told])
        return _answer(asked, told, order.thread)

    def _forget(self, task: asyncio.Task[Json]) -> None:
        self._open.pop(task, None)
        if not task.cancelled():
            task.exception()  # whoever waits for it has it; maybe nobody does

    # --- stopping -------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """The run is cancelled: so are all below it, now and from now on."""
        self._stop_all(lambda child: child.cancel(PARENT_CANCELLED))

    def interrupt(self, reason: str) -> None:
        """The run's executor is given up: so are those of all below it."""
        self._stop_all(lambda child: child.interrupt(reason))

    def call_ended(self, tool_call_id: str) -> None:
        """Nobody waits any more for what this call has handed on."""
        for slot in self._open.values():
            if slot.tool_call_id == tool_call_id:
                slot.stop(lambda child: child.cancel(CALL_ENDED))

    async def all_over(self) -> None:
        """Return when nothing below is at work and the end of each child was told."""
        while self._open:
            await asyncio.wait(list(self._open))

    def _stop_all(self, how: Callable[[ChildAtWork], None]) -> None:
        self._stop = self._stop or how
        for slot in list(self._open.values()):
            slot.stop(how)


def _told(run_id: str, terminal: e.Event) -> e.Event:
    match terminal:
        case e.RunCompleted(message_id=message_id, result=result):
            return e.ChildCompleted(run_id, message_id, result)
        case e.RunFailed(error=error):
            return e.ChildFailed(run_id, error)
        case e.RunCancelled(reason=reason):
            return e.ChildCancelled(run_id, reason)
        case e.RunInterrupted(reason=reason):
            return e.ChildInterrupted(run_id, reason)
        case e.RunSuspended(interrupts=interrupts):
            return e.ChildSuspended(run_id, [interrupt["interrupt_id"] for interrupt in interrupts])
        case _:
            raise AssertionError(f"{terminal.event_type} ends no run")


def _answer(asked: Asked, told: e.Event, thread: Thread) -> Json:
    match told:
        case e.ChildCompleted(result=result):
            return result if asked.owes_value else (thread.turn.final_text() if thread.turn is not None else "")
        case e.ChildSuspended():
            raise Suspended
        case e.ChildFailed(error=error):
            raise ToolError(f"{asked.name} failed. {error.get('message', '')}".strip())
        case e.ChildCancelled(reason=reason):
            raise ToolError(f"{asked.name} was stopped ({reason}).")
        case _:
            raise ToolError(f"{asked.name} was interrupted.")
