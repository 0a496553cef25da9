"""A provider on loopback that plays given bytes: what a server may do to a client, without a server's opinions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx2
import orjson
from openai import AsyncOpenAI

from runtime.canonical import JsonObject

EVENT_STREAM = "text/event-stream"


@dataclass(slots=True)
class Answer:
    """One answer: each piece of the body is an HTTP chunk of its own.

    `end` says what comes after the pieces: `close` ends the body properly, `cut` ends the connection within the
    body, `hang` leaves it open until the client goes away. `status` 0 answers nothing at all.
    """

    pieces: Sequence[bytes]
    status: int = 200
    content_type: str = EVENT_STREAM
    headers: dict[str, str] = field(default_factory=dict[str, str])
    end: str = "close"


class ProviderServer:
    """Plays its answer to every request and remembers what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[JsonObject] = []
        self.paths: list[str] = []
        self.connections = 0
        self.client_left = asyncio.Event()
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def client(self, http_client: httpx2.AsyncClient) -> AsyncOpenAI:
        """The SDK's real client, pointed here."""
        return AsyncOpenAI(api_key="sk-test-0123456789abcdef", base_url=self.base_url, http_client=http_client)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        self.connections += 1
        try:
            while await self._request(reader) and await self._play(reader, writer):
                pass
        except ConnectionError:
            self.client_left.set()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _request(self, reader: asyncio.StreamReader) -> bool:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return False
        first, *lines = head.split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.paths.append(first.split(" ")[1])
        self.requests.append(orjson.loads(body))
        return True

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        answer = self.answer
        if answer.status:
            headers = {"content-type": answer.content_type, "transfer-encoding": "chunked", **answer.headers}
            lines = [f"HTTP/1.1 {answer.status} Whatever", *(f"{name}: {value}" for name, value in headers.items())]
            writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
            for piece in answer.pieces:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        if answer.end == "hang" or not answer.status:
            await reader.read()
            self.client_left.set()
            return False
        if answer.end == "cut":
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@asynccontextmanager
async def playing(answer: Answer) -> AsyncGenerator[tuple[ProviderServer, AsyncOpenAI], None]:
    """A server with this answer, and a client of it."""
    provider = ProviderServer(answer)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.port = server.sockets[0].getsockname()[1]
    try:
        async with httpx2.AsyncClient(trust_env=False, verify=False) as http_client:
            yield provider, provider.client(http_client)
    finally:
        server.close()
        await server.wait_closed()
