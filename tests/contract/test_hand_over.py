"""Two processes over one store: runs are handed over, gone on with, cancelled, steered and read across them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from runtime import events as e
from runtime import samples as s
from runtime.authority import ANONYMOUS
from runtime.errors import ReaderDropped
from runtime.items import Message
from runtime.journal import Queued, Started
from runtime.live_runs import Performer
from runtime.run import CANCELLED, INTERRUPTED, RUNNING, SUCCEEDED, RunRecord
from runtime.samples import AssistantMessageDone, Completed, TextDelta
from runtime.supervisor import Leasing
from runtime.system import mint_uuid7
from runtime.testing import Line, calls, says
from tests.contract.workshop import Workshop, asking, only, types, until, workshop
from tests.stores import PostgresHome

pytestmark = pytest.mark.needs_postgres

SELDOM = Leasing(60, 60)
"""No heartbeat comes within a test: what is heard is heard by wakes."""


@asynccontextmanager
async def processes(
    home: PostgresHome, first: Iterable[Iterable[Line]], second: Iterable[Iterable[Line]] = (), **given: Any
) -> AsyncGenerator[tuple[Workshop, Workshop], None]:
    """Two supervisors with stores of their own over the same facts; each with its model's rounds."""
    given = {"leasing": SELDOM, "mint": mint_uuid7, **given}
    async with (
        workshop(*first, journal=home.store(), **given) as one,
        workshop(*second, journal=home.store(), **given) as other,
    ):
        yield one, other


def prompt(shop: Workshop) -> list[str]:
    return [str(item.content) for item in shop.script.prompts[-1] if isinstance(item, Message)]


async def begun(shop: Workshop, text: str, client_run_id: str, **more: Any):
    """Ask as a front does, under an id of its own."""
    session, thread = await shop.supervisor.open(ANONYMOUS, "s1")
    return await shop.supervisor.begin(asking(thread, text, "s1", client_run_id, **more), session, thread)


async def over(shop: Workshop, run: RunRecord) -> RunRecord:
    """The run's record once it is over, wherever it was at work."""
    async with asyncio.timeout(20):
        while True:
            found = await shop.journal.find_run(run.run_id)
            if found is not None and found.is_over:
                return found
            await asyncio.sleep(0.005)


class Gate:
    """A tool that is at work until it is opened."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.calls = 0

    async def work(self) -> str:
        self.calls += 1
        await self.open.wait()
        return "worked"


# --- hand-over ----------------------------------------------------------------------------------------------------


def counted(text: str) -> list[Line]:
    """A round that says something, with what it used."""
    *lines, last = says(text)
    assert isinstance(last, Completed)
    return [*lines, Completed(last.finish, {"input_tokens": 2, "output_tokens": 3})]


async def test_a_run_is_gone_on_with_by_another_process_from_its_next_round(postgres_home: PostgresHome):
    gate = Gate()
    async with processes(postgres_home, [calls(("work", "{}"))], [counted("All done.")], tools=[gate.work]) as (a, b):
        run = await a.begin("First")
        await a.seen(run, "tool.execution.started")
        reading_here, reading_there = asyncio.create_task(a.follow(run)), asyncio.create_task(b.follow(run))
        draining = asyncio.create_task(a.supervisor.drain(10))
        await until(lambda: a.supervisor.live.leaving)
        gate.open.set()
        await draining
        record = await over(b, run)
        assert (record.status, record.fence) == (SUCCEEDED, run.fence + 1)
        assert record.executor_instance_id == b.supervisor.instance_id
        assert gate.calls == 1
        events = await reading_there
        with pytest.raises(ReaderDropped):
            await reading_here  # who reads there comes back with a cursor
        assert [kind for kind in types(events) if kind.startswith("run.")] == ["run.started", "run.completed"]
        assert [started.round for started in only(events, e.RoundStarted)] == [1, 2]
        message = only(events, e.MessageCompleted)[-1]
        assert message.message_id == only(events, e.MessageStarted)[0].message_id
        assert [part["part_id"] for part in message.content] == ["p0", "p1"]
        assert [type(item).__name__ for item in b.script.prompts[-1]] == [
            "Message",
            "FunctionCall",
            "FunctionCallOutput",
        ]
        assert record.usage == [{"provider": "testing", "model": b.model.name, "input_tokens": 2, "output_tokens": 3}]
        then = await begun(b, "Then?", "then")
        assert isinstance(then, Started)
        assert types(await b.follow(then.run))[-1] == "run.completed"


async def test_calls_that_have_not_begun_are_executed_by_who_takes_the_run(postgres_home: PostgresHome):
    gate, told = Gate(), asyncio.Event()
    gate.open.set()
    rounds = [TextDelta("Let me see. "), told, AssistantMessageDone(), *calls(("work", "{}"))]
    async with processes(postgres_home, [rounds], [says("Done.")], tools=[gate.work]) as (a, b):
        run = await a.begin("First")
        await a.seen(run, "message.delta")
        draining = asyncio.create_task(a.supervisor.drain(10))
        await until(lambda: a.supervisor.live.leaving)
        told.set()
        await draining
        assert (await over(b, run)).status == SUCCEEDED
        assert gate.calls == 1
        assert len(only(await b.follow(run), e.ToolExecutionStarted)) == 1


async def test_a_run_of_an_agent_that_is_another_one_there_ends_as_interrupted(postgres_home: PostgresHome):
    gate = Gate()
    async with processes(postgres_home, [calls(("work", "{}"))], tools=[gate.work]) as (a, b):
        changed = type(b.agent)("assistant", model=b.model, instructions="Be brief.")
        b.supervisor._hand_over._performers = {"assistant": Performer(changed, b.model)}
        run = await a.begin("First")
        await a.seen(run, "tool.execution.started")
        draining = asyncio.create_task(a.supervisor.drain(10))
        await until(lambda: a.supervisor.live.leaving)
        gate.open.set()
        await draining
        record = await over(b, run)
        assert record.status == INTERRUPTED
        assert only(await b.follow(run), e.RunInterrupted)[0].reason == "agent_changed"
        assert b.script.requests == []


async def test_a_run_that_nobody_takes_is_closed_once_its_time_is_over(postgres_home: PostgresHome):
    gate = Gate()
    async with workshop(
        calls(("work", "{}")), journal=postgres_home.store(), leasing=SELDOM, mint=mint_uuid7, tools=[gate.work]
    ) as a:
        run = await a.begin("First")
        await a.seen(run, "tool.execution.started")
        draining = asyncio.create_task(a.supervisor.drain(10))
        await until(lambda: a.supervisor.live.leaving)
        gate.open.set()
        await draining
        found = await a.journal.find_run(run.run_id)
        assert found is not None
        assert (found.status, found.executor_instance_id) == (RUNNING, None)
    await postgres_home.pass_time(60)
    async with workshop(journal=postgres_home.store(), leasing=SELDOM, mint=mint_uuid7) as later:
        assert (await over(later, run)).status == INTERRUPTED


async def test_the_restart_of_the_only_process_goes_on_with_what_it_let_go_of(postgres_home: PostgresHome):
    gate = Gate()
    given: dict[str, Any] = {"leasing": SELDOM, "mint": mint_uuid7, "tools": [gate.work]}
    async with workshop(calls(("work", "{}")), journal=postgres_home.store(), **given) as a:
        run = await a.begin("First")
        await a.seen(run, "tool.execution.started")
        draining = asyncio.create_task(a.supervisor.drain(10))
        await until(lambda: a.supervisor.live.leaving)
        gate.open.set()
        await draining
    async with workshop(says("Done."), journal=postgres_home.store(), **given) as again:
        assert (await over(again, run)).status == SUCCEEDED
        assert gate.calls == 1


async def test_what_does_not_come_to_a_boundary_in_time_is_interrupted(postgres_home: PostgresHome):
    never = asyncio.Event()
    async with processes(postgres_home, [[s.TextDelta("Half"), never]]) as (a, b):
        run = await a.begin("First")
        await a.seen(run, "message.delta")
        await a.supervisor.drain(0.05)
        assert (await over(b, run)).status == INTERRUPTED


# --- waiting across processes ---------------------------------------------------------------------------------------


async def test_a_message_sent_to_one_process_waits_for_a_run_of_the_other(postgres_home: PostgresHome):
    go = asyncio.Event()
    async with processes(postgres_home, [[s.TextDelta("One"), go, *says("")[1:]], says("Two")]) as (a, b):
        first = await a.begin("First")
        await a.seen(first, "message.delta")
        waiting = await begun(b, "Second", "other", when_busy="enqueue")
        assert isinstance(waiting, Queued)
        reading = asyncio.create_task(b.follow(waiting.run))
        go.set()
        events = await reading
        assert types(events)[-1] == "run.completed"
        asked = a if len(a.script.requests) == 2 else b
        assert prompt(asked) == ["First", "One", "Second"]


async def test_a_message_sent_to_one_process_steers_a_run_of_the_other(postgres_home: PostgresHome):
    gate = Gate()
    async with processes(postgres_home, [calls(("work", "{}")), says("Both.")], tools=[gate.work]) as (a, b):
        first = await a.begin("First")
        await a.seen(first, "tool.execution.started")
        steering = await begun(b, "And this", "other", when_busy="steer")
        assert isinstance(steering, Queued)
        reading = asyncio.create_task(b.follow(steering.run))
        gate.open.set()
        assert only(await reading, e.RunCompleted)[0].absorbed_by == first.run_id
        assert types(await b.follow(first))[-1] == "run.completed"
        assert prompt(a) == ["First", "And this"]


async def test_a_message_sent_to_one_process_interrupts_a_run_of_the_other(postgres_home: PostgresHome):
    never = asyncio.Event()
    rounds = [[s.TextDelta("Half"), never], says("Now")]
    async with processes(postgres_home, rounds, [says("Now")]) as (a, b):
        first = await a.begin("First")
        await a.seen(first, "message.delta")
        waiting = await begun(b, "Now!", "other", when_busy="interrupt")
        assert isinstance(waiting, Queued)
        assert (await over(b, first)).status == CANCELLED
        assert (await over(b, waiting.run)).status == SUCCEEDED


async def test_a_run_is_cancelled_from_another_process_at_once(postgres_home: PostgresHome):
    never = asyncio.Event()
    async with processes(postgres_home, [[s.TextDelta("Half"), never]]) as (a, b):
        run = await a.begin("First")
        await a.seen(run, "message.delta")
        await b.supervisor.cancel(run.run_id, "user", 20)
        found = await b.journal.find_run(run.run_id)
        assert found is not None
        assert found.status == CANCELLED
        assert only(await b.follow(run), e.RunCancelled)[0].external_stop_confirmed


# --- readers in another process -------------------------------------------------------------------------------------


async def test_a_run_that_is_read_in_another_process_is_not_unread(postgres_home: PostgresHome):
    never = asyncio.Event()
    async with processes(postgres_home, [[s.TextDelta("Half"), never]]) as (a, b):
        run = await a.begin("First", cancel_when_unread=True)
        await a.seen(run, "message.delta")
        assert await a.supervisor.is_unread(run.run_id)
        async with asyncio.timeout(10):
            while True:
                if await b.supervisor.is_unread(run.run_id):
                    break
                await asyncio.sleep(0.005)
        cursor = b.supervisor.follow(run.run_id)
        while "message.delta" not in [record.event_type for record in await cursor.next()]:
            pass
        waiting = asyncio.create_task(cursor.next())
        async with asyncio.timeout(10):
            while True:
                if not await b.journal.is_unread(run.run_id):
                    break
                await asyncio.sleep(0.005)
        cursor.close()
        waiting.cancel()


# --- recovery -------------------------------------------------------------------------------------------------------


async def lost(shop: Workshop) -> RunRecord:
    """A run whose process dies within a tool."""
    run = await shop.begin("First")
    await shop.seen(run, "tool.execution.started")
    await shop.supervisor.live.stop()
    await shop.supervisor._heartbeat.stop()
    return run


async def test_a_lost_run_is_continued_once_whoever_closes_it(postgres_home: PostgresHome):
    gate = Gate()
    given: dict[str, Any] = {"recovers": True, "tools": [gate.work], "leasing": SELDOM, "mint": mint_uuid7}
    async with workshop(calls(("work", "{}")), journal=postgres_home.store(), **given) as dying:
        run = await lost(dying)
        await postgres_home.pass_time(60)
        async with processes(postgres_home, [says("Fine.")], [says("Fine.")], **given) as (a, b):
            await asyncio.gather(a.supervisor._heartbeat.look_for_lost(), b.supervisor._heartbeat.look_for_lost())
            assert (await over(a, run)).status == INTERRUPTED
            thread = None
            async with asyncio.timeout(10):
                while thread is None or thread.last_run is None or thread.last_run.status != "succeeded":
                    thread = await a.supervisor.committed_thread(run.thread_id)
            continuation = await a.journal.find_run(thread.last_run.run_id)
            assert continuation is not None
            assert continuation.continues == run.run_id
            started = only(await a.follow(continuation), e.RunStarted)[0]
            assert started.continues == run.run_id
            asked = [shop for shop in (a, b) if shop.script.requests]
            assert len(asked) == 1, "one of them, once"
            kinds = [type(item).__name__ for item in asked[0].script.prompts[-1]]
            assert kinds == ["Message", "FunctionCall", "FunctionCallOutput"]
            done = only(await a.follow(run), e.ToolCallCompleted)
            assert [each.kind for each in done] == ["indeterminate"]
            assert gate.calls <= 1


async def test_without_recovery_a_lost_run_is_only_closed(postgres_home: PostgresHome):
    gate = Gate()
    given: dict[str, Any] = {"tools": [gate.work], "leasing": SELDOM, "mint": mint_uuid7}
    async with workshop(calls(("work", "{}")), journal=postgres_home.store(), **given) as dying:
        run = await lost(dying)
        await postgres_home.pass_time(60)
        async with workshop(says("Fine."), journal=postgres_home.store(), **given) as other:
            assert (await over(other, run)).status == INTERRUPTED
            assert await other.journal.queued_runs(run.thread_id) == []
            assert isinstance(await begun(other, "Then?", "then"), Started)
