"""Busy threads: requests that wait, interrupt or steer, in one process over a store of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agui_bridge.transcript import transcript
from runtime import events as e
from runtime import samples as s
from runtime.budget import Budget
from runtime.items import Message, ToolSpec
from runtime.journal import Begun, Busy, Queued, QueueFull, Started
from runtime.live_runs import Performer
from runtime.run import CANCELLED, INTERRUPTED, QUEUED, SUCCEEDED, RunRecord
from runtime.testing import calls, says
from tests.contract.workshop import Workshop, only, types, until, workshop


def texts(shop: Workshop) -> list[str]:
    """The texts of the last prompt."""
    return [str(item.content) for item in shop.script.prompts[-1] if isinstance(item, Message)]


async def waits(shop: Workshop, text: str, policy: str = "enqueue", **more: Any) -> RunRecord:
    begun: Begun = await shop.try_begin(text, when_busy=policy, **more)
    assert isinstance(begun, Queued)
    return begun.run


async def at_work(shop: Workshop, text: str = "First") -> RunRecord:
    """A run whose model has said something."""
    run = await shop.begin(text)
    await shop.seen(run, "message.delta")
    return run


# --- waiting ------------------------------------------------------------------------------------------------------


async def test_what_waits_is_answered_in_turn_each_seeing_what_was_said_before():
    go = asyncio.Event()
    async with workshop([s.TextDelta("One"), go, *says("")[1:]], says("Two"), says("Three")) as shop:
        first = await at_work(shop)
        second, third = await waits(shop, "Second"), await waits(shop, "Third")
        assert (second.status, second.last_seq) == (QUEUED, 0)
        reading = asyncio.create_task(shop.follow(third))
        go.set()
        assert types(await shop.follow(first))[-1] == "run.completed"
        assert types(await shop.follow(second))[0] == "run.started"
        assert types(await reading)[-1] == "run.completed"
        assert texts(shop) == ["First", "One", "Second", "Two", "Third"]
        await shop.settled(third)
        assert len(shop.script.requests) == 3
        runs = [await shop.journal.find_run(run.run_id) for run in (first, second, third)]
        ends = [run.base + run.last_seq for run in runs if run is not None]
        assert [run.base for run in runs if run is not None] == [0, *ends[:-1]], "no gap and no overlap"


async def test_a_request_that_may_not_wait_is_refused_while_others_do():
    go = asyncio.Event()
    async with workshop([s.TextDelta("a"), go, *says("")[1:]]) as shop:
        await at_work(shop)
        await waits(shop, "Second", queue_limit=1)
        assert isinstance(await shop.try_begin("Third"), Busy)
        assert isinstance(await shop.try_begin("Third", when_busy="enqueue", queue_limit=1), QueueFull)


async def test_a_message_that_waits_can_be_withdrawn_and_is_never_said():
    go = asyncio.Event()
    async with workshop([s.TextDelta("One"), go, *says("")[1:]], says("Three")) as shop:
        first = await at_work(shop)
        second, third = await waits(shop, "Second"), await waits(shop, "Third")
        reading = asyncio.create_task(shop.follow(second))
        await until(lambda: shop.supervisor.readers(second.run_id) == 1)
        await shop.supervisor.cancel(second.run_id, "user")
        assert await reading == [e.RunCancelled("user", external_stop_confirmed=True)]
        assert (await shop.settled(second)).status == CANCELLED
        go.set()
        await shop.follow(first)
        await shop.follow(third)
        assert texts(shop) == ["First", "One", "Third"]


async def test_a_message_that_was_said_meanwhile_is_not_said_again():
    """A page shows what waits with its next request as well."""
    go = asyncio.Event()
    async with workshop([s.TextDelta("One"), go, *says("")[1:]], says("Two"), says("Three")) as shop:
        first = await at_work(shop)
        second = await waits(shop, "Second")
        said = (await shop.supervisor.line.request_of(second)).facts
        third = await waits(shop, "Third", facts=said)
        again = await shop.try_begin("Third", when_busy="enqueue", facts=[])
        go.set()
        for run in (first, second, third):
            await shop.follow(run)
        assert isinstance(again, Queued)
        await shop.follow(again.run)
        users = [text for text in texts(shop) if text in ("Second", "Third")]
        assert users.count("Second") == 1


async def test_the_calls_that_wait_for_the_page_are_closed_when_the_next_message_has_its_turn():
    go = asyncio.Event()
    async with workshop([go, *calls(("ask", "{}"))], says("Fine")) as shop:
        first = await shop.begin("First", client_tools=[ToolSpec("ask", "Asks", {"type": "object"})])
        await until(lambda: len(shop.script.requests) == 1)
        second = await waits(shop, "Second")
        go.set()
        await shop.follow(first)
        events = await shop.follow(second)
        assert types(events)[:3] == ["run.started", "tool.call.completed", "message.completed"]
        assert [done.kind for done in only(events, e.ToolCallCompleted)] == ["unanswered"]


async def test_what_waits_is_answered_after_a_restart():
    never = asyncio.Event()
    async with workshop([s.TextDelta("Half"), never], says("Two")) as shop:
        first = await at_work(shop)
        second = await waits(shop, "Second")
        await shop.supervisor.stop()
        await shop.supervisor.start()
        assert types(await shop.follow(first))[-1] == "run.interrupted"
        assert types(await shop.follow(second))[-1] == "run.completed"
        assert texts(shop) == ["First", "Second"]


async def test_a_drain_starts_nothing_that_waits():
    go = asyncio.Event()
    async with workshop([s.TextDelta("One"), go, *says("")[1:]]) as shop:
        first = await at_work(shop)
        second = await waits(shop, "Second")
        draining = asyncio.create_task(shop.supervisor.drain(5))
        await until(lambda: shop.supervisor.draining)
        go.set()
        await draining
        assert (await shop.settled(first)).status == SUCCEEDED
        assert (await shop.settled(second)).status == QUEUED


async def test_a_run_whose_agent_is_gone_does_not_wait_for_ever():
    go = asyncio.Event()
    async with workshop([s.TextDelta("One"), go, *says("")[1:]]) as shop:
        first = await at_work(shop)
        second = await waits(shop, "Second")
        shop.supervisor.line._performers = {}
        go.set()
        await shop.follow(first)
        assert types(await shop.follow(second)) == ["run.interrupted"]
        assert (await shop.settled(second)).status == INTERRUPTED


async def test_a_queued_run_is_frozen_with_the_agent_that_performs_it():
    go = asyncio.Event()
    async with workshop([s.TextDelta("One"), go, *says("")[1:]], says("Two")) as shop:
        first = await at_work(shop)
        second = await waits(shop, "Second")
        changed = type(shop.agent)("assistant", model=shop.model, instructions="Be brief.")
        shop.supervisor.line._performers = {"assistant": Performer(changed, shop.model)}
        go.set()
        await shop.follow(first)
        await shop.follow(second)
        record = await shop.settled(second)
        assert record.agent_snapshot_checksum not in (None, second.agent_snapshot_checksum)
        snapshot = await shop.journal.content(record.agent_snapshot_checksum or "")
        assert snapshot is not None
        assert b"Be brief." in snapshot


async def test_a_run_that_waited_and_that_nobody_reads_is_stopped_after_the_grace():
    go, never = asyncio.Event(), asyncio.Event()
    rounds = [s.TextDelta("One"), go, *says("")[1:]], [s.TextDelta("Two"), never]
    async with workshop(*rounds, grace_s=10) as shop:
        first = await at_work(shop)
        reading = asyncio.create_task(shop.follow(first))
        second = await waits(shop, "Second")
        go.set()
        await reading
        await until(lambda: len(shop.script.requests) == 2)
        shop.clock.advance(10)
        record = await shop.settled(second)
        assert record.status == CANCELLED


# --- interrupting -------------------------------------------------------------------------------------------------


async def test_who_interrupts_stops_the_run_at_work_and_goes_before_those_who_wait():
    never = asyncio.Event()
    async with workshop([s.TextDelta("Half"), never], says("Now"), says("Later")) as shop:
        first = await at_work(shop)
        later = await waits(shop, "Later?")
        now = await waits(shop, "Now!", "interrupt")
        assert only(await shop.follow(first), e.RunCancelled)[0].reason == "superseded"
        assert types(await shop.follow(now))[-1] == "run.completed"
        assert types(await shop.follow(later))[-1] == "run.completed"
        assert texts(shop) == ["First", "Now!", "Now", "Later?"]


# --- steering -----------------------------------------------------------------------------------------------------


async def test_a_message_that_steers_is_taken_in_before_the_next_model_call():
    go = asyncio.Event()

    async def work() -> str:
        await go.wait()
        return "worked"

    async with workshop(calls(("work", "{}")), says("Both."), tools=[work]) as shop:
        first = await shop.begin("First")
        await shop.seen(first, "tool.execution.started")
        steering = await waits(shop, "And this", "steer")
        go.set()
        events = await shop.follow(first)
        order = [
            kind for kind in types(events) if kind in ("tool.call.completed", "message.completed", "round.started")
        ]
        assert order == [
            "message.completed",
            "round.started",
            "tool.call.completed",
            "message.completed",
            "round.started",
            "message.completed",
        ]
        kinds = [type(item).__name__ for item in shop.script.prompts[-1]]
        assert kinds == ["Message", "FunctionCall", "FunctionCallOutput", "Message"]
        assert texts(shop) == ["First", "And this"]
        taken = await shop.follow(steering)
        assert types(taken) == ["run.started", "run.completed"]
        assert only(taken, e.RunCompleted)[0].absorbed_by == first.run_id
        assert len(shop.script.requests) == 2


async def test_a_run_that_was_about_to_end_goes_on_with_what_was_said_meanwhile():
    go = asyncio.Event()
    async with workshop([s.TextDelta("One."), go, *says("")[1:]], says("Two."), says("Three.")) as shop:
        first = await at_work(shop)
        await waits(shop, "And?", "steer")
        go.set()
        events = await shop.follow(first)
        assert types(events).count("run.completed") == 1
        message = only(events, e.MessageCompleted)[-1]
        assert [part["text"] for part in message.content] == ["One.", "Two."]
        await shop.run("Then?")
        assert texts(shop) == ["First", "One.", "And?", "Two.", "Then?"]
        kept = [str(getattr(item, "content", "")) for item in await shop.items()]
        assert kept == ["First", "One.", "And?", "Two.", "Then?", "Three."], "read anew it is the same"


async def test_a_message_comes_too_late_to_steer_and_has_its_own_turn():
    async with workshop([s.TextDelta("One."), go := asyncio.Event(), *says("")[1:]], says("Two.")) as shop:
        agent_budget = Budget(rounds=1)
        first = await shop.begin("First", budget=agent_budget)
        await shop.seen(first, "message.delta")
        steering = await waits(shop, "And?", "steer")
        go.set()
        assert types(await shop.follow(first))[-1] == "run.completed"
        assert "message.started" in types(await shop.follow(steering))
        assert texts(shop) == ["First", "One.", "And?"]


async def test_a_run_that_is_cancelled_takes_nothing_in():
    never = asyncio.Event()
    async with workshop([s.TextDelta("Half"), never], says("Mine.")) as shop:
        first = await at_work(shop)
        steering = await waits(shop, "And?", "steer")
        await shop.supervisor.cancel(first.run_id, "user", 5)
        assert types(await shop.follow(first))[-1] == "run.cancelled"
        assert types(await shop.follow(steering))[-1] == "run.completed"
        assert texts(shop) == ["First", "And?"]


@pytest.mark.parametrize("count", [1, 3])
async def test_all_that_waits_to_steer_is_taken_in_at_once_and_in_order(count: int):
    go = asyncio.Event()
    async with workshop([s.TextDelta("One."), go, *says("")[1:]], says("All.")) as shop:
        first = await at_work(shop)
        for number in range(count):
            await waits(shop, f"More {number}", "steer")
        go.set()
        await shop.follow(first)
        assert texts(shop) == ["First", "One.", *(f"More {number}" for number in range(count))]
        assert len(shop.script.requests) == 2


async def test_a_steered_run_is_restated_in_the_order_in_which_it_was_said():
    go = asyncio.Event()
    async with workshop([s.TextDelta("One."), go, *says("")[1:]], says("Two.")) as shop:
        first = await at_work(shop)
        await waits(shop, "And?", "steer")
        go.set()
        await shop.follow(first)
        for thread in (
            await shop.supervisor.thread(first.thread_id),
            await shop.supervisor.committed_thread(first.thread_id),
        ):
            lines = [(line.role, line.message["content"]) for line in transcript(thread)]
            assert lines == [("user", "First"), ("assistant", "One."), ("user", "And?"), ("assistant", "Two.")]


async def test_nobody_is_asked_whether_anybody_waits_on_a_thread_where_nobody_can():
    async with workshop(says("One")) as shop:
        asked: list[str] = []
        inner = shop.journal.queued_runs

        async def counting(thread_id: str) -> list[RunRecord]:
            asked.append(thread_id)
            return await inner(thread_id)

        shop.journal.queued_runs = counting
        assert isinstance(await shop.try_begin("First"), Started)
        await shop.run("Second", "s2")
        assert asked == []
