"""An outside check: whole runs against aimock, a mock of the providers' APIs that others wrote.

It writes the formats as its authors understand them, so that what is wrong in ours is not wrong in both.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from runtime import events as e
from runtime.items import FunctionCall, FunctionCallOutput
from runtime.mock_provider import environ_of
from runtime.tools.toolbox import tool
from tests.aimock import aimock_with
from tests.contract.provider_server import KINDS, model_of
from tests.contract.workshop import Workshop, message_of, only, types, until, workshop

pytestmark = pytest.mark.needs_node

CALLS = [
    {"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "call_weather"},
    {"name": "get_time", "arguments": {"zone": "CET"}, "id": "call_time"},
]
LIMITED = {"message": "Slow down, please.", "type": "rate_limit_error", "code": "rate_limit_exceeded"}
REFUSED = {"message": "That is no key.", "type": "authentication_error", "code": "invalid_api_key"}


def fixtures() -> list[dict[str, Any]]:
    """What aimock answers to which words; what counts requests has words of its own for each kind of model."""

    def answer(words: str, response: dict[str, Any], match: Mapping[str, Any] | None = None, **more: Any) -> Any:
        return {"match": {"userMessage": words, **(match or {})}, "response": response, **more}

    return [
        answer("greet me", {"content": "Hello from afar, my friend — it is a fine day."}, chunkSize=3),
        answer("think first", {"reasoning": "Let me see. It is even.", "content": "Four."}, chunkSize=5),
        answer("look it up", {"toolCalls": CALLS}, {"hasToolResult": False}, chunkSize=4),
        answer("look it up", {"content": "Rain in Oslo at noon."}, {"hasToolResult": True}),
        answer("let me in", {"error": REFUSED, "status": 401}),
        # With a latency, because it throws away what the socket has not taken yet.
        answer("break off", {"content": "It is never said. " * 4}, chunkSize=4, truncateAfterChunks=8, latency=5),
        *(
            fixture
            for kind in KINDS
            for fixture in (
                answer(f"busy {kind}.", {"error": LIMITED, "status": 429, "retryAfter": 7}, {"sequenceIndex": 0}),
                answer(f"busy {kind}.", {"content": "Here I am."}, {"sequenceIndex": 1}),
            )
        ),
    ]


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A running aimock: the variables that lead the SDKs there."""
    with aimock_with(fixtures(), tmp_path_factory.mktemp("aimock")) as origin:
        yield environ_of(origin)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def running(kind: str, environ: Mapping[str, str], **given: Any) -> AsyncGenerator[Workshop, None]:
    """A supervisor whose agent has a model of this kind."""
    async with model_of(kind, environ) as model, workshop(model=model, **given) as shop:
        yield shop


def texts_of(events: list[e.Event], kind: str = "text") -> list[str]:
    """The texts of the parts of one kind in the whole message."""
    return [part["text"] for part in message_of(events).content if part["kind"] == kind]


async def test_a_text_is_heard(kind: str, aimock: dict[str, str]) -> None:
    async with running(kind, aimock) as shop:
        events = await shop.run("greet me")
    assert types(events)[-1] == "run.completed"
    assert texts_of(events) == ["Hello from afar, my friend — it is a fine day."]
    assert len(only(events, e.MessageDelta)) > 5


async def test_a_thought_is_reasoning_and_stands_before_the_answer(kind: str, aimock: dict[str, str]) -> None:
    async with running(kind, aimock) as shop:
        events = await shop.run("think first")
    assert [part["kind"] for part in message_of(events).content] == ["reasoning", "text"]
    assert (texts_of(events, "reasoning"), texts_of(events)) == (["Let me see. It is even."], ["Four."])


async def test_two_calls_are_run_and_their_results_answered(kind: str, aimock: dict[str, str]) -> None:
    @tool(parallel=True)
    async def get_weather(city: str) -> str:
        return f"rain in {city}"

    @tool(parallel=True)
    async def get_time(zone: str) -> str:
        return f"noon in {zone}"

    async with running(kind, aimock, tools=[get_weather, get_time]) as shop:
        events = await shop.run("look it up")
        history = await shop.items()
    assert types(events)[-1] == "run.completed"
    made = [(one.name, json.loads(one.arguments_json)) for one in history if isinstance(one, FunctionCall)]
    assert made == [("get_weather", {"city": "Oslo"}), ("get_time", {"zone": "CET"})]
    outputs = [one.output for one in history if isinstance(one, FunctionCallOutput)]
    assert outputs == ["rain in Oslo", "noon in CET"]
    assert texts_of(events) == ["Rain in Oslo at noon."]
    assert [one.finish for one in only(events, e.RoundCompleted)] == ["tool_calls", "stop"]


async def test_a_refused_key_fails_the_run_at_once(kind: str, aimock: dict[str, str]) -> None:
    async with running(kind, aimock) as shop:
        events = await shop.run("let me in")
    assert [one.error["code"] for one in only(events, e.RunFailed)] == ["provider_auth"]


async def test_a_busy_provider_is_asked_again_when_it_said(kind: str, aimock: dict[str, str]) -> None:
    async with running(kind, aimock) as shop:
        run = await shop.begin(f"busy {kind}.")
        await until(lambda: shop.clock.sleepers == 1)
        shop.clock.advance(6.9)
        assert shop.clock.sleepers == 1
        shop.clock.advance(0.1)
        events = await shop.follow(run)
    assert texts_of(events) == ["Here I am."]
    assert [one.attempts for one in only(events, e.RoundCompleted)] == [2]


async def test_a_stream_that_breaks_off_commits_nothing(kind: str, aimock: dict[str, str]) -> None:
    async with running(kind, aimock) as shop:
        events = await shop.run("break off")
    assert [one.error["code"] for one in only(events, e.RunFailed)] == ["stream_cut"]
    assert only(events, e.MessageDelta)
    assert not only(events, e.RoundCompleted)
