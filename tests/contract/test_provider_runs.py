"""Whole runs of agents through the real SDKs, on sockets: whatever kind of model the table of providers names.

The provider behind them is the mock provider, which plays the same scripts as the one that takes a model's place.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from agui_bridge.bridge import Bridge
from runtime import events as e
from runtime import samples as s
from runtime.agent import Agent
from runtime.canonical import JsonObject
from runtime.errors import ProviderError
from runtime.items import FunctionCall, FunctionCallOutput, Item, Reasoning
from runtime.limits import Limits
from runtime.mock_provider import Answer
from runtime.testing import Line, MockProvider, calls, cut, says
from runtime.tools.toolbox import tool
from tests.contract.provider_server import KINDS, PATHS, model_of
from tests.contract.workshop import Workshop, message_of, only, types, until, workshop
from tests.serving import ask, serving

USAGE = {"input_tokens": 30, "output_tokens": 9, "total_tokens": 39, "cached_input_tokens": 20}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def running(kind: str, *answers: Answer, **given: Any) -> AsyncGenerator[tuple[Workshop, MockProvider], None]:
    """A supervisor whose agent has a model of this kind, and the provider behind it."""
    async with (
        MockProvider(*answers) as provider,
        model_of(kind, provider.environ) as model,
        workshop(model=model, **given) as shop,
    ):
        yield shop, provider


def texts_of(events: Iterable[e.Event], kind: str = "text") -> list[str]:
    """The texts of the parts of one kind in the whole message."""
    return [part["text"] for part in message_of(list(events)).content if part["kind"] == kind]


def error_in(events: list[e.Event]) -> JsonObject:
    """With what a run failed."""
    last = events[-1]
    assert isinstance(last, e.RunFailed)
    return last.error


# --- whole runs ---------------------------------------------------------------------------------------------------


async def test_a_text_is_said_by_the_model(kind: str) -> None:
    async with running(kind, "Hello there, you.") as (shop, provider):
        events = await shop.run("Hi")
    assert types(events)[-1] == "run.completed"
    assert texts_of(events) == ["Hello there, you."]
    assert [one.delta for one in only(events, e.MessageDelta)] == ["Hello", " there,", " you."]
    assert provider.paths == [PATHS[kind]]
    assert provider.requests[0]["model"] == "m-1"
    assert "Hi" in json.dumps(provider.requests[0])


async def test_two_tools_run_side_by_side_and_the_model_reads_what_they_said(kind: str) -> None:
    both = asyncio.Barrier(2)

    @tool(parallel=True)
    async def weather(city: str) -> str:
        await both.wait()
        return f"rain in {city}"

    @tool(parallel=True)
    async def clock(zone: str) -> str:
        await both.wait()
        return f"noon in {zone}"

    first: list[Line] = [
        s.ReasoningDelta("I need "),
        s.ReasoningDelta("both."),
        s.ReasoningDone(),
        *calls(("weather", '{"city": "Oslo"}'), ("clock", '{"zone": "CET"}'), text="Let me look."),
    ]
    first[-1] = s.Completed("tool_calls", USAGE, "resp-a", "m-1-large")
    async with running(kind, first, says("Rain at noon.", usage=USAGE), tools=[weather, clock]) as (shop, provider):
        events = await shop.run()
        history = await shop.items()
    assert types(events)[-1] == "run.completed"
    assert texts_of(events, "reasoning") == ["I need both."]
    assert texts_of(events) == ["Let me look.", "Rain at noon."]
    made = [(one.name, one.arguments_json) for one in history if isinstance(one, FunctionCall)]
    assert made == [("weather", '{"city": "Oslo"}'), ("clock", '{"zone": "CET"}')]
    outputs = [one.output for one in history if isinstance(one, FunctionCallOutput)]
    assert outputs == ["rain in Oslo", "noon in CET"]
    assert all(words in json.dumps(provider.requests[1]) for words in ("rain in Oslo", "noon in CET"))
    rounds = only(events, e.RoundCompleted)
    assert [one.finish for one in rounds] == ["tool_calls", "stop"]
    assert rounds[0].provider_response_id == "resp-a"
    assert rounds[0].usage is not None
    assert {**rounds[0].usage, **USAGE, "model": "m-1-large"} == rounds[0].usage


async def test_a_provider_that_is_busy_is_asked_again_when_it_said(kind: str) -> None:
    busy = ProviderError("Slow down.", code="rate_limited", retry_after_s=7)
    async with running(kind, busy, "Here I am.") as (shop, provider):
        run = await shop.begin()
        await until(lambda: shop.clock.sleepers == 1)
        shop.clock.advance(6.9)
        assert (shop.clock.sleepers, len(provider.requests)) == (1, 1)
        shop.clock.advance(0.1)
        events = await shop.follow(run)
    assert texts_of(events) == ["Here I am."]
    assert [one.attempts for one in only(events, e.RoundCompleted)] == [2]
    assert provider.requests[0] == provider.requests[1]


async def test_a_connection_that_is_cut_before_the_first_word_is_tried_again(kind: str) -> None:
    async with running(kind, [cut()], "Here I am.") as (shop, _):
        run = await shop.begin()
        await until(lambda: shop.clock.sleepers == 1)
        shop.clock.advance(60)
        assert texts_of(await shop.follow(run)) == ["Here I am."]


@pytest.mark.parametrize("end", [[cut()], []], ids=["cut", "without an end"])
async def test_a_stream_that_stops_within_an_answer_commits_nothing(kind: str, end: list[Line]) -> None:
    half: list[Line] = [s.TextDelta("Half an "), s.ToolCallDelta("0", "send", '{"to": "a', "c1")]
    async with running(kind, [*half, *end], "Sorry.") as (shop, provider):
        events = await shop.run()
        assert error_in(events)["code"] == "stream_cut"
        assert not only(events, e.ToolCallCommitted)
        assert texts_of(await shop.run("Again")) == ["Sorry."]
    assert "Half an" not in json.dumps(provider.requests[1])


async def test_words_arrive_when_they_are_said_not_at_the_end(kind: str) -> None:
    go_on = asyncio.Event()
    script: list[Line] = [
        s.TextDelta("One. "),
        go_on,
        s.TextDelta("Two."),
        s.AssistantMessageDone(),
        s.Completed("stop"),
    ]
    async with running(kind, script) as (shop, _):
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        go_on.set()
        assert texts_of(await shop.follow(run)) == ["One. Two."]


async def test_a_run_that_is_cancelled_hangs_up(kind: str) -> None:
    never = asyncio.Event()
    async with running(kind, [s.TextDelta("One. "), never]) as (shop, provider):
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        await shop.supervisor.cancel(run.run_id, "user")
        assert types(await shop.follow(run))[-1] == "run.cancelled"
        await asyncio.wait_for(provider.client_left.wait(), 5)


async def test_a_page_is_served_by_a_provider_that_is_found_by_its_variables(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool
    def get_weather(city: str) -> str:
        return f"rain in {city}"

    async with MockProvider(calls(("get_weather", '{"city": "Oslo"}')), "It rains in Oslo.") as provider:
        for name, value in provider.environ.items():
            monkeypatch.setenv(name, value)
        async with serving(Agent("assistant", model=f"{kind}:m-1", tools=[get_weather])) as served:
            answer = await served.run(ask("How is Oslo?"))
    assert "".join(one.get("delta", "") for one in answer.events if one["type"] == "TEXT_MESSAGE_CONTENT") == (
        "It rains in Oslo."
    )
    assert answer.types[-1] == "RUN_FINISHED"
    assert "rain in Oslo" in json.dumps(provider.requests[1])


async def test_a_bridge_that_is_started_again_asks_again_over_a_connection_of_its_own(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with MockProvider("Once.", "Twice.") as provider:
        for name, value in provider.environ.items():
            monkeypatch.setenv(name, value)
        bridge = Bridge(Agent("assistant", model=f"{kind}:m-1"), store="memory:")
        for run, word in (("r1", b"Once."), ("r2", b"Twice.")):
            async with bridge.lifespan():
                frames = [frame async for frame in bridge.stream(ask("Hi", thread=run, run=run))]
            assert word in b"".join(frames)
    assert provider.connections == 2


# --- the same script on the wire and without one ------------------------------------------------------------------

SCRIPTS: dict[str, Sequence[Sequence[Line]]] = {
    "text": [says("Blåbær \U0001f1f3\U0001f1f4 and “quotes”.\nA line.")],
    "a character beyond the basic plane": [
        [s.TextDelta("a"), s.TextDelta("\U0001f600"), s.AssistantMessageDone(), s.Completed("stop")]
    ],
    "thought, text": [[s.ReasoningDelta("Hm. "), s.ReasoningDelta("So."), s.ReasoningDone(), *says("Yes.")]],
    "cut by length": [[s.TextDelta("Once upon"), s.AssistantMessageDone(), s.Completed("length")]],
    "call cut by length": [[s.ToolCallDelta("0", "echo", '{"word": "a', "c1"), s.Completed("length")]],
    "no words": [[s.Completed("stop")]],
    "arguments in pieces": [
        [
            s.ToolCallDelta("0", "echo", "", "c1"),
            s.ToolCallDelta("0", "echo", '{"wo', "c1"),
            s.ToolCallDelta("1", "echo", '{"word": ', "c2"),
            s.ToolCallDelta("0", "echo", 'rd": "a"}', "c1"),
            s.ToolCallDelta("1", "echo", '"b"}', "c2"),
            s.ToolCallCommitted("0", "echo", '{"word": "a"}', "c1"),
            s.ToolCallCommitted("1", "echo", '{"word": "b"}', "c2"),
            s.Completed("tool_calls"),
        ],
        says("Done."),
    ],
    "commits without deltas": [
        [
            s.ToolCallCommitted("x", "echo", '{"word": "a"}', "c1"),
            s.ToolCallCommitted("y", "echo", "{}", "c2"),
            s.Completed("tool_calls"),
        ],
        says("Done."),
    ],
    "malformed arguments": [calls(("echo", '{"word": ')), says("Sorry.")],
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_says_the_same_on_the_wire_as_in_place_of_the_model(kind: str, name: str) -> None:
    @tool
    def echo(word: str) -> str:
        return word

    once = Limits(model_retries=0)
    async with workshop(*SCRIPTS[name], tools=[echo], limits=once) as shop:
        told = outcome(await shop.run()), history_of(await shop.items())
    async with running(kind, *SCRIPTS[name], tools=[echo], limits=once) as (shop, _):
        assert (outcome(await shop.run()), history_of(await shop.items())) == told


def outcome(events: list[e.Event]) -> Any:
    """How a run ended, and the whole message."""
    error = getattr(events[-1], "error", None)
    return types(events)[-1], error and error["code"], message_of(events).content


def history_of(items: list[Item]) -> list[Item]:
    """The items without what only their provider understands."""
    return [replace(one, provider="", opaque=None) if isinstance(one, FunctionCall) else _plain(one) for one in items]


def _plain(item: Item) -> Item:
    return Reasoning(item.text, "") if isinstance(item, Reasoning) else item


@tool
async def hear() -> list[JsonObject]:
    """Hear something that no model can be given."""
    return [{"type": "audio", "source": {"type": "data", "value": "AAAA", "mime_type": "audio/wav"}}]


@pytest.mark.requirement("R-115")
async def test_a_result_that_a_model_cannot_take_is_left_out_and_the_call_still_answered(kind: str) -> None:
    async with running(kind, calls(("hear", "{}")), "Done", tools=[hear]) as (shop, provider):
        assert types(await shop.run("Listen"))[-1] == "run.completed"
    [asked] = provider.requests[1:]
    last = asked["input" if kind == "openai" else "messages"][-1]
    told = last["content"][0]["content"] if kind == "anthropic" else last.get("output", last.get("content"))
    assert told == ""
