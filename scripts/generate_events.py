"""docs/events.md: the journal's events. Fields and meanings come from `runtime.events`, the AG-UI side from the
projection's own code; what cannot be derived stands here in words, one entry an event.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from agui_bridge import projection
from agui_bridge.wire import events as agui
from runtime import events as e
from scripts.generate_markdown import NOTE, code, one_line, table

ROOT: Final = Path(__file__).resolve().parent.parent

INTAKE: Final = "agui_bridge/intake.py"
TOLD: Final = "agui_bridge/told.py"
SAMPLING: Final = "runtime/sampling.py"
ENGINE: Final = "runtime/engine.py"
MODEL_CALL: Final = "runtime/model_call.py"
EXECUTOR_CALL: Final = "runtime/executor_call.py"
PROMPT_MEDIA: Final = "runtime/prompt_media.py"
TOOLS: Final = "runtime/tool_runner.py"
HOOKS: Final = "runtime/hooks.py"
ENDING: Final = "runtime/ending.py"
BEGINNING: Final = "runtime/beginning.py"
SUPERVISOR: Final = "runtime/supervisor.py"
RECONCILER: Final = "runtime/reconciler.py"
LINE: Final = "runtime/line.py"
STEERING: Final = "runtime/steering.py"
STATE: Final = "runtime/state_delta.py"
CHILDREN: Final = "runtime/children.py"
CONTEXT: Final = "runtime/tools/context.py"
BESIDE: Final = "runtime/tool_facts.py"
INTERRUPTS: Final = "runtime/interrupts.py"
PAUSE: Final = "runtime/pause.py"
PROGRESS: Final = "runtime/tool_progress.py"

WRITERS: Final[dict[str, dict[str, str]]] = {
    "run.started": {BEGINNING: "first fact of every run", STEERING: "of a run whose messages another one takes in"},
    "run.completed": {
        ENGINE: "at the end",
        BEGINNING: "at once, when there is nothing to say",
        STEERING: "when another run took its messages in",
    },
    "run.failed": {ENGINE: "at the end", RECONCILER: "when the journal refused the run's facts"},
    "run.cancelling": {
        ENGINE: "when somebody or a hook asks for a stop, or a budget is used up",
        RECONCILER: "when nobody performs it any more",
    },
    "run.cancelled": {
        ENGINE: "at the end",
        RECONCILER: "when nobody performed it any more",
        SUPERVISOR: "when it was withdrawn while it waited",
    },
    "run.interrupted": {
        ENGINE: "at a shutdown",
        RECONCILER: "when its executor was lost, or its agent changed before another one could go on",
        LINE: "when it waited and cannot be performed any more",
    },
    "run.suspended": {
        ENGINE: "when calls wait for somebody outside",
        BEGINNING: "at once, when something is still asked and nothing can be done",
    },
    "round.started": {SAMPLING: "before the model is asked"},
    "round.completed": {SAMPLING: "when the stream ended with evidence"},
    "message.started": {SAMPLING: "before the first round"},
    "message.delta": {SAMPLING: "as the model speaks"},
    "message.completed": {
        TOLD: "what a user said, or a page answered too late",
        "agui_bridge/native_intake.py": "what a user said to the native API",
        CHILDREN: "what a child run is asked",
        SAMPLING: "what the model is told of an answer that does not fit the output type",
        ENDING: "the assistant's message, before the terminal event",
    },
    "reasoning.started": {SAMPLING: "as the model thinks"},
    "reasoning.delta": {SAMPLING: "as the model thinks"},
    "reasoning.completed": {SAMPLING: "when the thought ends"},
    "tool.call.started": {SAMPLING: "as the model writes a call"},
    "tool.call.delta": {SAMPLING: "as the model writes a call"},
    "tool.call.committed": {SAMPLING: "in the commit that completes the round"},
    "tool.execution.started": {TOOLS: "committed before the tool is called"},
    "tool.call.progress": {PROGRESS: "a tool that streams has yielded something, the latest so many times a second"},
    "tool.call.completed": {
        SAMPLING: "the tool returned, failed or was refused",
        TOLD: "the page answered, or a page showed a call without an answer",
        ENDING: "the run ended before there was a result",
        PAUSE: "the user went another way before anybody said that it may run",
    },
    "executor.remembered": {EXECUTOR_CALL: "an executor wants to know something when it is performed again"},
    "tool.call.recorded": {BESIDE: "the call did something that it must not do again (`ctx.once`)"},
    "state.snapshot": {INTAKE: "the client's state", STATE: "a tool's change, where that is shorter than a delta"},
    "state.delta": {STATE: "a tool's change"},
    "activity.snapshot": {
        CONTEXT: "a tool shows something, or what it shows is best told as a whole",
        EXECUTOR_CALL: "an executor shows something",
    },
    "activity.delta": {CONTEXT: "a tool changes what it shows"},
    "artifact.created": {
        BESIDE: "a tool made something, once its bytes are stored",
        EXECUTOR_CALL: "an executor made something, once its bytes are stored",
    },
    "custom": {
        MODEL_CALL: "`agui-bridge.model_retry`, when an attempt failed, before the next one is waited for",
        PROMPT_MEDIA: "`agui-bridge.media_left_out`, before the round that was asked without them",
        HOOKS: "`agui-bridge.hook`, when a hook decided something",
        CONTEXT: "what a tool tells of its own",
        EXECUTOR_CALL: "what an executor tells of its own",
    },
    "child.started": {CHILDREN: "a tool hands work on; committed before the child begins"},
    "child.completed": {CHILDREN: "the child is over", ENDING: "told by whoever closes a lost parent"},
    "child.failed": {CHILDREN: "the child is over, or could not begin", ENDING: "told by whoever closes a lost parent"},
    "child.cancelled": {CHILDREN: "the child is over", ENDING: "told by whoever closes a lost parent"},
    "child.interrupted": {CHILDREN: "the child is over", ENDING: "the parent is lost, and the child with it"},
    "child.suspended": {CHILDREN: "the child is over, and waits", ENDING: "told by whoever closes a lost parent"},
    "interrupt.raised": {INTERRUPTS: "in the commit that suspends the run"},
    "interrupt.answered": {
        INTERRUPTS: "first fact of the run that goes on with the answer; or it is closed by itself, when its time is "
        "over, its call is left behind or its run is stopped",
    },
    "history.seeded": {
        TOLD: "a history that this server did not know",
        INTAKE: "single messages that it did not know",
    },
    "history.forked": {INTAKE: "the page shows another history"},
}
"""Which module writes the event, and when."""

SHOWN: Final[dict[str, str]] = {
    "run.started": "The ids are the request's own. Behind it stands what the page lacks: one MESSAGES_SNAPSHOT or two, "
    "and a STATE_SNAPSHOT when the page believes in another state.",
    "run.completed": "What is open is closed. If calls told of their progress, a MESSAGES_SNAPSHOT that lets go of it. "
    "Then the outcome `success`, with `pendingToolCallIds`, `usage` and `result`.",
    "run.failed": "What is open is closed. If a call was cut, a MESSAGES_SNAPSHOT without it, and a STATE_SNAPSHOT "
    "without what it predicted. Then the code and the message; RUN_FINISHED before it, if the request "
    "answered interrupts.",
    "run.cancelling": "Nothing: the end shows it.",
    "run.cancelled": "What is open is closed. If a call was cut, a MESSAGES_SNAPSHOT without it, and a STATE_SNAPSHOT "
    "without what it predicted. Then the outcome `cancelled`.",
    "run.interrupted": "What is open is closed. If a call was cut, a MESSAGES_SNAPSHOT without it, and a "
    "STATE_SNAPSHOT without what it predicted. Then the code `run_interrupted`; RUN_FINISHED before it, if the request "
    "answered interrupts.",
    "run.suspended": "What is open is closed; then the state and the messages as snapshots, and the outcome "
    "`interrupt` with all that is asked.",
    "round.started": "The step `round-N`.",
    "round.completed": "Text is closed and told what it was (`agui-bridge:role`); `agui-bridge:round` repeats it for "
    "all messages of the round.",
    "message.started": "Nothing: a message without text is not shown.",
    "message.delta": "The first one of a round opens the round's message.",
    "message.completed": "A user's message that steers the run: a MESSAGES_SNAPSHOT. The run's own was streamed, and "
    "what came with the request is the page's.",
    "reasoning.started": "Nothing: a thought without text is not shown.",
    "reasoning.delta": "The first one opens the thought.",
    "reasoning.completed": "The thought is closed, with its signature or encrypted value.",
    "tool.call.started": "Text before it is closed as a working message: with a call the round cannot be final. What "
    "the call will make of the state is told before it, as CUSTOM `PredictState`.",
    "tool.call.delta": "The arguments, as written.",
    "tool.call.committed": "Only now the call is closed. A page that runs its own tools at TOOL_CALL_END never runs a "
    "call that was not committed.",
    "tool.execution.started": "Nothing.",
    "tool.call.progress": "An activity of the type `agui-bridge.progress`, until the call has its output: then it is "
    "told as settled, and it goes at the end of the run.",
    "tool.call.completed": "The result. Nothing for `client` and `unanswered`: the page has its own answer, or gave "
    "none. A STATE_SNAPSHOT before it, if something did not become of the state that was predicted.",
    "executor.remembered": "Nothing.",
    "tool.call.recorded": "Nothing.",
    "state.snapshot": "The state, when an agent wrote it. Nothing for the client's own.",
    "state.delta": "The same operations; to a client before 1.0 the first change of a run is told as the whole state.",
    "activity.snapshot": "The activity, under an id that begins with `activity-`. Snapshots of messages have it, too.",
    "activity.delta": "The same operations.",
    "artifact.created": "An activity of the type `agui-bridge.artifact`, whose `url` is signed anew each time it is "
    "told.",
    "custom": "Name and value as they are.",
    "child.started": "The child is announced. Whatever it says carries `subagentRunId`, steps and rounds too; its "
    "state is its own and not shown.",
    "child.completed": "What the child left open is closed; `result` is its value, if it owed one.",
    "child.failed": "What the child left open is closed, then its code and message. The run goes on.",
    "child.cancelled": "What the child left open is closed, then the code `run_cancelled`.",
    "child.interrupted": "What the child left open is closed, then the code `run_interrupted`.",
    "child.suspended": "What the child left open is closed, then the outcome `suspended` with the ids of what it asks.",
    "interrupt.raised": "Nothing of its own: it is in the outcome.",
    "interrupt.answered": "Nothing: what comes of it shows.",
    "history.seeded": "Nothing: it shows in snapshots.",
    "history.forked": "Nothing: it shows in snapshots.",
}
"""What a page sees of the event."""

SINCE: Final[dict[str, int]] = dict.fromkeys(e.EVENT_TYPES, 1)
"""The schema version that brought the event."""

CLOSING: Final = "the end of whatever is open"
"""What stands for the events that close text, reasoning, calls and step before a terminal event."""

_TYPES: Final = {
    "str": "text",
    "int": "integer",
    "bool": "true or false",
    "Json": "any JSON",
    "JsonObject": "object",
    "list[str]": "list of texts",
    "list[JsonObject]": "list of objects",
    "bytes": "JSON bytes",
    "Event": "the payload as a value",
}

_READERS: Final = frozenset(
    {"runtime/events.py", "runtime/testing.py", "agui_bridge/desk.py", "runtime/entries.py", "runtime/deliveries.py"}
)
"""Modules that build events and write none: the desk's answer to a request that keeps nothing is not journaled, and a
thread's call says again how it was committed."""

_MAKERS: Final = {"output_of": "ToolCallCompleted"}
"""Functions that make an event for whoever calls them."""


def page(_: str) -> str:
    """The page."""
    return "\n".join([NOTE, "", *_head(), *[line for cls in e.EVENT_TYPES.values() for line in _event(cls)], *_tail()])


# --- what the code says -------------------------------------------------------------------------------------------


def projected(cls: type[e.Event]) -> list[str]:
    """The types of AG-UI events that the projection's handler of this event can make, in the order of its code."""
    handler = projection._HANDLERS.get(cls)
    return list(dict.fromkeys(_made_by(handler.__name__, frozenset()))) if handler is not None else []


def _made_by(method: str, above: frozenset[str]) -> Iterator[str]:
    if method == "_close_all":
        yield CLOSING
        return
    if method in above:
        return
    for node in ast.walk(_methods()[method]):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner, name = node.func.value, node.func.attr
        if not isinstance(owner, ast.Name):
            continue
        if owner.id == "agui" and (getattr(agui, name).__doc__ or "").startswith(name.upper()):
            yield name.upper()
        elif owner.id == "self" and name in _methods():
            yield from _made_by(name, above | {method})


@cache
def _methods() -> dict[str, ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(projection))
    projector = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Projector")
    return {node.name: node for node in projector.body if isinstance(node, ast.FunctionDef)}


def writers() -> dict[str, set[str]]:
    """For each event the modules that construct it."""
    names = {cls.__name__: event_type for event_type, cls in e.EVENT_TYPES.items()}
    found: dict[str, set[str]] = {event_type: set() for event_type in names.values()}
    for package in ("runtime", "agui_bridge"):
        for path in sorted((ROOT / package).rglob("*.py")):
            module = path.relative_to(ROOT).as_posix()
            if module not in _READERS:
                for name in _constructed(ast.parse(path.read_text("utf-8"))):
                    if name in names:
                        found[names[name]].add(module)
    return found


def _constructed(tree: ast.Module) -> Iterator[str]:
    """Names of `runtime.events` that are called, or chosen between to be called."""
    imported: set[str] = set()
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "runtime.events":
            imported |= {alias.asname or alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module == "runtime":
            modules |= {alias.asname or alias.name for alias in node.names if alias.name == "events"}
    for node in ast.walk(tree):
        called: list[ast.expr] = []
        if isinstance(node, ast.Call):
            called = [node.func]
        elif isinstance(node, ast.IfExp):
            called = [node.body, node.orelse]
        for each in called:
            if isinstance(each, ast.Name) and (each.id in imported or each.id in _MAKERS):
                yield _MAKERS.get(each.id, each.id)
            if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id in modules:
                yield _MAKERS.get(each.attr, each.attr)


# --- what the page says -------------------------------------------------------------------------------------------


def _head() -> list[str]:
    return [
        "# Journal events",
        "",
        "Every fact that a run leaves behind is one of these events. They are what a store keeps, what "
        "`GET /api/agent-runs/{run_id}/events`",
        "shows, and what AG-UI events are made from. Their definition is `runtime/events.py`.",
        "",
        f"- Schema version: {e.SCHEMA_VERSION}. The schema grows by addition: a later release may add events and "
        "optional fields, and never",
        "  renames, removes or changes one. A reader ignores types and fields that it does not know.",
        "- Optional fields without a value are left out of the payload, never null.",
        f"- Deltas ({_listed(e.DELTAS)}) are provisional: they may be shown, they never enter history.",
        "- Commit points are `tool.call.committed` and `round.completed`: what they name enters history.",
        f"- Exactly one terminal event ends a run: {_listed(e.TERMINAL)}.",
        "",
        table(
            ("event", "AG-UI events that the projection can make of it"),
            [(f"[{code(name)}](#{_anchor(name)})", _becomes(cls)) for name, cls in e.EVENT_TYPES.items()],
        ),
        "",
    ]


def _event(cls: type[e.Event]) -> list[str]:
    name = cls.event_type
    written = "; ".join(f"`{module}` ({when})" for module, when in WRITERS[name].items())
    return [
        f"## {name}",
        "",
        *_paragraphs(cls),
        table(("field", "type", "optional"), _fields(cls)),
        "",
        f"- Written by: {written}.",
        f"- A page sees: {SHOWN[name]}",
        f"- Since schema version {SINCE[name]}.",
        "",
    ]


def _paragraphs(cls: type[Any]) -> list[str]:
    lines: list[str] = []
    for paragraph in inspect.cleandoc(cls.__doc__ or "").split("\n\n"):
        lines += [one_line(paragraph), ""]
    return lines


def _fields(cls: type[Any]) -> list[tuple[str, str, str]]:
    return [_field(parameter) for parameter in inspect.signature(cls).parameters.values()]


def _field(parameter: inspect.Parameter) -> tuple[str, str, str]:
    annotation = parameter.annotation
    kind = str(getattr(annotation, "__forward_arg__", annotation)).removesuffix(" | None")
    optional = "no"
    if parameter.default is None:
        optional = "yes"
    elif parameter.default is not inspect.Parameter.empty:
        optional = f"no; {code(str(parameter.default).lower())} where nothing is said"
    return code(parameter.name), _TYPES[kind], optional


def _tail() -> list[str]:
    kinds = [(code(kind), meaning) for kind, meaning in e.OUTPUT_KINDS.items()]
    return [
        "## Kinds of tool output",
        "",
        "Every committed call gets exactly one output. `kind` of `tool.call.completed` says how it came about.",
        "",
        table(("kind", "meaning"), kinds),
        "",
        "## The envelope",
        "",
        "What a store keeps beside each payload.",
        "",
        *_paragraphs(e.Record),
        table(("field", "type", "optional"), _fields(e.Record)),
        "",
    ]


def _becomes(cls: type[e.Event]) -> str:
    return ", ".join(projected(cls)) or "none"


def _anchor(name: str) -> str:
    return name.replace(".", "")


def _listed(classes: frozenset[type[e.Event]]) -> str:
    return ", ".join(code(name) for name, cls in e.EVENT_TYPES.items() if cls in classes)
