"""The words of executors: all that one can say. Pure values.

| word | becomes |
|---|---|
| `Text`, `Reasoning`, `ToolCallDelta` | provisional events of the open round; the first of them opens it |
| `ToolCall` | the call is complete; it is committed with its round |
| `MessageDone` | the round's commit |
| `ToolResult` | the output of a call, which commits the round that made it |
| `State` | `state.delta` or `state.snapshot`, whichever is smaller |
| `Activity`, `Custom`, `Artifact` | `activity.*`, `custom`, `artifact.created` |
| `Remember` | `executor.remembered`, which nobody but the executor is told of |
| `Interrupt` | `interrupt.raised`, with the `run.suspended` that ends the run |
| `Done` | the round's commit, and `run.completed` |
| `Failed` | `run.failed`; the open round is not committed |

Texts and calls are provisional until their round is committed, as they are with a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from runtime.canonical import Json, JsonObject
from runtime.interrupts import INPUT


@dataclass(slots=True)
class Text:
    """A piece of text; a plain `str` says the same."""

    delta: str


@dataclass(slots=True)
class Reasoning:
    """A piece of what it thinks."""

    delta: str


@dataclass(slots=True)
class ToolCallDelta:
    """A piece of the arguments of a call that is still being written; `call_id` names it, `ToolCall` completes it."""

    call_id: str
    tool_name: str
    delta: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call. `arguments` is an object, or its JSON text as somebody wrote it.

    A tool of the agent's is run by the engine, one of the page's by the page; any other call is the executor's own,
    which tells its output as `ToolResult` under the same `call_id`.
    """

    tool_name: str
    arguments: JsonObject | str
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The output of a call: text, content parts or any other JSON."""

    call_id: str
    output: Json
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class MessageDone:
    """All that was said since the last one is complete.

    `usage` are counts by the names of `samples.USAGE_COUNTS`, `model` is who counted. Whether a text without calls was
    the answer is known when something else is said, or nothing more; with `final` it is known, and committed, at once.
    """

    usage: JsonObject | None = None
    model: str | None = None
    final: bool | None = None


@dataclass(frozen=True, slots=True)
class State:
    """The shared state, as it is now."""

    value: Any


@dataclass(frozen=True, slots=True)
class Activity:
    """Something to be shown beside the messages; said again under its id it changes."""

    activity_id: str
    activity_type: str
    content: JsonObject


@dataclass(frozen=True, slots=True)
class Custom:
    """Something of its own for the page. The name is best given a prefix."""

    name: str
    value: Json


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something to be fetched."""

    name: str
    media_type: str
    content: str | bytes


@dataclass(frozen=True, slots=True)
class Remember:
    """Something to be found again as `RunContext.remembered`, JSON; what was said before it is no news any more."""

    value: Json


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A question to somebody outside. The run ends as suspended; when it was answered the executor is performed anew,
    with the answer under this `key` in `RunContext.answers`. The other members are those of `ToolContext.interrupt`.
    """

    key: str
    message: str | None = None
    response_schema: JsonObject | None = None
    reason: str = INPUT
    expires_in: float | None = None
    metadata: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The run is done; nothing behind it is heard. `result` is its value, if it has one."""

    result: Json = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The run has failed; nothing behind it is heard. The page reads `message`; `code` is for machines."""

    message: str
    code: str = "agent_failed"


Word: TypeAlias = (
    Text
    | Reasoning
    | ToolCallDelta
    | ToolCall
    | ToolResult
    | MessageDone
    | State
    | Activity
    | Custom
    | Artifact
    | Remember
    | Interrupt
    | Done
    | Failed
)
