"""The endpoint that is checked, and what it answered: one request at a time, every byte kept."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from agui_check.findings import JsonObject, as_object, as_objects
from agui_check.sse import Stream, read_stream

SSE: Final = "text/event-stream"
PROTOBUF: Final = "application/vnd.ag-ui.event+proto"


class Unreachable(Exception):
    """There is nothing at the URL that could be checked; the message says why."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer, as far as it came.

    `cut` means that the connection broke off before the body's end, `late` that the end did not come in time;
    `idle_s` is how long the body stayed open behind its last bytes, in seconds.
    """

    asked: Any
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False
    late: bool = False
    idle_s: float = 0.0
    stream: Stream = field(default_factory=Stream)

    @property
    def media_type(self) -> str:
        """The media type of the answer, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream of AG-UI events."""
        return self.status == 200 and self.media_type == SSE

    @property
    def refused(self) -> bool:
        """Whether the request was refused before any stream, as the client's fault."""
        return 400 <= self.status < 500 and self.media_type != SSE

    @property
    def events(self) -> list[JsonObject]:
        """The events of the stream."""
        return self.stream.events

    @property
    def last(self) -> JsonObject:
        """The last event, or an empty object."""
        return self.events[-1] if self.events else {}

    @property
    def outcome(self) -> str:
        """`success`, `interrupt`, `cancelled`, `error`, or what else the run ended with."""
        if self.last.get("type") == "RUN_ERROR":
            return "error"
        if self.last.get("type") != "RUN_FINISHED":
            return "nothing"
        return str(as_object(self.last.get("outcome")).get("type", "success"))

    @property
    def interrupts(self) -> list[JsonObject]:
        """The interrupts that the run stopped for."""
        return as_objects(as_object(self.last.get("outcome")).get("interrupts"))

    @property
    def answer(self) -> str:
        """What happened, in a few words."""
        return f"a stream that ends as {self.outcome}" if self.streams else f"HTTP {self.status} {self.media_type}"

    def of(self, *types: str) -> list[JsonObject]:
        """The events of these types."""
        return [event for event in self.events if event["type"] in types]

    @property
    def text(self) -> str:
        """All text deltas joined."""
        return "".join(str(each.get("delta", "")) for each in self.of("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"))


class Target:
    """An AG-UI endpoint. `timeout` bounds each request in seconds."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise Unreachable(f"{url!r} is no http or https URL.")
        self.url = url
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.is_local = (parts.hostname or "") in ("127.0.0.1", "::1", "localhost")
        self._headers = dict(headers)
        self._timeout = timeout
        # Without TLS no certificates are needed, and reading them takes longer than many a probe.
        self._http = httpx2.AsyncClient(timeout=timeout, follow_redirects=False, verify=parts.scheme == "https")

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def post(
        self,
        body: Any,
        url: str | None = None,
        *,
        on_events: Callable[[Exchange], bool] | None = None,
        **headers: str,
    ) -> Exchange:
        """POST a document, or bytes as they are, and read the answer to its end.

        `on_events` sees the answer so far whenever more has come; once it answers true, the connection is dropped.
        Header names are given with underscores. Raises Unreachable if nobody listens.
        """
        content = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        sent = {"content-type": "application/json", "accept": SSE} | self._headers
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._exchange("POST", url or self.url, body, content, sent, on_events) as exchange:
            return exchange

    async def get(self, url: str, method: str = "GET", **headers: str) -> Exchange:
        """Another request without a body. Raises Unreachable if nobody listens."""
        sent = self._headers | {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._exchange(method, url, None, b"", sent, None) as exchange:
            return exchange

    @asynccontextmanager
    async def _exchange(
        self,
        method: str,
        url: str,
        asked: Any,
        content: bytes,
        headers: dict[str, str],
        on_events: Callable[[Exchange], bool] | None,
    ) -> AsyncGenerator[Exchange, None]:
        body, status, got = bytearray(), 0, dict[str, str]()
        cut = late = False
        last = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout):
                async with self._http.stream(method, url, content=content, headers=headers) as response:
                    status, got = response.status_code, dict(response.headers)
                    async for piece in response.aiter_bytes():
                        body += piece
                        last = time.monotonic()
                        if on_events is not None and on_events(_with_stream(Exchange(asked, status, got, bytes(body)))):
                            break
        except TimeoutError:
            late = True
        except httpx2.TransportError as error:
            if status == 0:
                raise Unreachable(f"{method} {url}: {error or type(error).__name__}") from error
            cut = True
        idle = time.monotonic() - last
        if status == 0:
            raise Unreachable(f"{method} {url}: no answer within {self._timeout:g} s.")
        yield _with_stream(Exchange(asked, status, got, bytes(body), cut, late, idle))


def _with_stream(exchange: Exchange) -> Exchange:
    return replace(exchange, stream=read_stream(exchange.body)) if exchange.streams else exchange
