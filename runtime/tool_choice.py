"""Whether the model has to call a tool, as whoever asked for a run wants it. Pure.

It holds for the first answer to a user alone: who is forced to call a tool again and again never comes to an end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from runtime.canonical import JsonObject
from runtime.items import Item, Message

OPTION: Final = "choose_tool"
"""The option of our own by which every dialect is told: `{"name": str}`, or `{"any": bool}`."""


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The tool that is to be called; without a name any (`any`), or none at all."""

    name: str | None = None
    any: bool = False

    def as_payload(self) -> JsonObject:
        """As JSON, and as the option of a request."""
        return {"any": self.any} if self.name is None else {"name": self.name}


def choice_of(payload: JsonObject | None) -> ToolChoice | None:
    """The choice in a payload. Raises TypeError for one that is none."""
    return None if payload is None else ToolChoice(**payload)


def options_for(choice: ToolChoice | None, items: Sequence[Item], declared: Collection[str]) -> JsonObject:
    """The options of a request with this history and these tools: nothing, if a user does not wait for its answer, or
    if there is no such tool."""
    last = items[-1] if items else None
    asked = isinstance(last, Message) and last.role == "user"
    if choice is None or not asked or (choice.name is not None and choice.name not in declared):
        return {}
    return {OPTION: choice.as_payload()}
