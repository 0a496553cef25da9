"""What stands in the place of a model where an executor performs the runs: it is shown, and never asked. Pure."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass, field

from runtime.canonical import JsonObject
from runtime.dialects import Decoder, Dialect
from runtime.items import Item, ToolSpec


@dataclass(slots=True)
class NoDialect:
    """The dialect of nobody. What an executor makes of media is its own business: all of them reach it."""

    name: str = "none"

    def takes(self, part: JsonObject, *, in_output: bool) -> bool:
        """See the port."""
        return True

    def encode(self, items: Sequence[Item], tools: Sequence[ToolSpec], options: JsonObject) -> JsonObject:
        """Nobody asks for a request."""
        raise AssertionError("an executor is given no request")

    def decoder(self, declared: Collection[str]) -> Decoder:
        """Nobody asks for a response."""
        raise AssertionError("an executor has no response to be read")


@dataclass(slots=True)
class NoModel:
    """The `Model` of an agent that an executor performs."""

    name: str
    provider: str
    dialect: Dialect = field(default_factory=NoDialect)

    def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Nobody asks it."""
        raise AssertionError("an agent with an executor has no model to ask")
