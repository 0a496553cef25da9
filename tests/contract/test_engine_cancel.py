"""Stopping a run: whatever it is at, it ends once, everything is closed, and what could not be stopped is named."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest

from runtime import events as e
from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.errors import ProviderError
from runtime.limits import Limits
from runtime.testing import SamplesDialect, calls, says
from tests.contract.workshop import Workshop, only, types, until, workshop

ONE_CALL = calls(("work", "{}"))


async def cancelled(shop: Workshop, run_id: str, events: list[e.Event]) -> e.RunCancelled:
    """The run's end, after looking at what every cancelled run has."""
    assert types(events).count("run.cancelling") == 1
    assert types(events)[-1] == "run.cancelled"
    calls_made = [call.tool_call_id for call in only(events, e.ToolCallCommitted)]
    assert [done.tool_call_id for done in only(events, e.ToolCallCompleted)] == calls_made
    record = await shop.journal.find_run(run_id)
    assert record is not None
    assert record.status == "cancelled"
    return only(events, e.RunCancelled)[0]


async def test_a_run_is_cancelled_in_the_midst_of_its_model_stream():
    never = asyncio.Event()
    async with workshop([s.TextDelta("Half a "), never, *says("word")], says("Again.")) as shop:
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        await shop.supervisor.cancel(run.run_id, "user", 5)
        end = await cancelled(shop, run.run_id, await shop.follow(run))
        assert (end.reason, end.external_stop_confirmed, end.abandoned) == ("user", True, None)
        assert shop.script.closed == 1
        events = await shop.run("Go on")
        assert types(events)[-1] == "run.completed"
        assert "Half a " not in str(shop.script.prompts[1])


async def test_what_was_half_said_stays_in_the_transcript_marked_as_provisional():
    async with workshop([s.TextDelta("Half a "), asyncio.Event()]) as shop:
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        await shop.supervisor.cancel(run.run_id, "user", 5)
        message = only(await shop.follow(run), e.MessageCompleted)[-1]
        assert message.content == [
            {"part_id": "p0", "kind": "text", "round": 1, "committed": False, "text": "Half a "},
        ]


async def test_an_async_tool_is_cancelled_and_its_call_closed():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async with workshop(ONE_CALL, says("Fine."), tools=[work]) as shop:
        run = await shop.begin()
        await begun.wait()
        await shop.supervisor.cancel(run.run_id, "user", 5)
        events = await shop.follow(run)
        end = await cancelled(shop, run.run_id, events)
        assert ended.is_set()
        assert (end.external_stop_confirmed, end.abandoned) == (True, None)
        assert [done.kind for done in only(events, e.ToolCallCompleted)] == ["cancelled"]
        assert types(await shop.run("Go on"))[-1] == "run.completed"


async def test_a_sync_tool_that_does_not_stop_is_named_and_its_late_result_reaches_nobody():
    go_on, begun = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        go_on.wait(20)
        return "too late"

    async with workshop(ONE_CALL, says("Fine."), tools=[work], limits=Limits(stop_grace_s=5)) as shop:
        run = await shop.begin()
        await asyncio.to_thread(begun.wait)
        try:
            await shop.supervisor.cancel(run.run_id, "user", 5)
            events = await shop.follow(run)
            end = await cancelled(shop, run.run_id, events)
            assert (end.external_stop_confirmed, end.abandoned) == (False, ["call_0"])
        finally:
            go_on.set()
        await until(lambda: not shop.supervisor.live.tool_threads.abandoned)
        record = await shop.settled(run)
        assert len(await shop.journal.read(run.run_id, 0, 100)) == record.last_seq == len(events)
        assert "too late" not in str(await shop.items())
        assert types(await shop.run("Go on"))[-1] == "run.completed"


async def test_a_tool_that_swallows_its_cancellation_is_named():
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work() -> str:
        begun.set()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    async with workshop(ONE_CALL, says("Fine."), tools=[work], limits=Limits(stop_grace_s=5)) as shop:
        run = await shop.begin()
        await begun.wait()
        try:
            await shop.supervisor.cancel(run.run_id, "user", 5)
            events = await shop.follow(run)
            end = await cancelled(shop, run.run_id, events)
            assert (end.external_stop_confirmed, end.abandoned) == (False, ["call_0"])
        finally:
            go_on.set()
        await until(lambda: not shop.supervisor.live.tool_threads.abandoned)
        assert len(await shop.journal.read(run.run_id, 0, 100)) == len(events)


async def test_a_run_is_cancelled_while_it_waits_to_try_again():
    down = ProviderError("down", retryable=True, retry_after_s=50)
    async with workshop([down], says("never")) as shop:
        run = await shop.begin()
        await until(lambda: shop.clock.sleepers == 1)
        await shop.supervisor.cancel(run.run_id, "user", 5)
        end = await cancelled(shop, run.run_id, await shop.follow(run))
        assert end.external_stop_confirmed
        assert len(shop.script.requests) == 1


async def test_a_cancel_that_comes_when_the_run_is_complete_changes_nothing():
    async with workshop(says("Done.")) as shop:
        run = await shop.begin()
        engine = shop.supervisor.live.runs[run.run_id].engine
        await until(lambda: engine._work is not None and engine._work.done())
        await shop.supervisor.cancel(run.run_id, "user", 5)
        events = await shop.follow(run)
        assert types(events)[-1] == "run.completed"
        assert "run.cancelling" not in types(events)
        await shop.supervisor.cancel(run.run_id, "user", 5)
        assert (await shop.settled(run)).status == "succeeded"


@pytest.mark.parametrize("turns", range(0, 60, 3))
async def test_a_cancel_at_any_moment_leaves_one_whole_end(turns: int):
    def work() -> str:
        return "worked"

    async with workshop(ONE_CALL, says("Done."), tools=[work]) as shop:
        run = await shop.begin()
        for _ in range(turns):
            await asyncio.sleep(0)
        await shop.supervisor.cancel(run.run_id, "user", 5)
        events = await shop.follow(run)
        assert types(events)[-1] in ("run.cancelled", "run.completed")
        assert ("run.cancelling" in types(events)) == (types(events)[-1] == "run.cancelled")
        assert len([event for event in events if type(event) in e.TERMINAL]) == 1
        assert len(only(events, e.ToolCallCompleted)) == len(only(events, e.ToolCallCommitted))
        assert types(await shop.run("Go on"))[-1] == "run.completed"


async def test_the_first_of_two_cancels_counts():
    async with workshop([s.TextDelta("Half"), asyncio.Event()]) as shop:
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        await asyncio.gather(
            shop.supervisor.cancel(run.run_id, "user", 5),
            shop.supervisor.cancel(run.run_id, "superseded", 5),
        )
        end = await cancelled(shop, run.run_id, await shop.follow(run))
        assert end.reason == "user"


async def test_a_run_can_be_cancelled_before_it_does_anything():
    async with workshop(says("never")) as shop:
        run = await shop.begin()
        shop.supervisor.live.runs[run.run_id].engine.cancel("user")
        events = await shop.follow(run)
        assert types(events) == ["run.started", "message.completed", "run.cancelling", "run.cancelled"]
        assert only(events, e.RunCancelled)[0].external_stop_confirmed
        assert shop.script.requests == []


class Stubborn:
    """A model whose stream does not let itself be cancelled."""

    name = "m"
    provider = "testing"

    def __init__(self, fault: ProviderError | None) -> None:
        self.dialect = SamplesDialect()
        self.asked = 0
        self.waiting = asyncio.Event()
        self._fault = fault

    async def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        self.asked += 1
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self._fault is not None:
                raise self._fault from None
        for sample in calls(("work", "{}")):
            yield {"sample": sample}


@pytest.mark.parametrize(
    "fault", [None, ProviderError("cut off", retryable=True)], ids=["goes on as if nothing was", "calls it an error"]
)
async def test_a_model_that_swallows_the_cancellation_is_neither_listened_to_nor_asked_again(
    fault: ProviderError | None,
):
    worked: list[str] = []

    def work() -> str:
        worked.append("worked")
        return "worked"

    model = Stubborn(fault)
    async with workshop(model=model, tools=[work]) as shop:
        run = await shop.begin()
        await model.waiting.wait()
        await shop.supervisor.cancel(run.run_id, "user", 5)
        end = await cancelled(shop, run.run_id, await shop.follow(run))
        assert end.external_stop_confirmed
        assert (model.asked, worked, shop.clock.sleepers) == (1, [], 0)


async def test_a_model_stream_that_will_not_close_is_given_up_after_a_while():
    waiting, go_on = asyncio.Event(), asyncio.Event()

    class Stuck(Stubborn):
        async def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
            yield {"sample": s.TextDelta("Half")}
            waiting.set()
            while not go_on.is_set():
                try:
                    await go_on.wait()
                except asyncio.CancelledError:
                    continue
            yield {"sample": s.TextDelta(" and more")}

    async with workshop(model=Stuck(None), limits=Limits(stop_grace_s=0.05)) as shop:
        run = await shop.begin()
        await waiting.wait()
        work = shop.supervisor.live.runs[run.run_id].engine._work
        assert work is not None
        await shop.supervisor.cancel(run.run_id, "user", 5)
        events = await shop.follow(run)
        end = await cancelled(shop, run.run_id, events)
        assert not end.external_stop_confirmed
        go_on.set()
        await asyncio.wait({work})
        assert len(await shop.journal.read(run.run_id, 0, 100)) == len(events)
