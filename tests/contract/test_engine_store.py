"""The engine against its journal: what waits for a commit, and what becomes of a run whose facts are refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from runtime import events as e
from runtime import samples as s
from runtime.errors import FenceLost, NotFound, StoreError
from runtime.journal.drafts import Unstorable
from runtime.journal.memory import MemoryJournal
from runtime.journal.sqlite import SqliteJournal
from runtime.journal.store import Store
from runtime.run import RunRecord
from runtime.testing import calls, says
from tests.contract.workshop import Workshop, only, types, until, workshop
from tests.journals import FailingJournal, Held, HeldJournal, fails_once


def work() -> str:
    return "worked"


async def run_held(shop: Workshop, journal: HeldJournal) -> RunRecord:
    """A run that has begun, everything after that held."""
    begins = asyncio.create_task(shop.begin())
    (await journal.next()).release()
    return await begins


# --- what waits for a commit --------------------------------------------------------------------------------------


async def test_no_reader_is_given_a_fact_before_it_is_committed():
    journal = HeldJournal(MemoryJournal())
    async with workshop(says("One two three"), journal=journal) as shop:
        run = await run_held(shop, journal)
        cursor = shop.supervisor.follow(run.run_id)
        given = types(record.event for record in await cursor.next() if record.event)
        assert given == ["run.started", "message.completed"]
        while given[-1] != "run.completed":
            reading = asyncio.create_task(cursor.next())
            held = await journal.next()
            for _ in range(20):
                await asyncio.sleep(0)
            assert not reading.done()
            held.release()
            records = await reading
            assert [record.event_type for record in records] == held.types
            given += held.types
        cursor.close()


async def test_nothing_is_executed_before_the_journal_knows_that_it_begins():
    worked: list[str] = []

    def note() -> str:
        worked.append("worked")
        return ""

    journal = HeldJournal(MemoryJournal())
    async with workshop(calls(("note", "{}")), tools=[note], journal=journal) as shop:
        await run_held(shop, journal)
        held = await journal.next()
        while "tool.execution.started" not in held.types:
            held.release()
            held = await journal.next()
        for _ in range(50):
            await asyncio.sleep(0)
        assert worked == []
        held.release()
        held = await journal.next()
        assert held.types == ["tool.call.completed"]
        assert worked == ["worked"]
        journal.let_go()
        held.release()


async def test_the_next_prompt_waits_until_what_it_is_made_of_is_committed():
    journal = HeldJournal(MemoryJournal())
    async with workshop(calls(("work", "{}")), says("Fine."), tools=[work], journal=journal) as shop:
        await run_held(shop, journal)
        held = await journal.next()
        while "tool.call.completed" not in held.types:
            held.release()
            held = await journal.next()
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(shop.script.requests) == 1
        held.release()
        journal.let_go()
        await until(lambda: len(shop.script.requests) == 2)


async def test_a_journal_that_stalls_stops_the_model_after_64_facts():
    said = 0
    journal = HeldJournal(MemoryJournal())

    def pieces() -> Any:
        nonlocal said
        for _ in range(1000):
            said += 1
            yield s.TextDelta("x")
        yield s.AssistantMessageDone()
        yield s.Completed("stop")

    async with workshop(journal=journal) as shop:
        shop.script._rounds = [pieces()]
        run = await run_held(shop, journal)
        held = await journal.next()
        while "message.delta" not in held.types:
            held.release()
            held = await journal.next()
        held.release()
        held = await journal.next()
        for _ in range(3000):
            await asyncio.sleep(0)
        assert said == 1 + 64 + len([kind for kind in held.types if kind != "message.delta"])
        journal.let_go()
        held.release()
        events = await shop.follow(run)
        assert len(only(events, e.MessageDelta)) == 1000
        assert types(events)[-1] == "run.completed"


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def inner(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "s.db", synchronous="normal")


@pytest.mark.parametrize(
    "at",
    ["message.started", "message.delta", "round.completed", "tool.execution.started", "tool.call.completed"],
)
async def test_a_refused_append_fails_the_run_with_its_code_and_the_thread_stays_usable(at: str, inner: Store):
    journal = FailingJournal(inner, fails_once(at, StoreError("no room", code="store_full")))
    rounds = [calls(("work", "{}"), text="Let me see"), says("Done."), says("Done.")]
    async with workshop(*rounds, tools=[work], journal=journal) as shop:
        run = await shop.begin()
        events = await shop.follow(run)
        assert events[-1] == e.RunFailed({"code": "store_full", "message": "no room", "retryable": True})
        record = await shop.settled(run)
        assert (record.status, record.last_seq) == ("failed", len(events))
        assert len(only(events, e.ToolCallCompleted)) == len(only(events, e.ToolCallCommitted))
        assert types(await shop.run("And now?"))[-1] == "run.completed"
        assert shop.script.prompts[-1] == (await shop.items())[:-1]


async def test_a_refused_terminal_is_a_failed_run(inner: Store):
    journal = FailingJournal(inner, fails_once("run.completed", StoreError("no room", code="store_full")))
    async with workshop(says("One"), says("Two"), journal=journal) as shop:
        events = await shop.run()
        assert only(events, e.RunFailed)[0].error["code"] == "store_full"
        assert types(await shop.run("And now?"))[-1] == "run.completed"


async def test_an_event_that_cannot_be_stored_fails_its_own_run_and_no_other(inner: Store):
    async with workshop([s.TextDelta("\ud800"), *says("x")], says("Fine."), says("Fine."), journal=inner) as shop:
        run = await shop.begin()
        other = await shop.begin(session="s2")
        events = await shop.follow(run)
        assert only(events, e.RunFailed)[0].error["code"] == Unstorable.code
        assert types(await shop.follow(other))[-1] == "run.completed"
        assert types(await shop.run("And now?"))[-1] == "run.completed"


async def test_a_bug_in_the_journal_is_no_reason_to_hang():
    journal = FailingJournal(MemoryJournal(), fails_once("message.delta", ZeroDivisionError("secret")))
    async with workshop(says("One"), says("Two"), journal=journal) as shop:
        events = await shop.run()
        assert only(events, e.RunFailed)[0].error["code"] == "store_error"
        assert "secret" not in str(events[-1])
        assert types(await shop.run("And now?"))[-1] == "run.completed"


async def test_a_refused_append_stops_a_model_that_says_nothing_more():
    never = asyncio.Event()
    lines = [s.TextDelta("One "), s.TextDelta("two "), never, *says("three")]
    failing = FailingJournal(MemoryJournal(), lambda _: None)

    async with workshop(lines, journal=failing) as shop:
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        await until(lambda: len(shop.script.requests) == 1)
        failing.fails = fails_once("run.cancelling", StoreError("gone"))
        await shop.supervisor.cancel(run.run_id, "user", 5)
        events = await shop.follow(run)
        assert types(events)[-1] == "run.failed"
        assert shop.script.closed == 1


async def test_a_journal_that_refuses_everything_leaves_the_run_to_the_next_start(inner: Store):
    broken = True
    journal = FailingJournal(inner, lambda _: StoreError("gone") if broken else None)
    async with workshop(says("One"), says("Two"), journal=journal) as shop:
        run = await shop.begin()
        assert (await shop.settled(run)).status == "running"
        with pytest.raises(StoreError) as refused:
            await shop.follow(run)
        assert refused.value.code == "run_elsewhere"
        broken = False
        await shop.supervisor.stop()
        await shop.supervisor.start()
        assert types(await shop.follow(run))[-1] == "run.interrupted"
        assert types(await shop.run("And now?"))[-1] == "run.completed"


async def test_an_executor_that_lost_its_fence_stops_and_touches_nothing():
    journal = MemoryJournal()
    never = asyncio.Event()
    async with workshop([s.TextDelta("One "), never, *says("two")], journal=journal) as shop:
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        taken = await journal.take_over(run.run_id, "another", 15)
        assert taken is not None
        never.set()
        record = await shop.settled(run)
        assert (record.fence, record.executor_instance_id, record.status) == (taken.fence, "another", "running")
        with pytest.raises(FenceLost):
            await journal.append(run.run_id, run.fence, record.last_seq, [e.RunCompleted()], 0)


async def test_a_run_that_cannot_begin_leaves_nothing_behind():
    journal = HeldJournal(MemoryJournal())
    async with workshop(says("One"), journal=journal) as shop:
        begins = asyncio.create_task(shop.begin())
        held: Held = await journal.next()
        held.go.set_exception(StoreError("no room", code="store_full"))
        with pytest.raises(StoreError):
            await begins
        assert shop.supervisor.tail._channels == {}
        cursor = shop.supervisor.follow("run_1")
        with pytest.raises(NotFound):
            await cursor.next()
        cursor.close()
        journal.let_go()
        assert types(await shop.run())[-1] == "run.completed"
