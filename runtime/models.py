"""The model port: a name, a dialect, and a stream of raw chunks.

A model waits (it talks to a provider); what it says is turned into sampling events by its dialect, which does not.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from typing import Protocol, runtime_checkable

from runtime.canonical import JsonObject
from runtime.dialects import Dialect


class Model(Protocol):
    """Anything that can answer a request in one of our dialects."""

    name: str
    """What the provider calls the model."""
    provider: str
    """Who issues signatures and counts tokens (`openai`, `anthropic`, …)."""

    @property
    def dialect(self) -> Dialect:
        """How its requests and chunks are to be read."""
        ...

    def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """One attempt: the response's chunks as dicts, `dialects.DONE` for `[DONE]`.

        Raises ProviderError, classified (`code`, `retryable`, `retry_after_s`); never retries by itself.
        Closing the generator ends the request.
        """
        ...


@runtime_checkable
class Offering(Protocol):
    """A model that says how it is best asked for a value of a type: `output_mode` is `native` or `tool`."""

    output_mode: str


@runtime_checkable
class Thinking(Protocol):
    """A model that knows of itself whether it shows what it thinks. Of others only their answers tell."""

    shows_reasoning: bool


@runtime_checkable
class Receiving(Protocol):
    """A model that knows which kinds of media it takes (`image`, `audio`, `video`, `document`); None: whatever its
    format has a place for. Documents that are text reach every model, as text."""

    input_media: Collection[str] | None


@runtime_checkable
class Closable(Protocol):
    """A model that holds connections. Whoever made it closes it."""

    async def aclose(self) -> None:
        """Let go of the connections that are the model's own, while no stream is open. It may be used again."""
        ...
