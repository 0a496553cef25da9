"""What every store keeps of interrupts: a row for each, claimed once, listed while it is open, gone with its thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from runtime.canonical import Json, digest
from runtime.errors import StoreError
from runtime.events import (
    Event,
    InterruptAnswered,
    InterruptRaised,
    MessageCompleted,
    MessageDelta,
    RunCompleted,
    RunInterrupted,
    RunStarted,
    RunSuspended,
)
from runtime.journal import Answered, Begun, Busy, Idempotency, Opening, Queued, Replay, Session, Started
from runtime.journal.catalogue import Owner, Place, RunFilter
from runtime.journal.inbox import Part, Starting
from runtime.journal.interrupts import StoredInterrupt
from runtime.journal.store import Store
from runtime.run import QUEUED, RUNNING, SUSPENDED, RunRecord
from tests.stores import Home, PostgresHome

NOW = 1_750_000_000_000
DAY = 24 * 3600 * 1000
ME, YOU = Owner("-", "me"), Owner("-", "you")
STARTED = RunStarted(NOW, "r1", "assistant", "0" * 64, [])
USAGE = [{"provider": "p", "model": "m", "input_tokens": 3}]
CONTESTANTS = 8


def opening(
    run_id: str = "run_1",
    name: str | None = "s1",
    *events: Event,
    base: int = 0,
    client: str | None = None,
    root: str | None = None,
    owner: Owner = ME,
    thread: str | None = None,
    found: bool = False,
    at: int = NOW,
) -> Opening:
    """A run in the session `name` (a child, or one on a thread of its own, without one)."""
    thread = thread or f"thread of {name or run_id}"
    run = RunRecord(
        run_id, *(owner.tenant_id, owner.owner_id), thread, name, "assistant", client or run_id, client or run_id, 1,
        QUEUED, base, 0, 1, root or run_id, at,
    )  # fmt: skip
    session = Session(owner.tenant_id, owner.owner_id, name, thread, "assistant", None, NOW) if name else None
    return Opening(run, None if found else session, [STARTED, *events], at)


def question(interrupt_id: str = "int_1", **more: object) -> InterruptRaised:
    asks = InterruptRaised(interrupt_id, "tool_call", "call_1", 0, "d" * 64, "send", "May it?")
    return replace(asks, **more)  # pyright: ignore[reportArgumentType]


def answer(
    interrupt_id: str = "int_1", status: str = "resolved", payload: Json = True, **more: str
) -> InterruptAnswered:
    return InterruptAnswered(interrupt_id, status, payload, **more)


async def begun(store: Store, wanted: Opening) -> RunRecord:
    answered = await store.begin_run(wanted)
    assert isinstance(answered, Started)
    return answered.run


async def suspended(store: Store, wanted: Opening | None = None, *interrupt_ids: str, at: int = NOW) -> RunRecord:
    """A run that has asked something and waits."""
    run = await begun(store, wanted or opening())
    asks = [question(interrupt_id) for interrupt_id in interrupt_ids or ("int_1",)]
    await store.append(run.run_id, run.fence, run.last_seq, [*asks, RunSuspended([])], at)
    return await now(store, run)


async def now(store: Store, run: RunRecord) -> RunRecord:
    found = await store.find_run(run.run_id)
    assert found is not None
    return found


async def end(store: Store, run: RunRecord, *events: Event) -> RunRecord:
    run = await now(store, run)
    await store.append(run.run_id, run.fence, run.last_seq, [*events] or [RunCompleted()], NOW + 1)
    return await now(store, run)


def after(run: RunRecord, run_id: str, *events: Event, client: str | None = None) -> Opening:
    """The next run on the thread of this one."""
    name, owner = run.session_id, Owner(run.tenant_id, run.owner_id)
    place = {"base": run.base + run.last_seq, "thread": run.thread_id}
    return opening(run_id, name, *events, client=client, owner=owner, found=True, at=NOW + 5, **place)  # pyright: ignore[reportArgumentType]


async def row(store: Store, interrupt_id: str = "int_1") -> StoredInterrupt:
    found = await store.find_interrupt(interrupt_id)
    assert found is not None
    return found


async def inbox(store: Store, owner: str | None = "me", tenant: str = "-") -> list[str]:
    return [its.interrupt_id for its in await store.open_interrupts(tenant, owner, None, 100)]


def ends_of(answers: Sequence[Begun]) -> tuple[list[RunRecord], list[Begun]]:
    """Who began, and what the others were told."""
    winners = [each.run for each in answers if isinstance(each, Started)]
    return winners, [each for each in answers if not isinstance(each, Started)]


# --- raising ------------------------------------------------------------------------------------------------------


async def test_what_a_run_asks_is_kept_with_its_run_and_is_open(store: Store):
    run = await begun(store, opening())
    asks = question(response_schema={"type": "boolean"}, expires_at=NOW + 60_000, metadata={"args": {"to": "me"}})
    await store.append("run_1", 1, run.last_seq, [asks, RunSuspended([])], NOW + 3)
    assert await row(store) == StoredInterrupt(
        "int_1", "run_1", "thread of s1", "run_1", "-", "me", "s1", "assistant", asks, NOW + 3, NOW + 60_000
    )
    assert (await row(store)).is_open
    assert await store.find_interrupt("int_9") is None


async def test_what_a_child_asks_belongs_to_the_session_of_its_root(store: Store):
    await begun(store, opening())
    child = await suspended(store, opening("run_2", None, root="run_1"))
    its = await row(store)
    assert (its.run_id, its.thread_id, its.root_run_id) == ("run_2", child.thread_id, "run_1")
    assert its.session_id == "s1"


async def test_an_append_that_is_repeated_asks_once(store: Store):
    run = await begun(store, opening())
    for _ in range(2):
        await store.append("run_1", 1, run.last_seq, [question(), RunSuspended([])], NOW)
    assert await inbox(store) == ["int_1"]


async def test_an_id_that_is_taken_fails_its_append_and_no_other(store: Store):
    await suspended(store)
    for number in (2, 3, 4):
        await begun(store, opening(f"run_{number}", f"s{number}"))
    asks = {2: question("int_2"), 3: question("int_1"), 4: question("int_4")}
    done = await asyncio.gather(
        *(store.append(f"run_{n}", 1, 1, [each, RunSuspended([])], NOW) for n, each in asks.items()),
        return_exceptions=True,
    )
    refusal = done[1]
    assert isinstance(refusal, StoreError)
    assert refusal.code == "unstorable"
    assert [isinstance(each, list) for each in done] == [True, False, True]
    assert (await row(store)).run_id == "run_1"
    assert sorted(await inbox(store)) == ["int_1", "int_2", "int_4"]
    assert [(await store.find_run(f"run_{n}")).last_seq for n in (2, 3, 4)] == [3, 1, 3]  # pyright: ignore[reportOptionalMemberAccess]


async def test_what_is_read_cannot_be_used_to_change_what_is_kept(store: Store):
    run = await begun(store, opening())
    await store.append("run_1", 1, run.last_seq, [question(metadata={"a": 1}), RunSuspended([])], NOW)
    seen = (await row(store)).raised.metadata
    assert seen is not None
    seen["a"] = 2
    assert (await row(store)).raised.metadata == {"a": 1}


async def test_interrupts_outlive_the_process(home: Home):
    first = home.store()
    await first.open()
    run = await suspended(first, None, "int_1", "int_2")
    await begun(first, after(run, "run_2", answer()))
    kept = [await row(first, "int_1"), await row(first, "int_2")]
    await first.close()
    later = home.store()
    await later.open()
    try:
        assert [await row(later, "int_1"), await row(later, "int_2")] == kept
        assert isinstance(await later.begin_run(after(run, "run_3", answer())), Answered)
    finally:
        await later.close()


# --- claiming -----------------------------------------------------------------------------------------------------


async def test_an_opening_that_answers_claims_what_it_answers(store: Store):
    asking = await suspended(store, None, "int_1", "int_2", "int_3")
    before = await row(store)
    run = await begun(
        store, after(asking, "run_2", answer(payload={"b": 1, "a": 2}), answer("int_2", "cancelled", None))
    )
    assert run.status == RUNNING
    assert await row(store) == replace(
        before,
        status="resolved",
        answer_digest=digest(["resolved", {"a": 2, "b": 1}]),
        answered_at=NOW + 5,
        answering_run_id="run_2",
    )
    second = await row(store, "int_2")
    assert (second.status, second.answer_digest) == ("cancelled", digest(["cancelled", None]))
    assert not second.is_open
    assert (await row(store, "int_3")).is_open
    assert await inbox(store) == ["int_3"]


async def test_another_opening_that_answers_is_told_of_the_run_that_has(store: Store):
    asking = await suspended(store, None, "int_1", "int_2")
    first = await begun(store, after(asking, "run_2", answer()))
    again = after(asking, "run_3", answer("int_2"), answer(payload=False), client="r3")
    # That run is at work, and the thread has moved: the answer is what counts.
    assert await store.begin_run(again) == Answered(first, "int_1")
    assert await store.begin_run(replace(again, repeatable=True)) == Answered(first, "int_1")
    over = await end(store, first)
    assert await store.begin_run(again) == Answered(over, "int_1")
    assert await store.find_run("run_3") is None
    assert (await row(store, "int_2")).is_open
    assert (await row(store)).answer_digest == digest(["resolved", True])


async def test_what_answers_nothing_that_was_answered_is_busy(store: Store):
    asking = await suspended(store, None, "int_1", "int_2")
    first = await begun(store, after(asking, "run_2", answer()))
    assert await store.begin_run(after(asking, "run_3", answer("int_2"))) == Busy(first)
    assert (await row(store, "int_2")).is_open


async def test_an_opening_that_is_made_again_is_a_replay_though_its_answers_are_given(store: Store):
    asking = await suspended(store)
    keyed = replace(after(asking, "run_2", answer(), client="r2"), idempotency=Idempotency("k", "q", "m"))
    first = await begun(store, keyed)
    twin = after(asking, "run_3", answer(), client="r2")
    assert await store.begin_run(twin) == Replay(first)
    assert await store.begin_run(replace(twin, idempotency=keyed.idempotency)) == Replay(first, "m")


async def test_the_runs_of_a_tree_may_repeat_what_their_root_has_answered(store: Store):
    root = await suspended(store, None, "int_1", "int_2")
    await begun(store, after(root, "run_2", answer()))
    before = await row(store)
    again = await store.begin_run(opening("run_3", None, answer(), answer("int_2"), root="run_2"))
    assert isinstance(again, Started)
    assert await row(store) == before
    assert (await row(store, "int_2")).answering_run_id == "run_2"  # what a child answers is answered by its tree
    foreign = await store.begin_run(opening("run_4", None, answer(), root="run_1"))
    assert isinstance(foreign, Answered)
    assert foreign.run.run_id == "run_2"


@pytest.mark.parametrize("of", ["nobody", "somebody else"])
async def test_an_answer_to_what_nobody_has_asked_is_a_mistake_of_the_caller(store: Store, of: str):
    asking = await suspended(store)
    interrupt_id = "int_9"
    if of == "somebody else":
        await suspended(store, opening("run_7", "s7", owner=YOU), "int_9")
    with pytest.raises(StoreError) as refusal:
        await store.begin_run(after(asking, "run_2", answer(), answer(interrupt_id)))
    assert refusal.value.code == "unstorable"
    assert await store.find_run("run_2") is None
    assert (await row(store)).is_open


async def test_what_an_erased_run_has_answered_is_not_answered_again(store: Store):
    asking = await suspended(store)
    elsewhere = await end(store, await begun(store, opening("run_2", "s2", answer())))
    await store.erase([elsewhere.thread_id])
    with pytest.raises(StoreError) as refusal:
        await store.begin_run(after(asking, "run_3", answer()))
    assert refusal.value.code == "unstorable"


async def test_an_opening_that_waits_claims_nothing(store: Store):
    asking = await suspended(store)
    at_work = await begun(store, after(asking, "run_2"))
    waits = await store.begin_run(replace(after(asking, "run_3", answer()), when_busy="enqueue"))
    assert isinstance(waits, Queued)
    assert waits.behind == at_work
    assert (await row(store)).is_open


async def test_of_many_who_answer_at_once_one_does(store: Store):
    asking = await suspended(store)
    wanted = [after(asking, f"run_{n}", answer(payload=n)) for n in range(2, 2 + CONTESTANTS)]
    [winner], others = ends_of(await asyncio.gather(*map(store.begin_run, wanted)))
    assert others == [Answered(winner, "int_1")] * (CONTESTANTS - 1)
    assert (await row(store)).answering_run_id == winner.run_id


async def test_of_identical_openings_at_once_one_begins_and_the_others_are_its_replay(store: Store):
    asking = await suspended(store)
    wanted = [after(asking, f"run_{n}", answer(), client="r2") for n in range(2, 2 + CONTESTANTS)]
    [winner], others = ends_of(await asyncio.gather(*map(store.begin_run, wanted)))
    assert others == [Replay(winner)] * (CONTESTANTS - 1)


async def test_of_many_threads_that_answer_the_same_at_once_one_does(store: Store):
    await suspended(store, None, "int_1", "int_2")
    wanted = [
        opening(f"run_{n}", f"s{n}", *(answer("int_1"), answer("int_2"))[:: 1 if n % 2 else -1])
        for n in range(2, 2 + CONTESTANTS)
    ]
    [winner], others = ends_of(await asyncio.gather(*map(store.begin_run, wanted)))
    assert all(isinstance(each, Answered) and each.run.run_id == winner.run_id for each in others)
    assert {(await row(store, name)).answering_run_id for name in ("int_1", "int_2")} == {winner.run_id}


@pytest.mark.needs_postgres
async def test_of_two_processes_that_answer_at_once_one_does(postgres_home: PostgresHome):
    stores = [postgres_home.store(), postgres_home.store()]
    for store in stores:
        await store.open()
    try:
        for number in range(20):
            name = f"int {number}"
            asking = await suspended(stores[0], opening(f"asks {number}", f"s{number}"), name)
            wanted = [after(asking, f"{who} {number}", answer(name, payload=who)) for who in range(2)]
            answers = await asyncio.gather(*(s.begin_run(each) for s, each in zip(stores, wanted, strict=True)))
            [winner], others = ends_of(answers)
            assert others == [Answered(winner, name)]
    finally:
        for store in stores:
            await store.close()


# --- closing ------------------------------------------------------------------------------------------------------


async def test_a_run_at_work_closes_what_is_open_and_changes_no_answer(store: Store):
    asking = await suspended(store, None, "int_1", "int_2")
    first = await begun(store, after(asking, "run_2", answer()))
    answered = await row(store)
    stopped = [answer(name, "cancelled", None, by_itself="stopped") for name in ("int_1", "int_2", "int_9")]
    over = await end(store, first, *stopped, RunInterrupted("executor_lost"))
    assert await row(store) == answered
    closed = await row(store, "int_2")
    assert (closed.status, closed.answered_at, closed.answering_run_id) == ("cancelled", NOW + 1, "run_2")
    assert await inbox(store) == []
    assert await store.begin_run(after(over, "run_3", answer("int_2"))) == Answered(over, "int_2")


async def test_the_first_of_two_answers_in_one_commit_counts(store: Store):
    run = await begun(store, opening())
    told = [question(), answer(payload=1), answer(payload=2), RunCompleted()]
    await store.append("run_1", 1, run.last_seq, told, NOW)
    assert (await row(store)).answer_digest == digest(["resolved", 1])


async def test_a_queued_run_closes_what_it_says_when_it_begins(store: Store):
    asking = await suspended(store)
    at_work = await begun(store, after(asking, "run_2"))
    said = MessageCompleted("u2", "user", "And me", "0" * 64)
    waits = await store.begin_run(replace(after(asking, "run_3", said), when_busy="enqueue"))
    assert isinstance(waits, Queued)
    over = await end(store, at_work)
    facts = [STARTED, answer(status="cancelled", payload=None, by_itself="expired"), said]
    place = over.base + over.last_seq
    assert await store.start_queued(Starting("run_3", 1, place, "exec_1", facts, NOW + 9, 15.0, "agent", {}))
    its = await row(store)
    assert (its.status, its.answered_at, its.answering_run_id) == ("cancelled", NOW + 9, "run_3")


async def test_what_is_committed_for_several_runs_closes_and_asks_too(store: Store):
    await suspended(store)
    runs = [await begun(store, opening("run_2", "s2")), await begun(store, opening("run_3", "s3"))]
    closes = answer(status="cancelled", payload=None, by_itself="forked")
    parts = [Part("run_2", 1, 1, [closes, RunCompleted()]), Part("run_3", 1, 1, [question("int_3"), RunSuspended([])])]
    stale = [parts[0], replace(parts[1], expected_seq=9)]
    assert await store.append_all(stale, NOW) is None
    assert (await row(store)).is_open
    assert await store.append_all(parts, NOW + 2) is not None
    assert (await row(store)).answering_run_id == runs[0].run_id
    assert (await row(store, "int_3")).raised_at == NOW + 2


# --- lists --------------------------------------------------------------------------------------------------------


async def test_open_interrupts_are_listed_from_the_newest_to_the_oldest_of_an_owner_or_of_all(store: Store):
    for number, at in ((1, NOW), (2, NOW + 2), (3, NOW + 1), (4, NOW + 1)):
        await suspended(store, opening(f"run_{number}", f"s{number}"), f"int_{number}", at=at)
    await suspended(store, opening("run_5", "s5", owner=YOU), "int_5", at=NOW + 3)
    await suspended(store, opening("run_6", "s6", owner=Owner("other", "me")), "int_6", at=NOW + 3)
    assert await inbox(store) == ["int_2", "int_4", "int_3", "int_1"]
    assert await inbox(store, "you") == ["int_5"]
    assert await inbox(store, None) == ["int_5", "int_2", "int_4", "int_3", "int_1"]
    assert await inbox(store, None, "other") == ["int_6"]
    assert await inbox(store, "nobody") == []


async def test_pages_of_interrupts_are_the_list_while_some_are_answered_and_others_come(store: Store):
    for number in range(6):
        await suspended(store, opening(f"run_{number}", f"s{number}"), f"int_{number}", at=NOW + number // 2)
    seen: list[str] = []
    place: Place | None = None
    while page := await store.open_interrupts("-", "me", place, 2):
        seen += [its.interrupt_id for its in page]
        place = Place(page[-1].raised_at, page[-1].interrupt_id)
        new = f"new_{len(seen)}"
        run = await suspended(store, opening(new, new), new, at=NOW + 100)
        asking = await now(store, replace(run, run_id=page[-1].run_id))
        await begun(store, after(asking, f"answers_{len(seen)}", answer(page[-1].interrupt_id)))
    assert seen == ["int_5", "int_4", "int_3", "int_2", "int_1", "int_0"]


async def test_what_is_below_a_hidden_session_is_neither_listed_nor_found(store: Store):
    await begun(store, opening())
    await suspended(store, opening("run_2", None, root="run_1"), "int_1")
    await suspended(store, opening("run_3", "s3"), "int_3")
    await suspended(store, opening("run_4", None), "int_4")  # of no session
    assert await inbox(store) == ["int_4", "int_3", "int_1"]
    await store.hide_session(ME, "s1", NOW)
    for owner in ("me", None):
        assert await inbox(store, owner) == ["int_4", "int_3"]
    assert await store.find_interrupt("int_1") is None
    assert (await row(store, "int_3")).is_open


# --- suspended runs -----------------------------------------------------------------------------------------------


async def test_a_suspended_run_is_over_and_its_record_says_how(store: Store):
    run = await begun(store, opening())
    await store.append("run_1", 1, run.last_seq, [question(), RunSuspended([], "msg_1", USAGE)], NOW + 7)
    over = await now(store, run)
    assert over == replace(
        run, status=SUSPENDED, last_seq=3, finished_at=NOW + 7, final_message_id="msg_1", usage=USAGE
    )
    assert over.is_over
    assert await store.active_runs() == []
    listed = await store.list_runs(ME, RunFilter(statuses=frozenset({SUSPENDED})), None, 10)
    assert listed == [over]
    assert (await store.ends(["run_1"]))["run_1"].is_over


async def test_a_suspended_run_is_replayed_even_to_a_request_that_may_run_again(store: Store):
    over = await suspended(store)
    again = replace(opening("run_2", client="run_1"), repeatable=True)
    assert await store.begin_run(again) == Replay(over)
    assert await store.begin_run(replace(again, repeatable=False)) == Replay(over)


async def test_a_lost_continuation_may_be_repeated_without_answering_again(store: Store):
    asking = await suspended(store)
    lost = await begun(store, replace(after(asking, "run_2", answer(), client="r2"), repeatable=True))
    over = await end(store, lost, RunInterrupted("executor_lost"))
    again = await store.begin_run(replace(after(over, "run_3", client="r2"), repeatable=True))
    assert isinstance(again, Started)
    assert again.run.attempt == 2
    assert (await row(store)).answering_run_id == "run_2"


async def test_words_of_a_suspended_run_are_compacted_and_left_out_of_its_thread(store: Store):
    run = await begun(store, opening())
    words = [MessageDelta("msg_1", "p1", 0, word) for word in ("a", "b")]
    facts = [*words, MessageCompleted("msg_1", "assistant", [], "0" * 64), question(), RunSuspended([])]
    await store.append("run_1", 1, run.last_seq, facts, NOW)
    [(_, records)] = await store.read_thread(run.thread_id, 0)
    assert [record.event_type for record in records] == [
        "run.started",
        "message.completed",
        "interrupt.raised",
        "run.suspended",
    ]
    assert await store.uncompacted_runs(NOW + 1, 10) == ["run_1"]
    assert await store.compact("run_1", NOW) == 1
    assert (await row(store)).is_open


# --- retention ----------------------------------------------------------------------------------------------------


async def test_interrupts_expire_with_their_thread_answered_or_not(store: Store):
    root = await suspended(store, None, "int_1", "int_2")
    answered = await end(store, await begun(store, after(root, "run_2", answer())))
    await end(store, await begun(store, opening("run_3", None, root="run_2")), question("int_3"), RunSuspended([]))
    await suspended(store, opening("run_4", "s4"), "int_4", at=NOW + DAY)
    removed = await store.expire(NOW + DAY, NOW + DAY, 10)
    assert removed.counts == {"threads": 2, "runs": 3, "interrupts": 3, "sessions": 1}
    for name in ("int_1", "int_2", "int_3"):
        assert await store.find_interrupt(name) is None
    assert await inbox(store) == ["int_4"]
    assert (await now(store, answered)).expired_at == NOW + DAY


async def test_interrupts_are_erased_with_their_thread_and_no_others(store: Store):
    await suspended(store)
    await suspended(store, opening("run_2", "s2", owner=YOU), "int_2")
    assert (await store.erase(await store.threads_of_owner(ME))).counts == {
        "interrupts": 1,
        "sessions": 1,
        "events": 3,
        "runs": 1,
        "threads": 1,
    }
    assert await store.find_interrupt("int_1") is None
    assert await inbox(store, None) == ["int_2"]
    await suspended(store)  # the names are free again
    assert await inbox(store) == ["int_1"]
