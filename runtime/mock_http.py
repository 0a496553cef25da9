"""HTTP as the mock provider speaks it: one connection, its requests, and answers to the byte."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from runtime.canonical import Json

EVENT_STREAM = "text/event-stream"
JSON_TYPE = "application/json"

_SECRETS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})
_REDACTED = "[redacted]"


@dataclass(slots=True)
class HttpAnswer:
    """An answer to the byte: each piece of the body is an HTTP chunk of its own.

    `end` says what comes after the pieces: `close` ends the body properly, `cut` ends the connection within the
    body, `hang` leaves it open until the client goes away. `status` 0 answers nothing at all.
    """

    pieces: Sequence[bytes]
    status: int = 200
    content_type: str = EVENT_STREAM
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    end: str = "close"

    @classmethod
    def json(cls, body: Json, status: int = 200, *, retry_after_s: float | None = None) -> HttpAnswer:
        """A plain JSON answer."""
        headers: dict[str, str] = {}
        if retry_after_s is not None:
            headers = {"retry-after-ms": f"{retry_after_s * 1000:.0f}", "retry-after": str(math.ceil(retry_after_s))}
        return cls([orjson.dumps(body)], status, JSON_TYPE, headers)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as it came. Headers that hold secrets are redacted; `body` is None if it was no JSON."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json


class Connection:
    """One connection: request, answer, request. `over` is true when nothing more may be said on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.over = False
        self.begun = False
        """Whether the answer to the present request has begun."""
        self._reader = reader
        self._writer = writer

    async def request(self) -> Recorded | None:
        """The next request; None when the client sends no more."""
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.rstrip("\r\n").split("\r\n")
            named = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip() for name, _, value in named}
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        except asyncio.IncompleteReadError:
            return None
        self.begun = False
        method, path, *_ = first.split(" ")
        shown = {name: _REDACTED if name in _SECRETS else value for name, value in headers.items()}
        return Recorded(method, path, shown, _parsed(body))

    async def play(self, answer: HttpAnswer) -> bool:
        """Give this answer; False if the client had to go away first."""
        if answer.status:
            await self.begin(answer.status, answer.content_type, answer.headers)
            for piece in answer.pieces:
                await self.say(piece)
        if answer.end == "hang" or not answer.status:
            await self._reader.read()
            self.over = True
            return False
        await self.finish(cut=answer.end == "cut")
        return True

    async def begin(
        self, status: int = 200, content_type: str = EVENT_STREAM, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send the head of the answer, once."""
        if self.begun:
            return
        self.begun = True
        said = {"content-type": content_type, "transfer-encoding": "chunked", **(headers or {})}
        lines = [f"HTTP/1.1 {status} Mock", *(f"{name}: {value}" for name, value in said.items())]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        await self._writer.drain()

    async def say(self, piece: bytes) -> None:
        """Send a piece of the body."""
        if piece:
            self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self._writer.drain()

    async def finish(self, *, cut: bool = False) -> None:
        """End the body, or cut the connection within it."""
        if cut:
            self.over = True
        else:
            self._writer.write(b"0\r\n\r\n")
            await self._writer.drain()

    async def wait(self, event: asyncio.Event) -> bool:
        """Wait for the event; False if the client goes away before."""
        happens = asyncio.create_task(event.wait())
        leaves = asyncio.create_task(self._reader.read(1))
        try:
            await asyncio.wait({happens, leaves}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            happens.cancel()
            leaves.cancel()
            await asyncio.gather(happens, leaves, return_exceptions=True)
        self.over = not event.is_set()
        return event.is_set()

    async def close(self) -> None:
        """Let go of the connection. Raises ConnectionError if the client was quicker."""
        self._writer.close()
        await self._writer.wait_closed()


def _parsed(body: bytes) -> Json:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
