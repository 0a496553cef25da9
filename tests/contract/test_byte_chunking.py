"""However the network cuts a provider's bytes, the same chunks come out: every case file, cut at every byte."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest

from runtime.canonical import JsonObject
from runtime.errors import ProviderError
from runtime.mock_wire import APIS
from runtime.provider_stream import chunks_of
from runtime.samples import Completed, TextDelta

HERE = Path(__file__).parent
STRIDE = 64
"""Bytes between two cuts of one reading: every border is met, each far from its neighbours, in 64 readings a file."""
LONG = 4096
REQUEST = httpx2.Request("POST", "http://provider.test/")


def body_in(path: Path) -> bytes | None:
    """The event stream that a case file holds; None for a file of another kind (restored histories, expectations)."""
    if path.suffix == ".sse":
        return path.read_bytes()
    document = json.loads(path.read_bytes())
    if "chunks_b64" in document:
        return b"".join(base64.b64decode(piece) for piece in document["chunks_b64"])
    if "chunks" in document:  # texts with tags in them, as a server would stream them
        writer = APIS["/chat/completions"]("m-1", 1, None)
        return b"".join(writer.feed(one) for one in [*map(TextDelta, document["chunks"]), Completed("stop")])
    return None


BODIES = {
    f"{path.parent.name}/{path.name}": body
    for path in sorted(HERE.glob("cases*/C-*"))
    if path.suffix in (".sse", ".json") and (body := body_in(path)) is not None
}


class Pieces(httpx2.AsyncByteStream):
    """A body as the network delivers it."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def heard(pieces: Sequence[bytes], content_type: str = "text/event-stream") -> list[object]:
    """The chunks that are read from these pieces, and the error with which the reading ends, if it does."""
    response = httpx2.Response(200, headers={"content-type": content_type}, stream=Pieces(pieces), request=REQUEST)
    said: list[object] = []
    chunks: AsyncGenerator[JsonObject, None] = chunks_of(response)
    try:
        async for chunk in chunks:
            said.append(chunk)
    except ProviderError as error:
        said.append((error.code, error.message, error.details))
    return said


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_says_the_same_wherever_it_is_cut(name: str) -> None:
    body = BODIES[name]
    whole = await heard([body])
    assert whole
    for first in range(1, STRIDE + 1):
        pieces = [body[:first], *(body[at : at + STRIDE] for at in range(first, len(body), STRIDE))]
        assert await heard(pieces) == whole, f"cut at every byte {first} + n * {STRIDE}"


@pytest.mark.parametrize("name", [name for name, body in BODIES.items() if len(body) > LONG])
async def test_a_long_body_says_the_same_in_pieces_of_any_length(name: str) -> None:
    body, dice = BODIES[name], random.Random(name)
    whole = await heard([body])
    for _ in range(200):
        borders = [0, *sorted(dice.sample(range(1, len(body)), dice.randrange(1, 40))), len(body)]
        assert await heard([body[start:end] for start, end in pairwise(borders)]) == whole, borders


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_comes_byte_by_byte_says_the_same(name: str) -> None:
    body = BODIES[name]
    assert await heard([body[at : at + 1] for at in range(len(body))]) == await heard([body])


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"], ids=["CRLF", "CR"])
@pytest.mark.parametrize("name", BODIES)
async def test_other_line_ends_say_the_same_byte_by_byte(name: str, line_end: bytes) -> None:
    plain = BODIES[name].replace(b"\r\n", b"\n")
    body = plain.replace(b"\n", line_end)
    assert await heard([body[at : at + 1] for at in range(len(body))]) == await heard([plain])


async def test_an_error_in_a_plain_body_is_the_same_wherever_it_is_cut() -> None:
    body = '{"error":{"message":"Modellen er overbelastet … prøv igjen","code":502}}'.encode()
    whole = await heard([body], "application/json")
    assert len(whole) == 1
    for at in range(1, len(body)):
        assert await heard([body[:at], body[at:]], "application/json") == whole


def test_every_stream_of_the_case_log_is_here() -> None:
    assert {name.split("/")[0] for name in BODIES} >= {"cases", "cases_responses"}
    assert any(len(body) > LONG for body in BODIES.values())
    assert len(BODIES) >= 60
