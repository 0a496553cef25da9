"""What an executor knows of its run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.canonical import Json, JsonObject
from runtime.interrupts import RESOLVED
from runtime.items import FunctionCallOutput, Item, Message, ToolSpec, text_of
from runtime.run import RunRecord
from runtime.shared_state import SharedState
from runtime.tools.context import Flag


@dataclass(frozen=True, slots=True)
class Answered:
    """What somebody said to an interrupt: `resolved` with a `payload`, or `cancelled`."""

    status: str
    payload: Json = None

    @property
    def is_resolved(self) -> bool:
        """Whether there is an answer."""
        return self.status == RESOLVED


@dataclass(frozen=True, slots=True)
class RunContext:
    """One round of a run.

    `items` is the history that a model would be shown, `round` counts from 1. `tools` are the agent's and the page's,
    `client_tools` the names of those that the page performs. `answers` are those to the interrupts that were raised
    since the user last said something, by their keys. `remembered` is what it has told last as `Remember` on this
    branch of the history, and `news` what has come since: messages of users by their ids, and outputs of calls that it
    made and did not perform itself. `open_calls` are the ids that it gave to calls of its own to which it has told no
    result yet. `context` is what the page tells of itself (`{description, value}`); `forwarded_props`, `deps` and
    `principal` are as in `ToolContext`.
    """

    run: RunRecord
    round: int
    items: Sequence[Item]
    shared_state: SharedState
    answers: Mapping[str, Answered]
    remembered: Json
    news: Sequence[tuple[str, Message | FunctionCallOutput]]
    open_calls: Collection[str]
    tools: Sequence[ToolSpec]
    client_tools: frozenset[str]
    context: Sequence[JsonObject]
    forwarded_props: Json
    principal: Any
    deps: Any
    stopped: Flag

    @property
    def state(self) -> Any:
        """The shared state, which may be changed in place: a dict or list, or a value of the agent's `state_type`.

        What was made of it is committed with the next word that is no piece of a text or of a call, and at the end.
        Raises StateMisfit if the state does not fit the type.
        """
        return self.shared_state.value

    @property
    def prompt(self) -> str:
        """The text of the user's last message."""
        said = (item for item in reversed(self.items) if isinstance(item, Message) and item.role == "user")
        last = next(said, None)
        return "" if last is None else text_of(last.content)

    @property
    def cancelled(self) -> bool:
        """Whether the run is being stopped."""
        return self.stopped.is_set()
