"""Hooks: functions of the agent's author that are asked at four points of the loop, and what they may decide.

Pure. Each point is a decorator and a value that tells the function where it is; what it returns is its decision, None
to let things be. There is no base class and no priority: hooks are asked in the order in which the agent lists them,
each sees what those before it made of the case, and what a hook decided is a fact of the run.

| point | may answer |
|---|---|
| `before_round` | `ChangeRequest`, `Respond`, `StopRun` |
| `after_round` | `StopRun` |
| `before_tool` | `Deny`, `Answer`, `ChangeArguments`, `StopRun` |
| `after_tool` | `ReplaceResult`, `StopRun` |

Three more stand outside of the loop, and are told of what is committed at least once, whatever becomes of the process
(see `deliveries`): `on_interrupt` and `on_run_end` decide nothing, `session_title` answers with a title.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from runtime import events as e
from runtime.authority import Principal
from runtime.canonical import Json, JsonObject, clean, clean_text
from runtime.errors import AguiBridgeError, ConfigurationError
from runtime.items import Content, Item
from runtime.run import RunRecord
from runtime.tools.context import Flag

BEFORE_ROUND = "before_round"
AFTER_ROUND = "after_round"
BEFORE_TOOL = "before_tool"
AFTER_TOOL = "after_tool"

ON_INTERRUPT = "on_interrupt"
ON_RUN_END = "on_run_end"
SESSION_TITLE = "session_title"
OUTSIDE = (ON_INTERRUPT, ON_RUN_END, SESSION_TITLE)
"""The points outside of the loop."""

FACT = "agui-bridge.hook"
"""The name of the `custom` event that says what a hook decided."""


class HookError(AguiBridgeError):
    """A hook of the agent failed."""

    code = "hook_failed"


# --- where a hook is asked ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HookContext:
    """What every hook may know of its run. `deps` is the agent's own, as its tools get it."""

    run: RunRecord
    principal: Principal
    forwarded_props: Json
    deps: Any
    stopped: Flag
    """Set when the run is being stopped: a synchronous hook that takes long should look here now and then."""


@dataclass(frozen=True, slots=True)
class BeforeRound:
    """The model is about to be asked. `items` is the history as it would be shown, after the agent's history policy.

    `options` are the request's options in the provider's words, with `model` and `instructions`; `dialect` says whose
    words these are (`openai-chat`, `openai-responses`, `anthropic`). `usage` is what the run has used so far, `state`
    the shared state, a copy.
    """

    context: HookContext
    round: int
    items: Sequence[Item]
    options: JsonObject
    dialect: str
    usage: Sequence[JsonObject]
    state: Json


@dataclass(frozen=True, slots=True)
class AfterRound:
    """A round was committed: its text, its calls, none of which has run yet, and what it cost."""

    context: HookContext
    round: int
    runtime_role: str
    finish: str
    text: str
    calls: Sequence[e.ToolCallCommitted]
    usage: JsonObject | None


@dataclass(frozen=True, slots=True)
class BeforeTool:
    """A call passed the checks of the gate that stand before hooks. `arguments` are its JSON, a copy."""

    context: HookContext
    tool_call_id: str
    tool_name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class AfterTool:
    """A tool ran. `arguments` are those with which it ran; `result` is what the model would read."""

    context: HookContext
    tool_call_id: str
    tool_name: str
    arguments: JsonObject
    result: Content
    is_error: bool


@dataclass(frozen=True, slots=True)
class InterruptOpen:
    """A run has ended as suspended, and this is what it asks. `delivery_id` is the same whenever this is told."""

    delivery_id: str
    run: RunRecord
    asked: e.InterruptRaised


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A run is over, with this event. `delivery_id` is the same whenever this is told."""

    delivery_id: str
    run: RunRecord
    terminal: e.Event


@dataclass(frozen=True, slots=True)
class Untitled:
    """A run of a session without a title is over. `history` is what its thread holds now, as a model is shown it.
    `delivery_id` is the same whenever this is told."""

    delivery_id: str
    run: RunRecord
    history: Sequence[Item]


# --- what it may decide -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Ask the model so instead: with this history, and these options set over the others.

    What is None stays as it is; in `options` null takes an option out. The journal's history is not changed by it.
    """

    items: Sequence[Item] | None = None
    options: JsonObject | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Respond:
    """Do not ask: this is what was said in this round, a text, calls (name and arguments), or both.

    It is committed, shown and acted upon as if the model had said it. Raises ValueError if it says nothing.
    """

    text: str = ""
    calls: Sequence[tuple[str, JsonObject]] = ()
    reason: str | None = None

    def __post_init__(self) -> None:
        if not self.text and not self.calls:
            raise ValueError("a response has a text or calls")


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not run the call; the model reads the message as its output, an error."""

    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Do not run the call; this is its output, like a tool's return value."""

    result: object
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeArguments:
    """Run the call with these arguments instead, all of them. They are validated like the model's own."""

    arguments: JsonObject
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ReplaceResult:
    """Let the model read this instead of what the tool returned; the other is kept nowhere. `is_error` None: as it
    was."""

    result: object
    is_error: bool | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StopRun:
    """Stop the run on purpose: it ends as cancelled with this reason, everything that is open is closed."""

    reason: str


Decision: TypeAlias = ChangeRequest | Respond | Deny | Answer | ChangeArguments | ReplaceResult | StopRun
Occasion: TypeAlias = BeforeRound | AfterRound | BeforeTool | AfterTool | InterruptOpen | RunEnd | Untitled

DECISIONS: dict[str, tuple[type[Decision], ...]] = {
    BEFORE_ROUND: (ChangeRequest, Respond, StopRun),
    AFTER_ROUND: (StopRun,),
    BEFORE_TOOL: (Deny, Answer, ChangeArguments, StopRun),
    AFTER_TOOL: (ReplaceResult, StopRun),
    **dict.fromkeys(OUTSIDE, ()),
}
"""What a hook of each point may decide."""

_WORDS: dict[type[Decision], str] = {
    ChangeRequest: "change_request",
    Respond: "respond",
    Deny: "deny",
    Answer: "answer",
    ChangeArguments: "change_arguments",
    ReplaceResult: "replace_result",
    StopRun: "stop_run",
}


def decided(hook: Hook, decision: Decision, **where: Json) -> e.Custom:
    """The fact that a hook decided: `{hook, point, decision, reason?, round | tool_call_id, arguments? | changed?}`.

    `where` says at which round or call. Of a changed request only the names of what was changed are kept, of a
    replaced result nothing: it may be replaced because nobody is to see it.
    """
    value: JsonObject = {"hook": hook.name, "point": hook.point, "decision": _WORDS[type(decision)], **where}
    reason = decision.message if isinstance(decision, Deny) else decision.reason
    if reason:
        value["reason"] = clean_text(reason)
    if isinstance(decision, ChangeArguments):
        value["arguments"] = clean(decision.arguments)
    if isinstance(decision, ChangeRequest):
        items = ["items"] if decision.items is not None else []
        value["changed"] = [*items, *sorted(clean_text(name) for name in decision.options or {})]
    return e.Custom(FACT, value)


# --- making one ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hook:
    """A function that is asked at one point of the loop; made by the decorators, calling it calls the function."""

    point: str
    name: str
    function: Callable[[Any], object]
    is_async: bool

    def __call__(self, occasion: Occasion) -> Any:
        return self.function(occasion)


def before_round(
    function: Callable[
        [BeforeRound],
        Awaitable[ChangeRequest | Respond | StopRun | None] | ChangeRequest | Respond | StopRun | None,
    ],
) -> Hook:
    """Ask this function, sync or async, before each model call."""
    return _hook(BEFORE_ROUND, function)


def after_round(function: Callable[[AfterRound], Awaitable[StopRun | None] | StopRun | None]) -> Hook:
    """Ask this function, sync or async, when a round is committed, before its tools run."""
    return _hook(AFTER_ROUND, function)


def before_tool(
    function: Callable[
        [BeforeTool],
        Awaitable[Deny | Answer | ChangeArguments | StopRun | None] | Deny | Answer | ChangeArguments | StopRun | None,
    ],
) -> Hook:
    """Ask this function, sync or async, before a tool of the agent is called; see `gate` for its place there."""
    return _hook(BEFORE_TOOL, function)


def after_tool(
    function: Callable[[AfterTool], Awaitable[ReplaceResult | StopRun | None] | ReplaceResult | StopRun | None],
) -> Hook:
    """Ask this function, sync or async, when a tool has run, before the model reads its result."""
    return _hook(AFTER_TOOL, function)


def on_interrupt(function: Callable[[InterruptOpen], Awaitable[None] | None]) -> Hook:
    """Tell this function, sync or async, of everything that runs of the agent ask somebody outside."""
    return _hook(ON_INTERRUPT, function)


def on_run_end(function: Callable[[RunEnd], Awaitable[None] | None]) -> Hook:
    """Tell this function, sync or async, of the end of each run of the agent, however it ended."""
    return _hook(ON_RUN_END, function)


def session_title(function: Callable[[Untitled], Awaitable[str | None] | str | None]) -> Hook:
    """Ask this function, sync or async, for the title of a session at the end of each of its runs, until it has one;
    None if it knows none yet."""
    return _hook(SESSION_TITLE, function)


def delivers(agent_snapshot: JsonObject) -> bool:
    """Whether somebody outside is to be told of the runs of an agent with this snapshot."""
    return any(hook["point"] in OUTSIDE for hook in agent_snapshot.get("hooks", ()))


def hooks_by_point(hooks: Sequence[Hook]) -> dict[str, tuple[Hook, ...]]:
    """The hooks of each point, in order. Raises ConfigurationError for what is no hook."""
    for each in hooks:
        if not isinstance(each, Hook):  # pyright: ignore[reportUnnecessaryIsInstance]  an undecorated function
            points = ", ".join(f"@{point}" for point in DECISIONS)
            raise ConfigurationError(f"{each!r} is no hook: decorate it with one of {points}.")
    return {point: tuple(hook for hook in hooks if hook.point == point) for point in DECISIONS}


def _hook(point: str, function: Callable[[Any], object]) -> Hook:
    name = getattr(function, "__name__", type(function).__name__)
    return Hook(point, name, function, inspect.iscoroutinefunction(function))
