"""Parts: what the one assistant message of a run is made of, and where each begins and ends.

A part is a piece of one kind (text, reasoning, refusal, tool call) from one round; it ends when the kind or the round
changes. Text and reasoning follow one another; tool calls may be written at the same time, each is a part of its own.
Pure: `PartStream` numbers parts and says their boundaries, it keeps no text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from runtime.canonical import JsonObject

TEXT = "text"
REASONING = "reasoning"
REFUSAL = "refusal"
TOOL_CALL = "tool_call"


@dataclass(slots=True)
class Part:
    """A part as far as it is known: `pieces` are its deltas (or its whole text once the message is complete)."""

    part_id: str
    kind: str
    round: int
    index: int
    pieces: list[str] = field(default_factory=list[str])
    committed: bool = False
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """The text so far."""
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def as_payload(self) -> JsonObject:
        """`{part_id, kind, round, committed, text | tool_call_id}`, as `message.completed` stores it."""
        said = {"tool_call_id": self.tool_call_id} if self.kind == TOOL_CALL else {"text": self.text}
        return {"part_id": self.part_id, "kind": self.kind, "round": self.round, "committed": self.committed, **said}


@dataclass(frozen=True, slots=True)
class PartStarted:
    """A part begins at `index` of the message's content."""

    part_id: str
    kind: str
    round: int
    index: int


@dataclass(frozen=True, slots=True)
class PartDelta:
    """The next piece of an open part."""

    part_id: str
    kind: str
    index: int
    delta: str


@dataclass(frozen=True, slots=True)
class PartFinished:
    """A part is over."""

    part_id: str
    kind: str
    index: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The message is over; nothing follows."""


Boundary: TypeAlias = PartStarted | PartDelta | PartFinished | Finished


class PartStream:
    """Says for each piece of a message what begins and ends with it."""

    def __init__(self, count: int = 0) -> None:
        """`count` is how many parts the message has already."""
        self._count = count
        self._flowing: PartStarted | None = None
        self._calls: dict[str, PartStarted] = {}

    @property
    def flowing(self) -> PartStarted | None:
        """The text-like part that is open."""
        return self._flowing

    def append(self, kind: str, round_: int, delta: str) -> list[Boundary]:
        """A piece of text, reasoning or refusal. Ends the part before it if kind or round differ."""
        part = self._flowing
        if part is not None and part.kind == kind and part.round == round_:
            return [PartDelta(part.part_id, kind, part.index, delta)]
        ended = self.end()
        part = self._flowing = self._start(kind, round_)
        return [*ended, part, PartDelta(part.part_id, kind, part.index, delta)]

    def whole(self, kind: str, round_: int) -> list[Boundary]:
        """A part that begins and ends without a piece (redacted reasoning)."""
        ended = self.end()
        part = self._start(kind, round_)
        return [*ended, part, PartFinished(part.part_id, kind, part.index)]

    def call(self, key: str, round_: int, delta: str) -> list[Boundary]:
        """A piece of the tool call `key`. Text before a call ends; other calls stay open."""
        part = self._calls.get(key)
        if part is not None:
            return [PartDelta(part.part_id, TOOL_CALL, part.index, delta)]
        ended = self.end()
        part = self._calls[key] = self._start(TOOL_CALL, round_)
        return [*ended, part, PartDelta(part.part_id, TOOL_CALL, part.index, delta)]

    def end(self) -> list[Boundary]:
        """End the open text-like part, if there is one."""
        part, self._flowing = self._flowing, None
        return [PartFinished(part.part_id, part.kind, part.index)] if part else []

    def end_calls(self) -> list[Boundary]:
        """End all open tool calls, in the order in which they began."""
        calls, self._calls = self._calls, {}
        return [PartFinished(part.part_id, TOOL_CALL, part.index) for part in calls.values()]

    def finish(self) -> list[Boundary]:
        """End everything, and the message."""
        return [*self.end(), *self.end_calls(), Finished()]

    def _start(self, kind: str, round_: int) -> PartStarted:
        part = PartStarted(f"p{self._count}", kind, round_, self._count)
        self._count += 1
        return part
