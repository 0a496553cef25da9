"""Committed, then sent: over a real socket no byte of a fact leaves before its commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from agui_bridge.demo import demo_agent
from runtime.errors import StoreError
from runtime.journal.memory import MemoryJournal
from runtime.journal.sqlite import SqliteJournal
from runtime.journal.store import Store
from tests.journals import Held, HeldJournal
from tests.serving import Served, ask, serving
from tests.words import script

SCRIPT = script(
    {
        "reasoning": "pondering ",
        "text": "alpha beta gamma ",
        "tool_calls": [{"name": "get_time", "arguments": {"tz": "oslo"}}],
    },
    {"text": "delta epsilon"},
)


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> HeldJournal:
    inner: Store = (
        MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "s.db", synchronous="normal")
    )
    return HeldJournal(inner)


class Socket:
    """A request on a bare socket: every byte of the answer, as it comes."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.received = b""

    async def nothing(self, served: Served) -> bool:
        """Whether nothing more has come, after the server had every chance to send it."""
        for _ in range(3):
            await served.get("/health")
        try:
            async with asyncio.timeout(0.01):
                self.received += await self._reader.readexactly(1)
        except TimeoutError:
            return True
        return False

    async def until(self, words: bytes) -> bytes:
        """Read until these words have come; returns everything so far."""
        async with asyncio.timeout(10):
            while words not in self.received:
                piece = await self._reader.read(65536)
                assert piece, self.received
                self.received += piece
        return self.received


@asynccontextmanager
async def asked(served: Served) -> AsyncGenerator[Socket, None]:
    """The script, asked for on a socket of its own."""
    at = urlsplit(served.url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    body = orjson.dumps(ask(SCRIPT))
    head = f"POST / HTTP/1.1\r\nhost: {at.netloc}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    writer.write(f"{head}\r\n".encode() + body)
    try:
        yield Socket(reader)
    finally:
        writer.close()
        await writer.wait_closed()


def shown(held: Held) -> list[bytes]:
    """What a page would see of these facts: the words of their deltas, results and ends."""
    words: list[bytes] = []
    for event in held.events:
        said = getattr(event, "delta", None)
        if isinstance(said, str) and said.strip().isalpha():
            words.append(said.encode())
        if event.event_type == "tool.call.completed":
            words.append(b"TOOL_CALL_RESULT")
        if event.event_type == "tool.call.committed":
            words.append(b"TOOL_CALL_END")
        if event.event_type == "run.completed":
            words.append(b"RUN_FINISHED")
    return words


async def test_no_byte_of_a_fact_leaves_before_its_commit(journal: HeldJournal):
    async with serving(demo_agent(), store=journal) as served, asked(served) as socket:
        held = await journal.next()
        assert held.types[0] == "run.started"
        assert await socket.nothing(served), "not even the head of the response, before the run is in the store"
        held.release()
        await socket.until(b"RUN_STARTED")
        told: list[bytes] = []
        while b"RUN_FINISHED" not in told:
            held = await journal.next()
            words = shown(held)
            assert await socket.nothing(served)
            assert not [word for word in words if word in socket.received]
            held.release()
            for word in words:
                await socket.until(word)
            told += words
        assert [word for word in told if word.endswith(b" ") or word == b"epsilon"] == [
            b"pondering ",
            b"alpha ",
            b"beta ",
            b"gamma ",
            b"delta ",
            b"epsilon",
        ]
        assert b"TOOL_CALL_RESULT" in told


async def test_a_run_that_cannot_begin_is_an_error_and_no_stream(journal: HeldJournal):
    async with serving(demo_agent(), store=journal) as served, asked(served) as socket:
        held = await journal.next()
        held.go.set_exception(StoreError("no room", code="store_full"))
        answer = await socket.until(b"}")
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"store_full" in answer
        assert b"RUN_STARTED" not in answer


async def test_other_readers_see_no_more_than_the_first(journal: HeldJournal):
    async with serving(demo_agent(), store=journal) as served, asked(served) as socket:
        held = await journal.next()
        held.release()
        head = (await socket.until(b"RUN_STARTED")).decode()
        run_id = head.lower().split("x-run-id: ")[1].split("\r\n")[0]
        held = await journal.next()
        while not shown(held):
            held.release()
            held = await journal.next()
        record = (await served.get(f"/api/agent-runs/{run_id}")).document
        assert record["status"] == "running"
        async with served.http.stream("GET", f"/api/agent-runs/{run_id}/events") as response:
            pieces = response.aiter_bytes()
            seen = await anext(pieces)
            assert not [word for word in shown(held) if word in seen]
            assert seen.count(b"\nid: ") + seen.startswith(b"id: ") <= record["last_event_seq"]
            journal.let_go()
            held.release()
            async for piece in pieces:
                seen += piece
        assert b"event: run.completed" in seen
