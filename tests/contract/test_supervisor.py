"""The supervisor: who begins, who is followed, what is kept in memory, and how a process ends."""

from __future__ import annotations

import asyncio

import pytest

from runtime import events as e
from runtime import folds
from runtime import samples as s
from runtime.authority import ANONYMOUS
from runtime.beginning import opening_of
from runtime.errors import NotFound, ShuttingDown
from runtime.items import Message
from runtime.journal import Busy, Conflict, Moved, Replay, Started
from runtime.journal.memory import MemoryJournal
from runtime.limits import Limits
from runtime.testing import calls, says
from runtime.thread import Thread
from tests.contract.workshop import Workshop, asking, only, types, until, workshop
from tests.journals import HeldJournal


def texts(shop: Workshop) -> list[str]:
    """The texts of the last prompt."""
    return [str(item.content) for item in shop.script.prompts[-1] if isinstance(item, Message)]


# --- beginning ----------------------------------------------------------------------------------------------------


async def test_one_run_at_a_time_works_on_a_thread():
    never = asyncio.Event()
    async with workshop([s.TextDelta("a"), never, *says("b")]) as shop:
        run = await shop.begin()
        busy = await shop.try_begin("Me too")
        assert isinstance(busy, Busy)
        assert busy.run.run_id == run.run_id
        never.set()
        await shop.follow(run)
        assert isinstance(await shop.try_begin("Me too"), Started)


async def test_a_request_that_was_made_before_is_its_run_and_with_other_words_a_conflict():
    async with workshop() as shop:
        session, thread = await shop.supervisor.open(ANONYMOUS, "s1")
        request = asking(thread, "Hello", "s1", "mine")
        begun = await shop.supervisor.begin(request, session, thread)
        assert isinstance(begun, Started)
        again = await shop.supervisor.begin(request, session, thread)
        assert isinstance(again, Replay)
        assert again.run.run_id == begun.run.run_id
        other = await shop.supervisor.begin(asking(thread, "Good bye", "s1", "mine"), session, thread)
        assert isinstance(other, Conflict)
        await shop.follow(begun.run)
        assert len(shop.script.requests) == 1


async def test_two_first_requests_of_one_session_make_one_thread():
    async with workshop(says("One"), says("Two")) as shop:
        first, second = await asyncio.gather(shop.try_begin("One?"), shop.try_begin("Two?"))
        assert isinstance(first, Started)
        assert isinstance(second, Moved | Busy)
        await shop.follow(first.run)
        assert types(await shop.run("Two?"))[-1] == "run.completed"
        assert texts(shop) == ["One?", "One", "Two?"]


async def test_a_run_on_a_thread_that_moved_is_not_begun():
    async with workshop() as shop:
        await shop.run()
        session, thread = await shop.supervisor.open(ANONYMOUS, "s1")
        request = asking(thread, "Late", "s1", "late")
        await shop.run("Quicker")
        assert isinstance(await shop.supervisor.begin(request, session, thread), Moved)


async def test_an_agent_that_is_not_there_begins_nothing():
    async with workshop() as shop:
        shop.supervisor.performers = {}
        with pytest.raises(NotFound):
            await shop.try_begin()
        assert await shop.journal.active_runs() == []


async def test_a_run_with_nothing_to_say_is_over_at_once():
    async with workshop() as shop:
        events = await shop.run(call_model=False)
        assert types(events) == ["run.started", "message.completed", "run.completed"]
        assert shop.script.requests == []
        assert shop.supervisor.live.runs == {}


# --- memory -------------------------------------------------------------------------------------------------------


async def test_idle_threads_beyond_the_limit_are_forgotten_and_read_anew(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(folds, "THREADS_KEPT", 3)
    async with workshop() as shop:
        for session in ("a", "b", "c", "d", "e"):
            await shop.run(f"I am {session}", session)
        assert len(shop.supervisor._folds._kept) == 3
        await shop.run("Who am I?", "a")
        assert texts(shop) == ["I am a", "done", "Who am I?"]


async def test_a_thread_at_work_is_never_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(folds, "THREADS_KEPT", 2)
    never = asyncio.Event()
    waiting = [[s.TextDelta("a"), never, *says("b")] for _ in range(4)]
    async with workshop(*waiting) as shop:
        runs = [await shop.begin(session=f"live {n}") for n in range(4)]
        for n in range(6):
            await shop.run(session=f"idle {n}")
        for run in runs:
            thread = await shop.supervisor.thread(run.thread_id)
            assert thread.last_run is not None
            assert thread.last_run.status == "running"
        never.set()
        for run in runs:
            assert types(await shop.follow(run))[-1] == "run.completed"
            await shop.settled(run)
        await shop.run(session="one more")
        await shop.run(session="and one")
        assert len(shop.supervisor._folds._kept) == 2


async def test_a_reader_that_came_while_a_run_began_sees_that_run():
    """Both read the thread anew; the run works on one fold, and nobody may be given the other."""
    async with workshop(says("One"), [s.TextDelta("Two"), asyncio.Event()]) as shop:
        run = await shop.begin()
        await shop.follow(run)
        await shop.settled(run)
        shop.supervisor._folds._kept.clear()
        session, thread = await shop.supervisor.open(ANONYMOUS, "s1")
        shop.supervisor._folds._kept.clear()  # as when many others were read meanwhile
        _, other = await shop.supervisor.open(ANONYMOUS, "s1")
        assert other is not thread
        begun = await shop.supervisor.begin(asking(thread, "Again", "s1", "again"), session, thread)
        assert isinstance(begun, Started)
        shop.supervisor._folds._kept[thread.thread_id] = other
        assert await shop.supervisor.thread(thread.thread_id) is thread


async def test_300_sessions_keep_their_words_apart():
    async with workshop() as shop:
        runs = [await shop.begin(f"I am {n}", f"s{n}") for n in range(300)]
        await asyncio.gather(*(shop.follow(run) for run in runs))
        for run in runs:
            await shop.settled(run)
        for n in (0, 1, 150, 299):
            await shop.run("Who am I?", f"s{n}")
            assert texts(shop) == [f"I am {n}", "done", "Who am I?"]
        assert len(shop.script.requests) == 304
        assert len(shop.supervisor._folds._kept) == folds.THREADS_KEPT


# --- the end of a process -----------------------------------------------------------------------------------------


async def test_a_drain_lets_a_run_finish_that_can():
    going = asyncio.Event()
    async with workshop([s.TextDelta("a"), going, *says("b")]) as shop:
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        draining = asyncio.create_task(shop.supervisor.drain(10))
        await until(lambda: shop.supervisor.draining)
        with pytest.raises(ShuttingDown):
            await shop.try_begin(session="s2")
        going.set()
        await draining
        assert (await shop.settled(run)).status == "succeeded"


async def test_a_drain_gives_up_what_does_not_finish():
    async def forever() -> str:
        await asyncio.Event().wait()
        return ""

    async with workshop(calls(("forever", "{}")), [s.TextDelta("Half"), asyncio.Event()], tools=[forever]) as shop:
        run = await shop.begin()
        await shop.seen(run, "tool.execution.started")
        other = await shop.begin(session="s2")
        await shop.seen(other, "message.delta")
        await shop.supervisor.drain(0)
        for each in (run, other):
            assert only(await shop.follow(each), e.RunInterrupted) == [e.RunInterrupted("shutdown")]
        assert [done.kind for done in only(await shop.follow(run), e.ToolCallCompleted)] == ["indeterminate"]
        assert await shop.journal.active_runs() == []


async def test_a_run_that_is_just_beginning_when_the_drain_comes_is_ended_too():
    journal = HeldJournal(MemoryJournal())
    async with workshop(says("never"), journal=journal, limits=Limits(stop_grace_s=5)) as shop:
        begins = asyncio.create_task(shop.begin())
        held = await journal.next()
        draining = asyncio.create_task(shop.supervisor.drain(0))
        await until(lambda: shop.supervisor.live.giving_up)
        journal.let_go()
        held.release()
        run = await begins
        await draining
        events = await shop.follow(run)
        assert types(events) == ["run.started", "message.completed", "run.interrupted"]


def test_a_host_may_use_its_bridge_in_one_event_loop_after_another():
    shop = Workshop(*([s.TextDelta("a"), asyncio.Event()] for _ in range(2)))

    async def life(session: str) -> str:
        await shop.supervisor.start()
        run = await shop.begin(session=session)
        await shop.seen(run, "message.delta")
        await shop.supervisor.drain(0.01)
        await shop.supervisor.stop()
        await shop.journal.open()
        return (await shop.settled(run)).status

    assert [asyncio.run(life("s1")), asyncio.run(life("s2"))] == ["interrupted", "interrupted"]


async def test_a_drain_waits_for_a_cancel_that_is_under_way():
    async def slow_to_stop() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.02)
        return ""

    async with workshop(calls(("slow_to_stop", "{}")), tools=[slow_to_stop], limits=Limits(stop_grace_s=5)) as shop:
        run = await shop.begin()
        await shop.seen(run, "tool.execution.started")
        await shop.supervisor.cancel(run.run_id, "user")
        await shop.supervisor.drain(5)
        assert types(await shop.follow(run))[-1] == "run.cancelled"


async def test_what_is_still_at_work_at_the_end_is_closed_by_the_next_start():
    async with workshop([s.TextDelta("Half a "), asyncio.Event()], says("Whole.")) as shop:
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        await shop.supervisor.stop()
        assert shop.supervisor.live.runs == {}
        await shop.supervisor.start()
        events = await shop.follow(run)
        assert events[-1] == e.RunInterrupted("executor_lost")
        message = only(events, e.MessageCompleted)[-1]
        assert [(part["text"], part["committed"]) for part in message.content] == [("Half a ", False)]
        assert types(await shop.run("Go on"))[-1] == "run.completed"
        assert texts(shop) == ["Hello", "Go on"]


# --- what a crash left behind -------------------------------------------------------------------------------------


async def crashed(shop: Workshop, *facts: e.Event) -> Started:
    """A run that has these facts in the store, and an executor that is no more."""
    thread = Thread("thr_lost")
    request = asking(thread, "Hello", "s1", "lost")
    opening = opening_of(request, None, thread, {}, run_id="run_lost", executor_instance_id="exec_lost", now=0)
    started = await shop.journal.begin_run(opening)
    assert isinstance(started, Started)
    if facts:
        await shop.journal.append("run_lost", started.run.fence, started.run.last_seq, facts, 0)
    return started


ROUND = [
    e.MessageStarted("msg_lost", "assistant"),
    e.RoundStarted(1, "m", "testing", {}),
    e.MessageDelta("msg_lost", "p0", 0, "Let me see."),
    e.ToolCallStarted("msg_lost", "p1", 1, "c1", "work"),
    e.ToolCallStarted("msg_lost", "p2", 2, "c2", "work"),
    e.ToolCallCommitted("c1", "work", "{}", "server"),
    e.ToolCallCommitted("c2", "work", "{}", "server"),
    e.RoundCompleted(
        1,
        "working_message",
        "tool_calls",
        [{"part_id": f"p{n}", "kind": "text" if n == 0 else "tool_call"} for n in range(3)],
        ["c1", "c2"],
    ),
]


@pytest.mark.parametrize(
    ("facts", "kinds"),
    [
        ([], []),
        (ROUND[:3], []),
        (ROUND[:5], []),
        (ROUND, ["not_run", "not_run"]),
        ([*ROUND, e.ToolExecutionStarted("c1", "work", "k1")], ["indeterminate", "not_run"]),
        (
            [
                *ROUND,
                e.ToolExecutionStarted("c1", "work", "k1"),
                e.ToolCallCompleted("c1", "work", "done", "0", False, "result"),
            ],
            ["result", "not_run"],
        ),
    ],
    ids=["at its beginning", "in its text", "in a call", "before its calls", "within a call", "between two calls"],
)
async def test_a_lost_run_is_interrupted_and_each_call_says_what_became_of_it(facts: list[e.Event], kinds: list[str]):
    async with workshop(says("Fine.")) as shop:
        started = await crashed(shop, *facts)
        await shop.supervisor.start()
        events = await shop.follow(started.run)
        assert [type(event) in e.TERMINAL for event in events].count(True) == 1
        assert events[-1] == e.RunInterrupted("executor_lost")
        assert [done.kind for done in only(events, e.ToolCallCompleted)] == kinds
        assert types(await shop.run("And now?"))[-1] == "run.completed"
        outputs = [type(item).__name__ for item in shop.script.prompts[0]]
        assert outputs.count("FunctionCall") == outputs.count("FunctionCallOutput") == len(kinds)


async def test_a_run_that_was_lost_while_it_was_being_cancelled_is_interrupted():
    async with workshop() as shop:
        started = await crashed(shop, *ROUND, e.RunCancelling("user"))
        await shop.supervisor.start()
        assert types(await shop.follow(started.run))[-1] == "run.interrupted"


async def test_a_lost_run_is_never_run_again():
    async with workshop() as shop:
        await crashed(shop, *ROUND)
        await shop.supervisor.start()
        await shop.supervisor.stop()
        await shop.supervisor.start()
        assert shop.script.requests == []
