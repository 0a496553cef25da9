"""Readers over real sockets that are cut again and again while a run is at work, and come back with their last id."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from runtime import samples as s
from runtime.agent import Agent
from runtime.testing import ScriptedProvider
from runtime.tools.toolbox import tool
from tests.pure.test_resume import id_of, seen_of
from tests.serving import ask, serving
from tests.wire.sockets import eventually

CUTS = 200
PATIENCE_S = 10


@tool
async def note(text: str) -> str:
    """Note something."""
    return f"noted {text}"


def script(gates: list[asyncio.Event]) -> ScriptedProvider:
    """A model that thinks, talks and calls, and waits for a gate after every few pieces."""
    half = len(gates) // 2
    first: list[object] = [s.ReasoningDelta("hm"), s.ReasoningDone("sig")]
    for number, gate in enumerate(gates[:half]):
        first += [s.TextDelta(f"w{number} "), s.TextDelta("\u2028é 🎈 "), gate]
    call = s.ToolCallCommitted("0", "note", '{"text":"x"}', "call_a")
    first += [s.AssistantMessageDone(), call, s.Completed("tool_calls", {"input_tokens": 3})]
    second: list[object] = []
    for number, gate in enumerate(gates[half:]):
        second += [s.TextDelta(f"v{number} "), gate, s.TextDelta("and ")]
    second += [s.AssistantMessageDone(), s.Completed("stop")]
    return ScriptedProvider(first, second)  # pyright: ignore[reportArgumentType]


async def read_some(
    url: str, path: str, after: int, most: int, go_on: Callable[[], None] = lambda: None
) -> tuple[bytes, bool]:
    """The body of a stream from a cursor, as far as it stands in so many bytes, and whether it ended before. `go_on`
    is called before each wait for more."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nlast-event-id: {after}\r\n\r\n"
        writer.write(head.encode())
        async with asyncio.timeout(PATIENCE_S):
            status = await reader.readuntil(b"\r\n\r\n")
            assert status.startswith(b"HTTP/1.1 20"), status
            body = b""
            while len(body) < most:
                go_on()
                if not (piece := await reader.read(most - len(body))):
                    break
                body += piece
        return in_chunks(body), len(body) < most
    finally:
        writer.transport.abort()


def in_chunks(answer: bytes) -> bytes:
    """What stands in the chunks of a body that may be cut anywhere."""
    body = b""
    while answer:
        size, line_end, answer = answer.partition(b"\r\n")
        if not line_end:
            break
        body += answer[: int(size, 16)]
        answer = answer[int(size, 16) + 2 :]
    return body


@pytest.mark.parametrize("wanted", ["canonical", "agui"])
async def test_a_reader_that_is_cut_two_hundred_times_gets_exactly_the_journal(wanted: str):
    chance = random.Random(7)
    gates = [asyncio.Event() for _ in range(4 * CUTS)]
    closed = iter(gates)
    async with serving(Agent("a", model=script(gates), tools=[note]), on_disconnect="continue") as served:
        asks = asyncio.create_task(served.run(ask("Go")))
        await eventually(lambda: len(served.bridge.supervisor.live.runs) == 1)
        (run_id,) = served.bridge.supervisor.live.runs
        path = f"/api/agent-runs/{run_id}/events?format={wanted}"
        kept, after = b"", 0
        for _ in range(CUTS):
            body, ended = await read_some(served.url, path, after, chance.randrange(1, 700), lambda: next(closed).set())
            assert not ended
            assert run_id in served.bridge.supervisor.live.runs
            seen, last = seen_of(body, len(body))
            kept, after = kept + seen, max(after, last)
        for gate in closed:
            gate.set()
        rest, ended = await read_some(served.url, path, after, 10**7)
        assert ended
        assert (await asks).types[-1] == "RUN_FINISHED"
        assert kept + rest == (await served.get(path)).body
        if wanted == "canonical":
            frames = (kept + rest).split(b"\n\n")[:-1]
            assert [id_of(frame) for frame in frames] == list(range(1, len(frames) + 1))
