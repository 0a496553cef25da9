"""What a running tool knows of its run: one plain object, handed to the tools that ask for it by annotation.

It holds what the engine gives it and does nothing by itself: of the state it gives a view (see `state_view`), and what
a tool says beside its result it hands on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from runtime.budget import Budget
from runtime.canonical import Json, JsonObject, clean
from runtime.events import ActivityDelta, ActivitySnapshot, Custom, Event, StateDelta, StateSnapshot
from runtime.interrupts import INPUT, Question
from runtime.items import Content
from runtime.journal.artifacts import Artifact
from runtime.run import RunRecord
from runtime.shared_state import SharedState
from runtime.state_delta import change
from runtime.state_type import StateType

if TYPE_CHECKING:
    from runtime.agent import Agent

R = TypeVar("R")

OURS = "agui-bridge"
"""What the names of our own activities and facts begin with."""


class Flag(Protocol):
    """Something that is set once and can be read from any thread, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether it was set."""
        ...


class Surroundings(Protocol):
    """Where a tool's words beside its result go."""

    def emit(self, event: Event) -> None:
        """Write a fact; returns at once, from any thread."""
        ...

    def progress(self, value: Json) -> None:
        """Show how far the call is; returns at once, from any thread."""
        ...

    def state(self, before: Json, after: Json) -> None:
        """Commit what was made of the shared state; returns at once, from any thread."""
        ...

    def artifact(self, name: str, media_type: str, source: bytes | Path) -> Coroutine[Any, Any, Artifact]:
        """Store an artifact and tell of it."""
        ...

    def delegate(self, agent: Any, prompt: Content, budget: Budget | None) -> Coroutine[Any, Any, Json]:
        """Have another agent do something; its answer."""
        ...

    def interrupt(self, question: Question) -> Coroutine[Any, Any, Json]:
        """Ask somebody outside; the answer."""
        ...

    def once(self, key: str, work: Callable[[], Any]) -> Coroutine[Any, Any, Json]:
        """Do something unless the call has done it already; what came of it."""
        ...

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Do the work on the run's event loop while this thread waits."""
        ...


class ToolContext:
    """The surroundings of one tool call. A parameter with this annotation receives it; the model never sees it."""

    __slots__ = (
        "_activities",
        "_run_stopped",
        "_settled",
        "_shared",
        "_stop_requested",
        "_surroundings",
        "_told",
        "deps",
        "forwarded_props",
        "idempotency_key",
        "principal",
        "run",
        "tool_call_id",
    )

    def __init__(
        self,
        *,
        run: RunRecord,
        tool_call_id: str,
        idempotency_key: str,
        cancelled: Flag,
        state: Json = None,
        deps: Any = None,
        principal: Any = None,
        forwarded_props: Json = None,
        surroundings: Surroundings | None = None,
        state_type: StateType | None = None,
    ):
        self.run = run
        self.tool_call_id = tool_call_id
        self.idempotency_key = idempotency_key
        """The same for every execution of this call: give it to services that can refuse to do a thing twice."""
        self._settled = self._told = state
        self._shared = SharedState(state, state_type)
        self.deps = deps
        """What the program gave its agent (database handles, clients, …)."""
        self.principal = principal
        """Who asked for the run."""
        self.forwarded_props = forwarded_props
        """What the client sent along for the agent."""
        self._run_stopped = cancelled
        self._stop_requested = False
        self._surroundings = surroundings
        self._activities: dict[str, ActivitySnapshot] = {}

    @property
    def state(self) -> Any:
        """The shared state, which the tool may change: a dict or list, or a value of the agent's `state_type`.

        What the call has made of it is committed with its result, and dropped if it fails, but for what it has
        published (see `publish_state`). Raises StateMisfit if the state does not fit the type; a value that does may be
        put in its place all the same.
        """
        return self._shared.value

    @state.setter
    def state(self, value: Any) -> None:
        self._shared.value = value

    def settle(self) -> None:
        """For whoever executes the call, when its function is done: what it does to the state from now on is lost.

        Raises StateMisfit, RecursionError, and what foreign code raises in telling its values.
        """
        self._settled = self._shared.settled()

    @property
    def settled_state(self) -> Json:
        """For whoever executes the call: the state as it was settled, the very one of before if nothing was changed."""
        return self._settled

    @property
    def told_state(self) -> Json:
        """For whoever executes the call: the state as it was when it began, or as the call has published it last."""
        return self._told

    def publish_state(self) -> None:
        """Commit what the call has made of the state so far, so that the page sees it at once; returns at once.

        It stays, even if the call fails afterwards, asks somebody, or is stopped. Raises StateMisfit.
        """
        here = self._here()
        self.settle()
        if self._settled is not self._told:
            here.state(self._told, self._settled)
            self._told = self._settled

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for this call any more: the run is being stopped, or the call has timed out.

        A synchronous tool cannot be stopped from outside; one that takes long should look here now and then.
        """
        return self._stop_requested or self._run_stopped.is_set()

    def request_stop(self) -> None:
        """For whoever executes the call: make `cancelled` true for this call alone."""
        self._stop_requested = True

    def tell_progress(self, value: object) -> None:
        """For whoever executes the call: its function has yielded this, which is as it is now."""
        if self._surroundings is not None:
            self._surroundings.progress(clean(value))

    # --- beside the result ----------------------------------------------------------------------------------------

    def artifact(
        self,
        name: str,
        media_type: str,
        content: str | bytes | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
    ) -> Coroutine[Any, Any, Artifact]:
        """Make something to be fetched, of `content` or of the file at `path`: to be awaited.

        It is stored before the page is told of it. In a synchronous tool: `ctx.wait(ctx.artifact(...))`. Raises
        TypeError here, ToolError (the file cannot be read, the disk is full, no such media type) when awaited.
        """
        if path is not None and content is None:
            return self._here().artifact(name, media_type, Path(path))
        if path is None and content is not None:
            data = content.encode("utf-8", "replace") if isinstance(content, str) else bytes(content)
            return self._here().artifact(name, media_type, data)
        raise TypeError("an artifact is made of either content or path")

    def delegate(
        self, agent: Agent | str, prompt: Content, *, budget: Budget | None = None
    ) -> Coroutine[Any, Any, Json]:
        """Have another agent, given as such or by the name it is served under, do something: to be awaited.

        It begins a child run, with a thread, a journal and a `budget` of its own, and answers with its final text, or
        with its value if it has an output type. In a synchronous tool: `ctx.wait(ctx.delegate(...))`. Raises ToolError
        when awaited if nothing comes of it: it failed, was stopped, or there is no such agent.
        """
        return self._here().delegate(agent, prompt, budget)

    def interrupt(
        self,
        reason: str = INPUT,
        message: str | None = None,
        response_schema: JsonObject | None = None,
        expires_in: float | None = None,
        *,
        metadata: JsonObject | None = None,
    ) -> Coroutine[Any, Any, Json]:
        """Ask somebody outside, and wait for the answer, be it for days: to be awaited.

        `reason` is `input_required`, `confirmation` or a word of yours with a prefix, `response_schema` the JSON Schema
        that the answer must fit, `expires_in` the seconds after which it can only be cancelled. The run ends as
        suspended; with the answer **the tool is called again from its top**, and this returns what was answered. What
        must not happen twice goes into `once`; what the call has made of the state is dropped. In a synchronous tool:
        `ctx.wait(ctx.interrupt(...))`. Raises ValueError here; when awaited `Declined` (nobody will answer), which is a
        ToolError, and ToolError in a tool that is declared `parallel`.
        """
        question = Question(reason, message, clean(response_schema), expires_in, clean(metadata))
        question.check()
        return self._here().interrupt(question)

    def once(self, key: str, work: Callable[[], Any]) -> Coroutine[Any, Any, Json]:
        """Do something that must not be done again when the call is called again from its top: to be awaited.

        `work` takes nothing; it is called, and awaited if it is async (else called in a thread), only if no earlier
        execution of this call has recorded what came of it under this key. That is JSON, and is returned. In a
        synchronous tool: `ctx.wait(ctx.once(...))`. Raises what `work` raises, and records nothing then.
        """
        return self._here().once(key, work)

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """For synchronous tools: do async work, such as making an artifact, and return what came of it."""
        return self._here().wait(work)

    def activity(self, activity_type: str, content: JsonObject, *, activity_id: str | None = None) -> str:
        """Show something beside the messages, such as progress; its id. Said again under that id it changes.

        The type is yours, best with a prefix (`shop.basket`); `content` is an object. Raises ValueError, TypeError.
        """
        _require_foreign(activity_type)
        cleaned = clean(content)
        if not isinstance(cleaned, dict):
            raise TypeError("the content of an activity is an object")
        shown = cast("JsonObject", cleaned)
        id_ = activity_id or f"{self.tool_call_id}-{len(self._activities) + 1}"
        now = ActivitySnapshot(id_, activity_type, shown)
        before = self._activities.get(id_)
        self._activities[id_] = now
        if before is None or before.activity_type != activity_type:
            self._here().emit(now)
            return id_
        match change(before.content, now.content):
            case StateDelta(operations):
                self._here().emit(ActivityDelta(id_, activity_type, operations))
            case StateSnapshot():
                self._here().emit(now)
            case None:
                pass
        return id_

    def custom(self, name: str, value: Json) -> None:
        """Tell the page something of your own. The name is best given a prefix (`shop.paid`). Raises ValueError."""
        _require_foreign(name)
        self._here().emit(Custom(name, clean(value)))

    def _here(self) -> Surroundings:
        if self._surroundings is None:
            raise RuntimeError("this context belongs to no run")
        return self._surroundings


def _require_foreign(name: str) -> None:
    if not name or name.startswith(OURS):
        raise ValueError(f"{name!r} is no name for something of yours: give it a prefix that is not {OURS}")
