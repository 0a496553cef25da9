"""What a dialect is: one provider's wire format, to and from our own words.

Pure: dicts in, sampling events out; items in, a request dict out. No SDK, no IO, no clock. Nothing above this package
knows which provider speaks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from runtime.canonical import JsonObject
from runtime.items import Item, ToolSpec
from runtime.samples import Sample

DONE: JsonObject = {"[DONE]": True}
"""The chunk that stands for an SSE `data: [DONE]` line."""


class Decoder(Protocol):
    """Turns the chunks of one response into sampling events."""

    @property
    def usage(self) -> JsonObject | None:
        """What the provider has counted so far, as `Completed.usage` has it; None if it said nothing.

        A response that fails or is broken off has cost something, too.
        """
        ...

    @property
    def model(self) -> str | None:
        """What the provider calls the model that answers, as soon as it said so."""
        ...

    def feed(self, chunk: JsonObject) -> list[Sample]:
        """What this chunk says. Raises ProviderError for an error inside the stream, ProtocolError for nonsense."""
        ...

    def finish(self) -> list[Sample]:
        """What was held back until the end of the stream. Raises ProtocolError without terminal evidence."""
        ...


class Dialect(Protocol):
    """One provider's wire format."""

    name: str

    def takes(self, part: JsonObject, *, in_output: bool) -> bool:
        """Whether a request has a place for this media part in what a user says, or in a call's output. Its source is
        `data`, `url` or `file`; what its bytes are does not matter."""
        ...

    def encode(self, items: Sequence[Item], tools: Sequence[ToolSpec], options: JsonObject) -> JsonObject:
        """The request for this history. `options` are `model`, `instructions` and the provider's own settings."""
        ...

    def decoder(self, declared: Collection[str]) -> Decoder:
        """A fresh decoder for one response to a request that declared these tool names."""
        ...
