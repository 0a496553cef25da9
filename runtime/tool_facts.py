"""What a running call says beside its result: artifacts, activities and facts of its own, written to its run's journal.

A tool may be at work in a thread; whatever it says is handed over on the run's event loop, in the order in which it
was said and before its result. What comes when nobody waits for the call any more is dropped.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from runtime.agent import Agent
from runtime.artifacts import ArtifactShelf
from runtime.budget import Budget
from runtime.canonical import Json, clean
from runtime.errors import InvalidInput, StoreError
from runtime.events import ArtifactCreated, Event, ToolCallCommitted, ToolCallRecorded
from runtime.interrupts import RESOLVED, Question, Suspended
from runtime.items import Content
from runtime.journal.artifacts import Artifact
from runtime.scope import RunScope
from runtime.sessions import owner_of
from runtime.state_delta import PatchConflict, changes
from runtime.tool_progress import ToolProgress
from runtime.tools.toolbox import Declined, ReplayMismatch, ToolError

R = TypeVar("R")
S = TypeVar("S")

UNAWAITED = (
    "The tool did not wait for an artifact or another agent: `await ctx.artifact(...)`, or in a synchronous tool "
    "`ctx.wait(ctx.artifact(...))`; and so with `ctx.delegate(...)`."
)


UNFIT = "What this call made of the shared state does not fit into it; the state is as it was."


class ToolFacts:
    """The `Surroundings` of one call, from its start to `close`. Made on the run's event loop."""

    def __init__(self, scope: RunScope, shelf: ArtifactShelf, call: ToolCallCommitted, *, may_ask: bool = True) -> None:
        self._scope = scope
        self._shelf = shelf
        self._call_id = call.tool_call_id
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._progress = ToolProgress(call, self._emit, scope.limits.progress_interval_s)
        self._may_ask = may_ask
        self._promised = 0
        self._delegated = 0
        self._asked = 0
        self._closed = False
        self._mismatch: str | None = None
        self._unfit = False
        self._waits = False
        self.asks: list[tuple[int, Question]] = []
        """What the call asks now, numbered among all that it has asked."""

    def emit(self, event: Event) -> None:
        """Write a fact; returns at once."""
        self._on_the_loop(self._emit, event)

    def progress(self, value: Json) -> None:
        """Show how far the call is; returns at once."""
        self._on_the_loop(self._progress.note, value)

    def state(self, before: Json, after: Json) -> None:
        """Commit what the call has made of the shared state so far."""
        self._on_the_loop(self._change_state, (before, after))

    def artifact(self, name: str, media_type: str, source: bytes | Path) -> Coroutine[Any, Any, Artifact]:
        """Store an artifact and tell of it."""
        self._promised += 1
        return self._make(name, media_type, source)

    def delegate(self, agent: Agent | str, prompt: Content, budget: Budget | None) -> Coroutine[Any, Any, Json]:
        """Hand work to another agent."""
        self._promised += 1
        return self._delegate(agent, prompt, budget)

    def interrupt(self, question: Question) -> Coroutine[Any, Any, Json]:
        """Ask somebody outside."""
        self._promised += 1
        return self._interrupt(question)

    def once(self, key: str, work: Callable[[], Any]) -> Coroutine[Any, Any, Json]:
        """Do something that an earlier execution of the call has not done."""
        self._promised += 1
        return self._once(key, work)

    @property
    def is_suspended(self) -> bool:
        """Whether the call waits for somebody outside, itself or in a child, however its function took that."""
        return (bool(self.asks) or self._waits) and self._mismatch is None

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Do the work on the event loop while this thread waits. Raises what it raises."""
        if threading.get_ident() == self._thread:
            work.close()
            raise RuntimeError("only a synchronous tool may wait like this; an async one says `await`")
        lent = self._scope.threads.lend(work)
        return asyncio.run_coroutine_threadsafe(lent, self._loop).result()

    def close(self) -> str | None:
        """The call has ended: nothing more is taken. What the tool has done wrong here, for the model to read."""
        self._closed = True
        self._progress.close()
        self._scope.children.call_ended(self._call_id)
        return self._mismatch or (UNFIT if self._unfit else UNAWAITED if self._promised else None)

    def _on_the_loop(self, say: Callable[[S], None], said: S) -> None:
        if threading.get_ident() == self._thread:
            say(said)
        else:
            self._loop.call_soon_threadsafe(say, said)

    def _emit(self, event: Event) -> None:
        if not self._closed:
            self._scope.log.emit([event])

    def _change_state(self, change_: tuple[Json, Json]) -> None:
        if self._closed or self._unfit:
            return
        try:
            for fact in changes(self._scope.thread.state, *change_):
                self._emit(fact)
        except (PatchConflict, RecursionError):
            self._unfit = True

    async def _delegate(self, agent: Agent | str, prompt: Content, budget: Budget | None) -> Json:
        self._begin()
        self._delegated += 1
        try:
            kept = await self._kept(prompt)
            return await self._scope.children.delegate(self._call_id, self._delegated, agent, kept, budget)
        except Suspended:
            self._waits = True
            raise
        except ReplayMismatch as error:
            self._mismatch = error.message
            raise

    async def _kept(self, prompt: Content) -> Content:
        """The prompt as its journal holds it: large media are kept, and it refers to them."""
        scope = self._scope
        try:
            return await scope.media.kept(owner_of(scope.request.principal), scope.run.thread_id, prompt)
        except (StoreError, InvalidInput) as error:
            raise ToolError(f"The media of what is handed on could not be kept. {error.message}") from error

    async def _interrupt(self, question: Question) -> Json:
        self._begin()
        if not self._may_ask:
            raise ToolError("A tool that asks somebody outside must not be declared parallel.")
        self._asked += 1
        thread = self._scope.thread
        earlier = next((ask for ask in thread.calls[self._call_id].asks if ask.raised.number == self._asked), None)
        if earlier is None:
            self.asks.append((self._asked, question))
            raise Suspended
        if earlier.raised.request_digest != question.request_digest:
            self._mismatch = f"{ReplayMismatch().message} (question {self._asked})"
            raise ReplayMismatch(self._mismatch)
        answer = thread.answers.get(earlier.id)
        if answer is None:
            self._waits = True
            raise Suspended
        if answer.event.status != RESOLVED:
            raise Declined
        return copy.deepcopy(answer.event.payload)

    async def _once(self, key: str, work: Callable[[], Any]) -> Json:
        self._begin()
        call = self._scope.thread.calls[self._call_id]
        if key not in call.records:
            value = work() if inspect.iscoroutinefunction(work) else await self._in_a_thread(work)
            if inspect.isawaitable(value):
                value = await value
            self._emit(ToolCallRecorded(self._call_id, key, clean(value)))
            await self._scope.log.flush()
        return copy.deepcopy(call.records[key])

    async def _in_a_thread(self, work: Callable[[], Any]) -> Any:
        return await (await self._scope.threads.start(work, f"once in {self._call_id}"))

    def _begin(self) -> None:
        self._promised -= 1
        if self._closed:
            raise ToolError("The call is over: nothing can be added to it.")

    async def _make(self, name: str, media_type: str, source: bytes | Path) -> Artifact:
        self._begin()
        try:
            made = await self._shelf.make(self._scope.run, name, media_type, source)
        except (StoreError, InvalidInput) as error:
            raise ToolError(f"The artifact {name!r} could not be stored. {error.message}") from error
        self._emit(ArtifactCreated(made.artifact_id, made.name, made.media_type, made.size, made.digest, self._call_id))
        return made
