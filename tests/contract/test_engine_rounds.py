"""Rounds: when a model call is tried again, and what becomes of a run whose model misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from runtime import events as e
from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.errors import ProviderError
from runtime.items import Message
from runtime.limits import Limits
from runtime.model_call import ModelCall
from runtime.testing import SamplesDialect, calls, says
from tests.contract.workshop import Workshop, only, types, until, workshop


def down(retry_after_s: float | None = None, *, retryable: bool = True) -> ProviderError:
    return ProviderError("down", code="overloaded", retryable=retryable, retry_after_s=retry_after_s)


class Model:
    """A model whose stream is written in the test; the chunks are samples."""

    name = "m"
    provider = "testing"

    def __init__(self, *streams: Any) -> None:
        self.dialect = SamplesDialect()
        self.asked = 0
        self._streams = streams

    def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        self.asked += 1
        return self._streams[self.asked - 1]()


def chunk(sample: s.Sample) -> JsonObject:
    return {"sample": sample}


# --- trying again -------------------------------------------------------------------------------------------------


async def test_a_call_that_showed_nothing_is_tried_again_after_a_growing_pause():
    async with workshop([down()], [down()], says("There.")) as shop:
        run = await shop.begin()
        for pause in (0.5, 1.0):
            await until(lambda: shop.clock.sleepers == 1)
            shop.clock.advance(pause - 0.01)
            await asyncio.sleep(0)
            assert shop.clock.sleepers == 1
            shop.clock.advance(0.01)
        events = await shop.follow(run)
        assert len(shop.script.requests) == 3
        assert types(events)[-1] == "run.completed"
        assert [done.attempts for done in only(events, e.RoundCompleted)] == [3]
        assert len(only(events, e.RoundStarted)) == 1


async def test_a_provider_that_says_how_long_to_wait_is_given_that_long():
    async with workshop([down(retry_after_s=30)], says("There.")) as shop:
        run = await shop.begin()
        await until(lambda: shop.clock.sleepers == 1)
        shop.clock.advance(29.9)
        await asyncio.sleep(0)
        assert len(shop.script.requests) == 1
        shop.clock.advance(0.1)
        assert types(await shop.follow(run))[-1] == "run.completed"


async def test_a_call_is_tried_again_so_many_times_and_no_more():
    limits = Limits(model_retries=2, retry_backoff_s=0)
    async with workshop([down()], [down()], [down()], says("never"), limits=limits) as shop:
        run = await shop.begin()
        for _ in range(2):
            await until(lambda: shop.clock.sleepers == 1)
            shop.clock.advance(0)
        events = await shop.follow(run)
        assert len(shop.script.requests) == 3
        assert only(events, e.RunFailed)[0].error == {"code": "overloaded", "message": "down", "retryable": True}


@pytest.mark.parametrize(
    "shown",
    [s.TextDelta("a"), s.ReasoningDelta("a"), s.RefusalDelta("a"), s.ToolCallDelta("0", "get_time", "")],
    ids=["text", "reasoning", "refusal", "call"],
)
async def test_what_was_shown_is_never_said_again(shown: s.Sample):
    async with workshop([shown, down()], says("never")) as shop:
        events = await shop.run()
        assert len(shop.script.requests) == 1
        assert only(events, e.RunFailed)[0].error["code"] == "overloaded"
        assert [item for item in await shop.items() if not isinstance(item, Message) or item.role != "user"] == []


async def test_an_error_that_will_not_pass_is_not_tried_again():
    async with workshop([down(retryable=False)], says("never")) as shop:
        assert types(await shop.run())[-1] == "run.failed"
        assert len(shop.script.requests) == 1


async def test_a_failed_second_round_is_tried_again_without_running_its_tools_twice():
    done: list[str] = []

    def note(text: str) -> str:
        done.append(text)
        return "noted"

    rounds = [calls(("note", '{"text": "a"}')), [down()], says("Noted.")]
    async with workshop(*rounds, tools=[note]) as shop:
        run = await shop.begin()
        await until(lambda: shop.clock.sleepers == 1)
        shop.clock.advance(1)
        events = await shop.follow(run)
        assert done == ["a"]
        assert [r.round for r in only(events, e.RoundStarted)] == [1, 2]
        assert [r.attempts for r in only(events, e.RoundCompleted)] == [1, 2]


# --- how many rounds ----------------------------------------------------------------------------------------------


async def test_a_run_that_never_comes_to_an_end_is_cancelled_when_its_rounds_are_used_up():
    def again() -> str:
        return "again"

    rounds = [calls(("again", "{}")) for _ in range(5)]
    async with workshop(*rounds, tools=[again], limits=Limits(max_rounds=3)) as shop:
        events = await shop.run()
        assert len(shop.script.requests) == 3
        assert types(events)[-3:] == ["run.cancelling", "message.completed", "run.cancelled"]
        assert only(events, e.RunCancelling) == [e.RunCancelling("max_rounds")]
        cancelled = only(events, e.RunCancelled)[0]
        assert (cancelled.reason, cancelled.external_stop_confirmed, cancelled.abandoned) == ("max_rounds", True, None)
        assert len(only(events, e.ToolCallCompleted)) == 3
        assert types(await shop.run("And now?"))[-1] == "run.completed"


# --- models that misbehave ----------------------------------------------------------------------------------------


async def broken_close() -> AsyncGenerator[JsonObject, None]:
    try:
        for sample in [s.TextDelta("Half"), s.Completed("stop"), *says("more")]:
            yield chunk(sample)
    finally:
        raise RuntimeError("the connection could not be closed")


async def test_a_stream_that_fails_when_it_is_closed_does_not_hide_why_the_run_failed():
    async with workshop(model=Model(broken_close)) as shop:
        events = await shop.run()
        assert only(events, e.RunFailed)[0].error["code"] == "provider_protocol_error"


async def test_a_stream_that_fails_at_its_very_end_fails_the_run_and_nothing_hangs():
    async def fails_late() -> AsyncGenerator[JsonObject, None]:
        yield chunk(s.TextDelta("Half"))
        raise RuntimeError("a bug of the model's")

    async with workshop(model=Model(fails_late)) as shop:
        events = await shop.run()
        assert only(events, e.RunFailed)[0].error["code"] == "internal_error"
        assert "bug of the model" not in str(events[-1])


async def test_a_model_that_cancels_itself_fails_the_run():
    async def cancels() -> AsyncGenerator[JsonObject, None]:
        yield chunk(s.TextDelta("Half"))
        raise asyncio.CancelledError

    async with workshop(model=Model(cancels)) as shop:
        events = await shop.run()
        assert only(events, e.RunFailed)[0].error["code"] == "internal_error"
        assert types(await shop.run("And again?"))[-1] == "run.failed"


async def test_a_bug_in_the_engine_fails_the_run_and_leaves_the_thread_usable(monkeypatch: pytest.MonkeyPatch):
    def bug(*_: object) -> None:
        raise ZeroDivisionError("secret")

    async with workshop(says("Fine.")) as shop:
        with monkeypatch.context() as patch:
            patch.setattr(ModelCall, "_options", bug)
            events = await shop.run()
        assert types(events) == [
            "run.started",
            "message.completed",
            "message.started",
            "message.completed",
            "run.failed",
        ]
        assert only(events, e.RunFailed)[0].error == {
            "code": "internal_error",
            "message": "The server failed; its log says why.",
            "retryable": False,
        }
        assert types(await shop.run("And now?"))[-1] == "run.completed"


async def test_a_bug_in_the_very_ending_of_a_run_is_no_reason_to_hang(monkeypatch: pytest.MonkeyPatch):
    def bug(*_: object) -> e.Event:
        raise ZeroDivisionError

    async with workshop(says("Fine."), says("Fine.")) as shop:
        with monkeypatch.context() as patch:
            patch.setattr("runtime.engine.ending", bug)
            run = await shop.begin()
            events = await shop.follow(run)
        assert only(events, e.RunFailed)[0].error["code"] == "internal_error"
        assert types(await shop.run("And now?"))[-1] == "run.completed"


async def test_a_bug_in_the_fold_of_a_fact_fails_the_run(monkeypatch: pytest.MonkeyPatch):
    def bug(*_: object) -> None:
        raise ZeroDivisionError

    async with workshop(says("One two three"), says("Fine.")) as shop:
        with monkeypatch.context() as patch:
            patch.setitem(vars(__import__("runtime.thread").thread)["_HANDLERS"], e.MessageDelta, bug)
            events = await shop.run()
        assert only(events, e.RunFailed)[0].error["code"] == "internal_error"
        assert types(await shop.run("And now?"))[-1] == "run.completed"


async def test_each_run_ends_with_exactly_one_terminal_event():
    shops: list[Workshop] = []
    for rounds in ([says("ok")], [[down(retryable=False)]], [[s.TextDelta("x"), s.Completed("stop")]]):
        async with workshop(*rounds) as shop:
            events = await shop.run()
            assert [type(event) in e.TERMINAL for event in events] == [False] * (len(events) - 1) + [True]
            shops.append(shop)
    assert len(shops) == 3
