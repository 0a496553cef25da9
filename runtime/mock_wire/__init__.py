"""What the mock provider writes: sampling events in the wire format of the API that was asked.

Pure; the opposite of `dialects`, for tests. Each API has a file of its own.
"""

from __future__ import annotations

from typing import Protocol

from runtime.canonical import JsonObject
from runtime.errors import ProviderError
from runtime.mock_wire.chat import ChatWriter
from runtime.mock_wire.messages import MessagesWriter
from runtime.mock_wire.responses import ResponsesWriter
from runtime.samples import Completed, Sample


class Writer(Protocol):
    """Writes one response. `end` is how it will end, if it will, `number` counts the responses of this server."""

    def __init__(self, model: str, number: int, end: Completed | None) -> None: ...

    def feed(self, sample: Sample) -> bytes:
        """The events that say this. Raises ValueError for what this API has no words for."""
        ...

    @classmethod
    def failure(cls, error: ProviderError) -> tuple[int, JsonObject]:
        """The status and the body of an answer that fails from its start."""
        ...

    @classmethod
    def broken(cls, error: ProviderError) -> bytes:
        """The event of a stream that fails on its way."""
        ...


APIS: dict[str, type[Writer]] = {
    "/chat/completions": ChatWriter,
    "/responses": ResponsesWriter,
    "/messages": MessagesWriter,
}
"""By the end of the path that is asked."""


def api_of(path: str) -> type[Writer] | None:
    """The API behind a path, whatever the client's base URL puts before it."""
    place = path.partition("?")[0].rstrip("/")
    return next((writer for end, writer in APIS.items() if place.endswith(end)), None)
