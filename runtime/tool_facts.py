"""What a running call says beside its result: artifacts, activities and facts of its own, written to its run's journal.

A tool may be at work in a thread; whatever it says is handed over on the run's event loop, in the order in which it
was said and before its result. What comes when nobody waits for the call any more is dropped.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from runtime.agent import Agent
from runtime.artifacts import ArtifactShelf
from runtime.budget import Budget
from runtime.canonical import Json
from runtime.errors import InvalidInput, StoreError
from runtime.events import ArtifactCreated, Event
from runtime.items import Content
from runtime.journal.artifacts import Artifact
from runtime.scope import RunScope
from runtime.tools.toolbox import ToolError

R = TypeVar("R")

UNAWAITED = (
    "The tool did not wait for an artifact or another agent: `await ctx.artifact(...)`, or in a synchronous tool "
    "`ctx.wait(ctx.artifact(...))`; and so with `ctx.delegate(...)`."
)


class ToolFacts:
    """The `Surroundings` of one call, from its start to `close`. Made on the run's event loop."""

    def __init__(self, scope: RunScope, shelf: ArtifactShelf, tool_call_id: str) -> None:
        self._scope = scope
        self._shelf = shelf
        self._call_id = tool_call_id
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._promised = 0
        self._delegated = 0
        self._closed = False

    def emit(self, event: Event) -> None:
        """Write a fact; returns at once."""
        if threading.get_ident() == self._thread:
            self._emit(event)
        else:
            self._loop.call_soon_threadsafe(self._emit, event)

    def artifact(self, name: str, media_type: str, source: bytes | Path) -> Coroutine[Any, Any, Artifact]:
        """Store an artifact and tell of it."""
        self._promised += 1
        return self._make(name, media_type, source)

    def delegate(self, agent: Agent | str, prompt: Content, budget: Budget | None) -> Coroutine[Any, Any, Json]:
        """Hand work to another agent."""
        self._promised += 1
        return self._delegate(agent, prompt, budget)

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
        self._scope.children.call_ended(self._call_id)
        return UNAWAITED if self._promised else None

    def _emit(self, event: Event) -> None:
        if not self._closed:
            self._scope.log.emit([event])

    async def _delegate(self, agent: Agent | str, prompt: Content, budget: Budget | None) -> Json:
        self._promised -= 1
        if self._closed:
            raise ToolError("The call is over: nothing can be added to it.")
        self._delegated += 1
        return await self._scope.children.delegate(self._call_id, self._delegated, agent, prompt, budget)

    async def _make(self, name: str, media_type: str, source: bytes | Path) -> Artifact:
        self._promised -= 1
        if self._closed:
            raise ToolError("The call is over: nothing can be added to it.")
        try:
            made = await self._shelf.make(self._scope.run, name, media_type, source)
        except (StoreError, InvalidInput) as error:
            raise ToolError(f"The artifact {name!r} could not be stored. {error.message}") from error
        self._emit(ArtifactCreated(made.artifact_id, made.name, made.media_type, made.size, made.digest, self._call_id))
        return made
