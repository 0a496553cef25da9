"""One round with the model: what is written down of its attempts, how long it is waited for, what it has cost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agui_bridge import Agent, Budget, Timeouts
from runtime import events as e
from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.errors import ConfigurationError, ProviderError
from runtime.limits import Limits
from runtime.models import Model
from runtime.providers import model_from_string
from runtime.resolve import resolve_model
from runtime.testing import HttpAnswer, MockProvider, SamplesDialect, calls, cut, says
from tests.contract.provider_server import KINDS, model_of
from tests.contract.workshop import Workshop, only, types, until, workshop
from tests.serving import ask, serving

ONCE = Limits(model_retries=0, stop_grace_s=0.2)


def down(**given: Any) -> ProviderError:
    return ProviderError("down", code="provider_overloaded", retryable=True, **given)


def retries(events: list[e.Event]) -> list[JsonObject]:
    return [event.value for event in only(events, e.Custom) if event.name == "agui-bridge.model_retry"]


async def patient(shop: Workshop, **more: Any) -> list[e.Event]:
    """A run to its end, however often its model has to be waited for."""
    run = await shop.begin(**more)
    following = asyncio.create_task(shop.follow(run))
    while not following.done():
        await asyncio.sleep(0)
        shop.clock.advance(60)
    return await following


# --- attempts -----------------------------------------------------------------------------------------------------


async def test_an_attempt_that_failed_is_in_the_journal_before_the_next_one_is_waited_for():
    async with workshop([down()], [down(retry_after_s=3)], says("There.")) as shop:
        run = await shop.begin()
        for attempt, wait_s in ((1, 0.5), (2, 3.0)):
            await until(lambda: shop.clock.sleepers == 1)
            kept = await shop.journal.read(run.run_id, 0, 100)
            last = kept[-1].event
            assert isinstance(last, e.Custom)
            assert last.value == {
                "round": 1,
                "attempt": attempt,
                "code": "provider_overloaded",
                "message": "down",
                "wait_ms": wait_s * 1000,
            }
            shop.clock.advance(wait_s)
        events = await shop.follow(run)
        assert [one["attempt"] for one in retries(events)] == [1, 2]
        assert [one.attempts for one in only(events, e.RoundCompleted)] == [3]


async def test_the_attempt_that_fails_the_run_is_told_by_its_error_alone():
    async with workshop([down()], [down()], limits=Limits(model_retries=1)) as shop:
        events = await patient(shop)
        assert [one["attempt"] for one in retries(events)] == [1]
        assert only(events, e.RunFailed)[0].error["code"] == "provider_overloaded"


async def test_a_model_that_answers_with_nothing_is_asked_again():
    async with workshop([s.Completed("stop", {"input_tokens": 7})], says("There.", usage={"input_tokens": 7})) as shop:
        events = await patient(shop)
        assert [one["code"] for one in retries(events)] == ["empty_response"]
        assert types(events)[-1] == "run.completed"
        assert only(events, e.RunCompleted)[0].usage == [
            {"provider": "testing", "model": "scripted-provider", "input_tokens": 14}
        ]


async def test_a_model_that_answers_with_nothing_again_and_again_fails_the_run():
    async with workshop(*[[s.Completed("stop")]] * 3) as shop:
        events = await patient(shop)
        assert [one["code"] for one in retries(events)] == ["empty_response"] * 2
        assert only(events, e.RunFailed)[0].error["code"] == "empty_response"
        assert len(shop.script.requests) == 3


@pytest.mark.parametrize(
    "whole", [calls(("work", "{}"))[1:], [s.AssistantMessageDone(), *says("x")[-1:]]], ids=["call", "nothing shown"]
)
async def test_a_round_that_was_committed_without_a_delta_is_never_asked_for_again(whole: list[s.Sample]):
    worked: list[str] = []

    def work() -> str:
        worked.append("worked")
        return "worked"

    whole = [s.ReasoningDone("sig"), *whole]
    async with workshop([*whole, down()], says("never"), tools=[work]) as shop:
        events = await patient(shop)
        assert len(shop.script.requests) == 1
        assert len(only(events, e.RoundCompleted)) == 1
        assert only(events, e.RunFailed)[0].error["code"] == "provider_overloaded"
        assert worked == []


# --- patience -----------------------------------------------------------------------------------------------------


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def running(kind: str, *answers: Any, **given: Any) -> AsyncGenerator[tuple[Workshop, MockProvider], None]:
    """A supervisor whose agent has a model of this kind, and the provider behind it."""
    async with (
        MockProvider(*answers) as provider,
        model_of(kind, provider.environ) as model,
        workshop(model=model, **given) as shop,
    ):
        yield shop, provider


BEGUN: dict[str, bytes] = {
    "openai": b'data: {"type": "response.created", "response": {"id": "r1"}}\n\n',
    "openai-chat": b'data: {"id": "c1", "choices": [{"delta": {"role": "assistant", "content": ""}}]}\n\n',
    "anthropic": b'event: message_start\ndata: {"type": "message_start", "message": {"id": "m1"}}\n\n',
}
"""A sign that an answer begins, which says nothing yet."""


async def test_a_model_that_begins_and_does_not_come_to_speak_is_asked_again(kind: str):
    silent = HttpAnswer([BEGUN[kind], b": still here\n\n"], end="hang")
    async with running(kind, silent, "There.", limits=Limits(first_token_timeout_s=0.5)) as (shop, provider):
        run = await shop.begin()
        await until(lambda: shop.clock.sleepers == 1)
        assert provider.client_left.is_set() or await asyncio.wait_for(provider.client_left.wait(), 5)
        shop.clock.advance(1)
        events = await shop.follow(run)
        assert [(one["code"], one["message"]) for one in retries(events)] == [
            ("provider_timeout", "The model said nothing within 0.5 s.")
        ]
        assert types(events)[-1] == "run.completed"


async def test_a_model_that_has_begun_to_speak_may_take_its_time():
    go_on = asyncio.Event()
    slow = [s.TextDelta("One "), go_on, s.TextDelta("two."), s.AssistantMessageDone(), s.Completed("stop")]
    async with running("openai-chat", slow, timeouts=Timeouts(first_token_s=0.5)) as (shop, _):
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        asyncio.get_running_loop().call_later(0.6, go_on.set)
        assert types(await shop.follow(run))[-1] == "run.completed"


async def test_an_agents_own_patience_counts_before_the_servers(kind: str):
    silent = HttpAnswer([BEGUN[kind]], end="hang")
    own = Timeouts(first_token_s=0.05)
    async with running(kind, silent, timeouts=own, limits=Limits(model_retries=0, first_token_timeout_s=60)) as (
        shop,
        _,
    ):
        error = only(await shop.run(), e.RunFailed)[0].error
        assert (error["code"], error["retryable"]) == ("provider_timeout", True)


class Sleeper:
    """A model of somebody's own; its stream fails by itself with a time-out that is not ours."""

    name = "m"
    provider = "testing"

    def __init__(self) -> None:
        self.dialect = SamplesDialect()

    async def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        yield {"sample": s.TextDelta("Half")}
        raise TimeoutError("a bug of the model's")


async def test_a_timeout_of_the_models_own_is_not_taken_for_ours():
    async with workshop(model=Sleeper()) as shop:
        assert only(await shop.run(), e.RunFailed)[0].error["code"] == "internal_error"


async def test_the_settings_reach_a_model_that_is_named(kind: str, monkeypatch: pytest.MonkeyPatch):
    for name, value in {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}.items():
        monkeypatch.setenv(name, value)
    model: Any = resolve_model(f"{kind}:m-1", Timeouts(connect_s=1, silence_s=2))
    assert (model._connect_timeout_s, model._silence_timeout_s) == (1, 2)
    usual: Any = model_from_string(f"{kind}:m-1")
    assert (usual._connect_timeout_s, usual._silence_timeout_s) == (10, 300)
    await model.aclose()
    await usual.aclose()


async def test_a_server_that_falls_silent_ends_the_run_by_its_settings(kind: str, monkeypatch: pytest.MonkeyPatch):
    async with MockProvider(HttpAnswer([BEGUN[kind]], end="hang")) as provider:
        for name, value in provider.environ.items():
            monkeypatch.setenv(name, value)
        agent = Agent("a", model=f"{kind}:m-1")
        async with serving(agent, silence_timeout_s=0.1, model_retries=0) as served:
            answer = await served.run(ask("Hi"))
    assert (answer.events[-1]["code"], answer.events[-1]["message"]) == (
        "provider_timeout",
        "The provider fell silent.",
    )


async def test_a_provider_that_does_not_take_the_connection_is_given_up(kind: str, monkeypatch: pytest.MonkeyPatch):
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # the client's half of a TLS handshake, which nobody answers
        writer.close()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    async with server:
        origin = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
            monkeypatch.setenv(name, origin)
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.setenv(name, "k")
        model: Any = resolve_model(f"{kind}:m-1", Timeouts(connect_s=0.1))
        async with workshop(model=model, limits=ONCE) as shop:
            error = only(await shop.run(), e.RunFailed)[0].error
        await model.aclose()
    assert error == {
        "code": "provider_timeout",
        "message": "The provider could not be reached in time.",
        "retryable": True,
    }


@pytest.mark.parametrize("given", [{"connect_s": 0}, {"silence_s": -1}, {"first_token_s": float("inf")}])
def test_a_timeout_is_a_number_of_seconds(given: dict[str, float]):
    with pytest.raises(ConfigurationError, match="A timeout is a number of seconds greater than 0"):
        Timeouts(**given)


# --- what it has cost ---------------------------------------------------------------------------------------------


def _events(*chunks: JsonObject) -> list[bytes]:
    return [f"event: {chunk.get('type', 'message')}\ndata: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]


SAID: dict[str, list[bytes]] = {
    "openai": _events(
        {"type": "response.created", "response": {"id": "r1", "model": "m-1-large"}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Half"},
    ),
    "openai-chat": _events(
        {
            "model": "m-1-large",
            "choices": [{"delta": {"content": "Half"}}],
            "usage": {"prompt_tokens": 30, "completion_tokens": 2},
        }
    ),
    "anthropic": _events(
        {
            "type": "message_start",
            "message": {"model": "m-1-large", "usage": {"input_tokens": 10, "cache_read_input_tokens": 20}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}},
    ),
}
"""Half an answer, with the usage that the format tells before its end."""

FAILS: dict[str, list[bytes]] = {
    "openai": _events(
        {
            "type": "response.failed",
            "response": {
                "status": "failed",
                "error": {"code": "server_error", "message": "broken"},
                "usage": {"input_tokens": 30, "output_tokens": 2},
            },
        }
    ),
    "openai-chat": _events({"error": {"message": "broken", "code": "server_error"}}),
    "anthropic": _events({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
}

KNOWN: dict[str, JsonObject] = {
    "openai": {"input_tokens": 30, "output_tokens": 2},
    "openai-chat": {"input_tokens": 30, "output_tokens": 2},
    "anthropic": {"input_tokens": 30, "cached_input_tokens": 20},
}
"""What is known of it when it fails: the output of an unfinished message is not, and so is not zero."""


def cost(kind: str) -> list[JsonObject]:
    provider = "anthropic" if kind == "anthropic" else "openai"
    return [{"provider": provider, "model": "m-1-large", **KNOWN[kind]}]


async def test_a_response_that_fails_in_the_midst_has_cost_what_was_told(kind: str):
    async with running(kind, b"".join(SAID[kind] + FAILS[kind]), limits=ONCE) as (shop, _):
        run = await shop.begin()
        failed = only(await shop.follow(run), e.RunFailed)[0]
        assert failed.usage == cost(kind)
        assert (await shop.settled(run)).usage == cost(kind)


async def test_a_stream_that_is_cut_has_cost_what_was_told(kind: str):
    first = SAID[kind] + (FAILS[kind] if kind == "openai" else [])
    async with running(kind, HttpAnswer(first, end="cut"), limits=ONCE) as (shop, _):
        assert only(await shop.run(), e.RunFailed)[0].usage == cost(kind)


@pytest.mark.parametrize("kind", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("ends", ["cancelled", "interrupted"])
async def test_a_run_that_is_stopped_in_the_midst_has_cost_what_was_told(kind: str, ends: str):
    async with running(kind, HttpAnswer(SAID[kind], end="hang"), limits=ONCE) as (shop, _):
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        engine = shop.supervisor.live.runs[run.run_id].engine
        engine.cancel("user") if ends == "cancelled" else engine.interrupt("shutdown")
        last = (await shop.follow(run))[-1]
        assert isinstance(last, (e.RunCancelled, e.RunInterrupted))
        assert last.event_type == f"run.{ends}"
        assert last.usage == cost(kind)
        assert (await shop.settled(run)).usage == cost(kind)


async def test_an_attempt_that_failed_is_paid_like_the_one_that_succeeds():
    told = _events({"type": "message_start", "message": {"model": "m-1", "usage": {"input_tokens": 10}}})
    usage = {"input_tokens": 10, "output_tokens": 4}
    async with running("anthropic", b"".join(told + FAILS["anthropic"]), says("There.", usage=usage)) as (shop, _):
        events = await patient(shop)
        (done,) = only(events, e.RoundCompleted)
        assert {name: done.usage[name] for name in usage} == usage
        (total,) = only(events, e.RunCompleted)[0].usage
        assert (total["input_tokens"], total["output_tokens"]) == (20, 4)


async def test_a_provider_that_told_nothing_has_no_usage(kind: str):
    async with running(kind, [cut()], limits=ONCE) as (shop, _):
        assert only(await shop.run(), e.RunFailed)[0].usage is None


async def test_a_page_reads_what_a_failed_run_has_cost(monkeypatch: pytest.MonkeyPatch):
    async with MockProvider(b"".join(SAID["anthropic"] + FAILS["anthropic"])) as provider:
        for name, value in provider.environ.items():
            monkeypatch.setenv(name, value)
        async with serving(Agent("a", model="anthropic:m-1")) as served:
            answer = await served.run(ask("Hi"))
    assert answer.types[-1] == "RUN_ERROR"
    assert answer.events[-1]["usage"] == [
        {"provider": "anthropic", "model": "m-1-large", "inputTokens": 30, "cachedInputTokens": 20}
    ]


# --- a budget of the run's own ------------------------------------------------------------------------------------


def looking(times: int) -> list[list[s.Sample]]:
    return [calls(("look", "{}")) for _ in range(times)]


@pytest.mark.parametrize(
    ("agents", "runs", "rounds"),
    [
        (Budget(rounds=3), Budget(rounds=1), 1),
        (Budget(rounds=1), Budget(rounds=3), 1),
        (Budget(), Budget(rounds=2), 2),
        (Budget(rounds=2), None, 2),
        (Budget(rounds=3), Budget(tool_calls=1), 2),
    ],
)
async def test_a_run_may_have_a_stricter_budget_than_its_agent_never_a_wider_one(
    agents: Budget, runs: Budget | None, rounds: int
):
    def look() -> str:
        return "seen"

    async with workshop(*looking(5), tools=[look], budget=agents) as shop:
        run = await shop.begin(budget=runs)
        end = (await shop.follow(run))[-1]
        assert isinstance(end, e.RunCancelled)
        assert end.reason in ("max_rounds", "max_tool_calls")
        assert len(shop.script.requests) == rounds


# --- a stream that will not close ---------------------------------------------------------------------------------


class Stuck:
    """A model whose stream neither speaks nor closes."""

    name = "stuck-1"
    provider = "testing"

    def __init__(self) -> None:
        self.dialect = SamplesDialect()
        self.waiting, self.go_on = asyncio.Event(), asyncio.Event()

    async def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        yield {"sample": s.TextDelta("Half")}
        self.waiting.set()
        while not self.go_on.is_set():
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                continue


async def test_a_model_whose_stream_will_not_close_is_named():
    model: Any = Stuck()
    typed: Model = model
    async with workshop(model=typed, limits=Limits(stop_grace_s=0.05)) as shop:
        run = await shop.begin()
        await model.waiting.wait()
        work = shop.supervisor.live.runs[run.run_id].engine._work
        await shop.supervisor.cancel(run.run_id, "user", 5)
        end = only(await shop.follow(run), e.RunCancelled)[0]
        assert (end.external_stop_confirmed, end.abandoned) == (False, ["model:stuck-1"])
        model.go_on.set()
        assert work is not None
        await asyncio.wait({work})
