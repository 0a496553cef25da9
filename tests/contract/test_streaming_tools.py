"""Tools that stream: what a generator yields is told while it is at work, and only what it yields last is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any

import pytest

from runtime import events as e
from runtime.events import ToolCallCommitted, ToolCallProgress
from runtime.items import FunctionCallOutput
from runtime.journal.compaction import compacted
from runtime.limits import Limits
from runtime.testing import calls, says
from runtime.thread import PROGRESS
from runtime.tool_progress import ToolProgress
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import ToolError, tool
from tests.contract.workshop import Workshop, only, types, until, workshop

ONE_CALL = calls(("work", "{}"))
AT_ONCE = Limits(stop_grace_s=0.2, progress_interval_s=0)


def output(events: list[e.Event]) -> tuple[Any, str]:
    """The result and the kind of the one call's output."""
    (done,) = only(events, e.ToolCallCompleted)
    return done.result, done.kind


def progress(events: list[e.Event]) -> list[Any]:
    """What was told of the calls' progress."""
    return [each.value for each in only(events, e.ToolCallProgress)]


async def outcome_of(work: Any) -> tuple[Any, str]:
    """What a call of this tool comes to."""
    async with workshop(ONE_CALL, says("Fine."), tools=[work]) as shop:
        events = await shop.run()
        assert types(events)[-1] == "run.completed"
        return output(events)


async def told(shop: Workshop, run_id: str, steps: Mapping[Any, asyncio.Event]) -> None:
    """Set the event of each value as soon as a reader is told of that progress, until all are set."""
    cursor = shop.supervisor.follow(run_id)
    try:
        async with asyncio.timeout(10):
            while not all(step.is_set() for step in steps.values()):
                for record in await cursor.next():
                    if isinstance(record.event, e.ToolCallProgress):
                        steps[record.event.value].set()
    finally:
        cursor.close()


# --- what is told and what is kept --------------------------------------------------------------------------------


async def test_what_is_yielded_is_told_while_the_tool_is_at_work_and_the_last_of_it_is_the_output():
    go_on = asyncio.Event()

    async def work() -> AsyncGenerator[Any, None]:
        yield {"percent": 50}
        await go_on.wait()
        yield "the answer"

    async with workshop(ONE_CALL, says("Fine."), tools=[work]) as shop:
        run = await shop.begin()
        assert await shop.seen(run, "tool.call.progress") == ToolCallProgress("call_0", "work", 1, {"percent": 50})
        go_on.set()
        events = await shop.follow(run)
        assert (progress(events), output(events)) == ([{"percent": 50}], ("the answer", "result"))
        (read,) = [item for item in shop.script.prompts[1] if isinstance(item, FunctionCallOutput)]
        assert read.output == "the answer"
        assert [started.streams for started in only(events, e.ToolExecutionStarted)] == [True]


async def test_a_tool_that_yields_nothing_has_an_empty_output():
    async def work() -> AsyncGenerator[str, None]:
        if False:
            yield ""

    assert await outcome_of(work) == ("", "result")


async def test_a_value_that_is_yielded_last_becomes_text_as_a_returned_one_does():
    async def work() -> AsyncGenerator[Any, None]:
        yield "first"
        yield {"found": 2}

    assert await outcome_of(work) == ('{"found":2}', "result")


async def test_a_tool_that_yields_fast_and_ends_has_told_nothing_but_its_output():
    async def work() -> AsyncGenerator[int, None]:
        for number in range(1000):
            yield number

    async with workshop(ONE_CALL, says("Fine."), tools=[work]) as shop:
        events = await shop.run()
        assert (progress(events), output(events)) == ([], ("999", "result"))


async def test_of_what_comes_too_fast_the_latest_is_told_and_the_numbers_say_what_is_missing():
    heard: list[ToolCallProgress] = []
    noted = ToolProgress(ToolCallCommitted("call_0", "work", "{}", "server"), heard.append, 0.01)
    for value in ("a", "b", "c"):
        noted.note(value)
    await until(lambda: len(heard) == 1)
    noted.note("d")
    await until(lambda: len(heard) == 2)
    noted.note("e")
    noted.close()
    noted.note("f")
    assert [(each.number, each.value) for each in heard] == [(3, "c"), (4, "d")]


async def test_a_value_that_the_tool_goes_on_changing_is_told_as_it_was():
    go_on = asyncio.Event()

    async def work() -> AsyncGenerator[Any, None]:
        found: list[str] = ["tea"]
        yield found
        found.append("jam")
        await go_on.wait()
        yield found

    async with workshop(ONE_CALL, tools=[work]) as shop:
        run = await shop.begin()
        assert getattr(await shop.seen(run, "tool.call.progress"), "value", None) == ["tea"]
        go_on.set()
        assert output(await shop.follow(run)) == ('["tea","jam"]', "result")


async def test_a_synchronous_generator_streams_from_its_thread():
    go_on = threading.Event()

    def work() -> Generator[str, None, None]:
        yield "half"
        go_on.wait(20)
        yield "the answer"

    async with workshop(ONE_CALL, tools=[work]) as shop:
        run = await shop.begin()
        await shop.seen(run, "tool.call.progress")
        go_on.set()
        events = await shop.follow(run)
        assert (progress(events), output(events)) == (["half"], ("the answer", "result"))


async def test_a_synchronous_generator_that_returns_a_value_is_told_to_yield_it():
    def work() -> Generator[str, None, str]:
        yield "half"
        return "the answer"

    result, kind = await outcome_of(work)
    assert kind == "error"
    assert "its output is what it yields last" in result


async def test_calls_that_run_together_tell_of_their_progress_each():
    steps = {"a": asyncio.Event(), "b": asyncio.Event()}

    @tool(parallel=True)
    async def work(name: str) -> AsyncGenerator[str, None]:
        yield name
        await asyncio.gather(*(step.wait() for step in steps.values()))
        yield f"{name} is done"

    made = calls(("work", '{"name": "a"}'), ("work", '{"name": "b"}'))
    async with workshop(made, tools=[work]) as shop:
        run = await shop.begin()
        await told(shop, run.run_id, steps)
        events = await shop.follow(run)
        assert [(each.tool_call_id, each.value) for each in only(events, e.ToolCallProgress)] == [
            ("call_0", "a"),
            ("call_1", "b"),
        ]
        assert sorted(done.result for done in only(events, e.ToolCallCompleted)) == ["a is done", "b is done"]


async def test_what_a_streaming_tool_makes_of_the_state_is_committed_with_its_output():
    go_on = asyncio.Event()

    async def work(ctx: ToolContext) -> AsyncGenerator[str, None]:
        ctx.state["found"] = 1
        yield "half"
        await go_on.wait()
        ctx.state["found"] = 2
        yield "done"

    async with workshop(ONE_CALL, tools=[work]) as shop:
        run = await shop.begin()
        await shop.seen(run, "tool.call.progress")
        go_on.set()
        steps = types(await shop.follow(run))
        *_, change, end = steps[: steps.index("tool.call.completed") + 1]
        assert (change[:6], end) == ("state.", "tool.call.completed")
        assert len([step for step in steps if step.startswith("state.")]) == 1
        assert (await shop.supervisor.thread(run.thread_id)).state == {"found": 2}


# --- how it can end -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError("disk on fire"), ToolError("disk on fire")])
async def test_a_tool_that_fails_after_some_progress_has_an_error_for_output(error: Exception):
    async def work() -> AsyncGenerator[str, None]:
        yield "half"
        raise error

    result, kind = await outcome_of(work)
    assert (result.removeprefix("RuntimeError: "), kind) == ("disk on fire", "error")


def hanging(begun: asyncio.Event, closed: asyncio.Event) -> Any:
    """A tool that shows something and then waits for ever."""

    async def work() -> AsyncGenerator[str, None]:
        try:
            yield "half"
            begun.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    return work


async def test_a_run_that_is_stopped_closes_the_generator_and_nothing_it_showed_is_kept():
    begun, closed = asyncio.Event(), asyncio.Event()
    async with workshop(ONE_CALL, tools=[hanging(begun, closed)]) as shop:
        run = await shop.begin()
        await shop.seen(run, "tool.call.progress")
        await shop.supervisor.cancel(run.run_id, "user", 5)
        events = await shop.follow(run)
        assert closed.is_set()
        assert output(events)[1] == "cancelled"
        (end,) = only(events, e.RunCancelled)
        assert (end.external_stop_confirmed, end.abandoned) == (True, None)
        assert "half" not in str(await shop.items())


async def test_a_generator_that_swallows_its_cancellation_is_closed_where_it_yields():
    begun, closed = asyncio.Event(), asyncio.Event()

    async def work() -> AsyncGenerator[str, None]:
        try:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield "on and on"
                closed.clear()  # never comes here
        finally:
            closed.set()

    async with workshop(ONE_CALL, tools=[work]) as shop:
        run = await shop.begin()
        await begun.wait()
        await shop.supervisor.cancel(run.run_id, "user", 5)
        events = await shop.follow(run)
        assert closed.is_set()
        (end,) = only(events, e.RunCancelled)
        assert (end.external_stop_confirmed, progress(events)) == (True, [])


async def test_a_generator_in_a_thread_is_closed_where_it_yields_when_its_run_is_stopped():
    begun, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def work(ctx: ToolContext) -> Generator[str, None, None]:
        try:
            begun.set()
            while not ctx.cancelled:
                go_on.wait(0.001)
            yield "on and on"
            yield "and on"
        finally:
            closed.set()

    async with workshop(ONE_CALL, tools=[work], limits=Limits(stop_grace_s=5)) as shop:
        run = await shop.begin()
        await asyncio.to_thread(begun.wait)
        await shop.supervisor.cancel(run.run_id, "user", 5)
        events = await shop.follow(run)
        assert closed.is_set()
        assert only(events, e.RunCancelled)[0].external_stop_confirmed
        assert output(events)[1] == "cancelled"


async def test_a_tool_whose_time_is_over_is_closed_too():
    begun, closed = asyncio.Event(), asyncio.Event()
    work = tool(timeout_s=0.05)(hanging(begun, closed))
    async with workshop(ONE_CALL, tools=[work], limits=AT_ONCE) as shop:
        events = await shop.run()
        assert closed.is_set()
        assert (progress(events), output(events)) == (["half"], ("timed out after 0.05 s", "error"))


# --- provisional --------------------------------------------------------------------------------------------------


def activities(shop_thread: Any) -> list[Any]:
    """What is shown of progress."""
    return [each.content for each in shop_thread.turn.activities.values() if each.activity_type == PROGRESS]


async def test_the_fold_has_the_latest_progress_of_a_call_until_its_output_comes():
    go_on = asyncio.Event()

    async def work() -> AsyncGenerator[str, None]:
        yield "half"
        await go_on.wait()
        yield "done"

    async with workshop(ONE_CALL, tools=[work]) as shop:
        run = await shop.begin()
        await shop.seen(run, "tool.call.progress")
        thread = await shop.supervisor.thread(run.thread_id)
        assert activities(thread) == [{"toolCallId": "call_0", "toolName": "work", "value": "half"}]
        go_on.set()
        await shop.follow(run)
        assert activities(await shop.supervisor.thread(run.thread_id)) == []


async def test_a_run_that_is_over_is_read_without_its_progress_and_compacted_to_the_last_of_it():
    steps = {number: asyncio.Event() for number in range(3)}

    async def work() -> AsyncGenerator[int, None]:
        for number, step in steps.items():
            yield number
            await step.wait()

    async with workshop(ONE_CALL, tools=[work]) as shop:
        run = await shop.begin()
        await told(shop, run.run_id, steps)
        events = await shop.follow(run)
        assert progress(events) == [0, 1, 2]
        [(_, records)] = await shop.journal.read_thread(run.thread_id, 0)
        assert not [record for record in records if isinstance(record.event, e.ToolCallProgress)]
        whole = await shop.journal.read(run.run_id, 0, 100)
        [slim] = [record for record in compacted(whole) if isinstance(record.event, e.ToolCallProgress)]
        assert (slim.from_seq, slim.event) == (slim.seq - 2, ToolCallProgress("call_0", "work", 3, 2))


# --- beside it ----------------------------------------------------------------------------------------------------


async def test_a_streaming_tool_makes_artifacts_does_things_once_and_says_more_beside_its_progress():
    async def work(ctx: ToolContext) -> AsyncGenerator[Any, None]:
        yield "half"
        made = await ctx.artifact("tea.txt", "text/plain", "tea")
        number = await ctx.once("number", lambda: 42)
        ctx.custom("shop.paid", number)
        yield f"{made.name}: {number}"

    async with workshop(ONE_CALL, tools=[work]) as shop:
        events = await shop.run()
        assert output(events) == ("tea.txt: 42", "result")
        assert {"artifact.created", "tool.call.recorded", "custom"} < set(types(events))


async def test_a_streaming_tool_that_asks_suspends_its_run():
    async def work(ctx: ToolContext) -> AsyncGenerator[Any, None]:
        yield "half"
        answer = await ctx.interrupt(message="How many?")
        yield f"{answer} it is"

    async with workshop(ONE_CALL, tools=[work], limits=AT_ONCE) as shop:
        run = await shop.begin()
        events = await shop.follow(run)
        assert types(events)[-1] == "run.suspended"
        assert only(events, e.ToolCallCompleted) == []
        thread = await shop.supervisor.thread(run.thread_id)
        assert activities(thread) == []
        assert len(thread.open_interrupts()) == 1
