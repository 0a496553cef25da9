"""Hooks that are told of ends and of questions: from the journal, at least once, whatever becomes of the process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runtime import events as e
from runtime import samples as s
from runtime.errors import ProviderError
from runtime.hooks import InterruptOpen, RunEnd, Untitled, on_interrupt, on_run_end, session_title
from runtime.items import Message
from runtime.journal.catalogue import Owner, SessionChange
from runtime.journal.memory import MemoryJournal
from runtime.supervisor import Leasing
from runtime.testing import ManualClock, calls, says
from runtime.tools.toolbox import tool
from tests.contract.workshop import Workshop, types, until, workshop


class Diary:
    """What the hooks were told."""

    def __init__(self, *, fails: int = 0) -> None:
        self.ends: list[RunEnd] = []
        self.asked: list[InterruptOpen] = []
        self.fails = fails

    def hooks(self) -> list[Any]:
        @on_run_end
        async def ended(told: RunEnd) -> None:
            self.ends.append(told)
            if self.fails:
                self.fails -= 1
                raise RuntimeError("the post office is closed")

        @on_interrupt
        def asked(told: InterruptOpen) -> None:
            self.asked.append(told)

        return [ended, asked]


@tool(approval=True)
async def pay() -> str:
    """Pay."""
    return "paid"


FAILS = [s.TextDelta("Half"), ProviderError("No.", code="provider_refused")]


@pytest.mark.parametrize(("rounds", "end"), [(says("Hi"), "run.completed"), (FAILS, "run.failed")])
async def test_a_hook_is_told_of_the_end_of_a_run_however_it_ended(rounds: Any, end: str):
    diary = Diary()
    async with workshop(rounds, hooks=diary.hooks()) as shop:
        events = await shop.run("Hello")
        await until(lambda: bool(diary.ends))
    [told] = diary.ends
    assert told.terminal == events[-1]
    assert (told.terminal.event_type, told.run.is_over) == (end, True)
    assert told.delivery_id == f"{told.run.run_id}:end"


async def test_a_hook_is_told_what_is_asked_once_and_not_again_by_later_runs():
    diary = Diary()
    async with workshop(calls(("pay", "{}")), tools=[pay], hooks=diary.hooks()) as shop:
        [interrupt] = [event for event in await shop.run("Pay") if isinstance(event, e.InterruptRaised)]
        assert types(await shop.run("Well?", call_model=False))[-1] == "run.suspended"
        await until(lambda: len(diary.ends) == 2)
    [told] = diary.asked
    assert (told.asked, told.delivery_id) == (interrupt, f"{told.run.run_id}:{interrupt.interrupt_id}")


# --- titles -------------------------------------------------------------------------------------------------------


async def called_by(journal: MemoryJournal) -> str | None:
    """What the one session is called."""
    [session] = journal._sessions.values()
    return session.title


async def test_a_session_without_a_title_gets_the_one_that_its_hook_knows():
    journal, asked = MemoryJournal(), list[Untitled]()

    @session_title
    async def about(told: Untitled) -> str | None:
        asked.append(told)
        return None if len(asked) < 2 else "  About\n tea "

    async with workshop(says("One"), says("Two"), says("Three"), journal=journal, hooks=[about]) as shop:
        for number, text in enumerate(("Tea?", "And then?", "Well?"), 1):
            await shop.run(text)
            await until(lambda: not journal._deliveries)
            assert await called_by(journal) == (None if number < 2 else "About tea")
    assert [told.delivery_id for told in asked] == [f"{told.run.run_id}:title" for told in asked]
    said = [[item.content for item in told.history if isinstance(item, Message)] for told in asked]
    assert said == [["Tea?", "One"], ["Tea?", "One", "And then?", "Two"]]


async def test_a_title_that_its_owner_gives_meanwhile_stands():
    journal, go_on = MemoryJournal(), asyncio.Event()

    @session_title
    async def slow(told: Untitled) -> str:
        await go_on.wait()
        return "Mine"

    async with workshop(says("One"), journal=journal, hooks=[slow]) as shop:
        await shop.run("Tea?")
        [session] = journal._sessions.values()
        change = SessionChange(title="Theirs", retitle=True)
        await journal.change_session(Owner(session.tenant_id, session.owner_id), session.session_id, change)
        go_on.set()
        await until(lambda: not journal._deliveries)
        assert await called_by(journal) == "Theirs"


async def test_a_title_hook_that_fails_is_asked_again_and_nonsense_is_no_title():
    journal = MemoryJournal(clock=(clock := ManualClock()).now)
    answers: list[Any] = [RuntimeError("away"), 7]

    @session_title
    def about(told: Untitled) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    leasing = Leasing(lease_s=15, heartbeat_s=0.01)
    async with workshop(says("One"), journal=journal, hooks=[about], leasing=leasing) as shop:
        await shop.run("Tea?")
        await until(lambda: len(answers) == 1 and not shop.supervisor._deliverer._tasks)
        clock.advance(60)
        await until(lambda: not journal._deliveries)
        assert (answers, await called_by(journal)) == ([], None)


# --- what is told late --------------------------------------------------------------------------------------------


async def test_a_run_that_is_over_at_once_is_told_of():
    diary = Diary()
    async with workshop(says("Hi"), hooks=diary.hooks()) as shop:
        await shop.try_begin("Hello", call_model=False)
        await until(lambda: bool(diary.ends))


async def test_a_hook_that_fails_is_told_again_later_with_the_same_id():
    diary = Diary(fails=2)
    journal = MemoryJournal(clock=(clock := ManualClock()).now)
    leasing = Leasing(lease_s=15, heartbeat_s=0.01)
    async with workshop(says("Hi"), journal=journal, hooks=diary.hooks(), leasing=leasing) as shop:
        await shop.run("Hello")
        for number in (1, 2, 3):
            await until(lambda number=number: len(diary.ends) == number)
            clock.advance(60)
        await until(lambda: not journal._deliveries)
    assert len({told.delivery_id for told in diary.ends}) == 1


async def test_what_nobody_was_told_of_before_the_process_ended_is_told_by_the_next():
    journal, diary = MemoryJournal(), Diary()
    hooks = diary.hooks()
    never = asyncio.Event()

    @on_run_end
    async def hangs(told: RunEnd) -> None:
        await never.wait()

    async with workshop(says("Hi"), journal=journal, hooks=[hangs]) as shop:
        run = (await shop.begin("Hello")).run_id
        await until(lambda: run not in shop.supervisor.live.runs)
        await shop.supervisor.drain(0)
    for delivery in journal._deliveries.values():  # as time goes by
        delivery.due_at = 0
    async with workshop(says("Hi"), journal=journal, hooks=hooks):
        await until(lambda: bool(diary.ends))
    assert diary.ends[0].run.run_id == run


async def test_a_lost_run_that_is_closed_is_told_of_and_says_so():
    diary, never = Diary(), asyncio.Event()
    journal = MemoryJournal()
    lost = Workshop([s.TextDelta("Half"), never], journal=journal, hooks=diary.hooks())
    await lost.supervisor.start()
    run = await lost.begin("Hello")
    await lost.seen(run, "message.delta")
    await lost.supervisor.stop()
    async with workshop(says("Hi"), journal=journal, hooks=diary.hooks()):
        await until(lambda: bool(diary.ends))
    assert isinstance(diary.ends[0].terminal, e.RunInterrupted)


async def test_an_agent_without_such_hooks_leaves_nothing_to_be_told():
    async with workshop(says("Hi")) as shop:
        await shop.run("Hello")
        assert isinstance(shop.journal, MemoryJournal)
        assert not shop.journal._deliveries
