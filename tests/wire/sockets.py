"""A client that is a bare socket: it sends what no HTTP library would, and sees every byte that comes back."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import orjson

PATIENCE_S = 10


class Wire:
    """One open connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.seen = b""

    async def send(self, *pieces: bytes) -> None:
        """Send, piece by piece."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()

    async def until(self, mark: bytes, times: int = 1) -> bytes:
        """Read until `mark` has come so often; everything so far."""
        async with asyncio.timeout(PATIENCE_S):
            while self.seen.count(mark) < times:
                piece = await self._reader.read(65536)
                assert piece, f"the connection ended before {mark!r}: {self.seen!r}"
                self.seen += piece
        return self.seen

    async def rest(self) -> bytes:
        """Read until the server closes; everything."""
        async with asyncio.timeout(PATIENCE_S):
            while piece := await self._reader.read(65536):
                self.seen += piece
        return self.seen

    def reset(self) -> None:
        """Go away without a word (RST)."""
        raw: socket.socket = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


@asynccontextmanager
async def wire(url: str) -> AsyncGenerator[Wire, None]:
    """A connection to the server at `url`."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


def post(body: object, path: str = "/", version: str = "1.1", **headers: str) -> bytes:
    """A whole POST request; the connection is to be closed behind it unless `connection` says otherwise."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    given = {"host": "127.0.0.1", "content-type": "application/json", "connection": "close"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    if "transfer-encoding" not in given:
        given.setdefault("content-length", str(len(content)))
    lines = [f"POST {path} HTTP/{version}", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    return "\r\n".join(lines).encode() + content


def unchunked(answer: bytes) -> bytes:
    """The body of an answer in chunks. Fails if it does not end with the terminating chunk."""
    body = answer.partition(b"\r\n\r\n")[2]
    pieces: list[bytes] = []
    while True:
        size, _, body = body.partition(b"\r\n")
        assert size, "the body was cut off"
        if size == b"0":
            return b"".join(pieces)
        pieces.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]


async def eventually(condition: Callable[[], bool], what: str = "the condition") -> None:
    """Let the loop run until `condition()` holds, for a bounded time."""
    for _ in range(PATIENCE_S * 200):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{what} never came")
