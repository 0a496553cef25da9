"""A finding: what is wrong, which requirement it offends, and how badly. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, cast

JsonObject: TypeAlias = dict[str, Any]
"""An object of decoded JSON."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one requirement.

    `event` counts the stream's events from 1. `fatal` findings make a conforming client refuse the stream; a `remark`
    is legal and yet worth knowing; a `departure` is the very thing that agui-bridge states that it does otherwise.
    """

    requirement: str
    message: str
    event: int | None = None
    fatal: bool = False
    remark: bool = False
    departure: bool = False

    def __str__(self) -> str:
        where = "" if self.event is None else f"event {self.event}: "
        return f"{self.requirement} {where}{self.message}"


def as_object(value: Any) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[JsonObject]:
    """The objects of a list; of anything else none."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [as_object(each) for each in items if isinstance(each, dict)]


def shown(value: object, most: int = 60) -> str:
    """A value in a sentence: its beginning, on one line."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"
