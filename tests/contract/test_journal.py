"""The journal port's promises, held by every implementation."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from runtime.errors import AppendConflict, FenceLost, NotFound, StoreError
from runtime.events import (
    Event,
    MessageCompleted,
    MessageDelta,
    MessageStarted,
    Record,
    RunCancelled,
    RunCancelling,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ToolCallCommitted,
    encode,
)
from runtime.journal import Busy, Conflict, Journal, Moved, Opening, Replay, Session, Started
from runtime.journal.drafts import drafts_of
from runtime.journal.store import Store
from runtime.run import (
    CANCELLED,
    CANCELLING,
    FAILED,
    QUEUED,
    RUNNING,
    SUCCEEDED,
    IllegalTransition,
    RunRecord,
)
from tests.stores import RECORDED

NOW = 1_750_000_000_000
USAGE = [{"provider": "p", "model": "m", "input_tokens": 3}]
STARTED = RunStarted(NOW - 5, "r1", "assistant", "0" * 64, [])
DONE = RunCompleted("msg_1", usage=USAGE)
FAILURE = RunFailed({"code": "provider_error", "message": "no", "retryable": True})


@pytest.fixture
def journal(store: Store) -> Journal:
    return store


def opening(
    run_id: str = "run_1",
    thread: str = "thread_1",
    *,
    client: str = "r1",
    digest: str = "d1",
    base: int = 0,
    events: list[Event] | None = None,
    repeatable: bool = False,
    contents: dict[str, bytes] | None = None,
    session: bool = True,
    owner: str = "me",
) -> Opening:
    session_id = f"session of {thread}" if session else None
    run = RunRecord(
        run_id, "-", owner, thread, session_id, "assistant", client, digest, 1, QUEUED, base, 0, 1, run_id, NOW
    )
    return Opening(
        run,
        Session("-", owner, session_id, thread, "assistant", None, NOW) if session_id else None,
        [STARTED] if events is None else events,
        NOW,
        contents or {},
        repeatable,
    )


def deltas(count: int, start: int = 0) -> list[Event]:
    return [MessageDelta("msg_1", "part_1", 0, f"tok {number} ") for number in range(start, start + count)]


async def started(journal: Journal, **wanted: object) -> RunRecord:
    begun = await journal.begin_run(opening(**wanted))  # pyright: ignore[reportArgumentType]
    assert isinstance(begun, Started)
    return begun.run


async def ended(journal: Journal, run_id: str, terminal: Event = DONE) -> RunRecord:
    run = await journal.find_run(run_id)
    assert run is not None
    await journal.append(run_id, run.fence, run.last_seq, [terminal], NOW + 1)
    after = await journal.find_run(run_id)
    assert after is not None
    return after


def places(records: list[Record]) -> list[int]:
    return [record.seq for record in records]


# --- beginning ----------------------------------------------------------------------------------------------------


async def test_a_new_run_is_there_with_its_first_events(journal: Journal):
    begun = await journal.begin_run(opening(events=[STARTED, MessageStarted("msg_1", "assistant")]))
    assert isinstance(begun, Started)
    assert begun.run.status == RUNNING
    assert begun.run.started_at == NOW - 5
    assert begun.run.last_seq == 2
    assert places(begun.records) == [1, 2]
    assert await journal.find_run("run_1") == begun.run
    assert await journal.read("run_1", 0, 10) == begun.records


async def test_a_run_without_events_waits_in_the_queue(journal: Journal):
    assert (await started(journal, events=[])).status == QUEUED
    assert await journal.read("run_1", 0, 10) == []


async def test_the_session_is_made_with_its_first_run_and_kept(journal: Journal):
    wanted = opening()
    await started(journal)
    await ended(journal, "run_1")
    assert await journal.find_session("-", "me", "session of thread_1") == wanted.session
    assert wanted.session is not None
    second = opening("run_2", client="r2", base=2)
    renamed = replace(wanted.session, title="another", agent_id="other")
    assert isinstance(await journal.begin_run(replace(second, session=renamed)), Started)
    assert await journal.find_session("-", "me", "session of thread_1") == wanted.session


async def test_nobody_finds_the_session_of_somebody_else(journal: Journal):
    await started(journal)
    assert await journal.find_session("-", "you", "session of thread_1") is None
    assert await journal.find_session("other tenant", "me", "session of thread_1") is None


async def test_the_same_request_gets_its_run_again(journal: Journal):
    run = await started(journal)
    assert await journal.begin_run(opening("run_2")) == Replay(run)
    over = await ended(journal, "run_1")
    assert await journal.begin_run(opening("run_3")) == Replay(over)
    assert await journal.find_run("run_2") is None


async def test_the_same_run_id_for_another_request_is_a_conflict(journal: Journal):
    run = await started(journal)
    assert await journal.begin_run(opening("run_2", digest="d2")) == Conflict(run)


async def test_a_thread_has_one_active_run(journal: Journal):
    run = await started(journal)
    assert await journal.begin_run(opening("run_2", client="r2")) == Busy(run)
    await started(journal, run_id="run_3", thread="thread_3")


async def test_a_thread_that_moved_is_read_again(journal: Journal):
    await started(journal)
    await ended(journal, "run_1")
    assert await journal.begin_run(opening("run_2", client="r2")) == Moved(2)
    assert isinstance(await journal.begin_run(opening("run_2", client="r2", base=2)), Started)


async def test_replay_is_looked_for_before_busy_and_busy_before_moved(journal: Journal):
    await started(journal)
    first = await ended(journal, "run_1")
    second = await started(journal, run_id="run_2", client="r2", base=2)
    assert await journal.begin_run(opening("run_3", base=0)) == Replay(first)
    assert await journal.begin_run(opening("run_3", digest="d2", base=0)) == Conflict(first)
    assert await journal.begin_run(opening("run_3", client="r3", base=0)) == Busy(second)


@pytest.mark.parametrize("terminal", [FAILURE, RunInterrupted("the executor was lost")])
async def test_a_resume_whose_run_failed_runs_again_as_the_next_attempt(journal: Journal, terminal: Event):
    await started(journal, repeatable=True)
    await ended(journal, "run_1", terminal)
    begun = await journal.begin_run(opening("run_2", base=2, repeatable=True))
    assert isinstance(begun, Started)
    assert begun.run.attempt == 2
    assert await journal.begin_run(opening("run_3", base=2, repeatable=True)) == Replay(begun.run)
    over = await ended(journal, "run_2", terminal)
    assert await journal.begin_run(opening("run_3", base=4)) == Replay(over)


async def test_a_resume_whose_run_succeeded_is_replayed(journal: Journal):
    await started(journal, repeatable=True)
    over = await ended(journal, "run_1")
    assert await journal.begin_run(opening("run_2", base=2, repeatable=True)) == Replay(over)


async def test_a_resume_may_use_the_run_id_of_another_request(journal: Journal):
    await started(journal)
    await ended(journal, "run_1")
    begun = await journal.begin_run(opening("run_2", digest="d2", base=2, repeatable=True))
    assert isinstance(begun, Started)
    assert begun.run.attempt == 1


async def test_of_concurrent_twins_one_runs(journal: Journal):
    begun = await asyncio.gather(*(journal.begin_run(opening(f"run_{number}")) for number in range(50)))
    winners = [answer for answer in begun if isinstance(answer, Started)]
    assert len(winners) == 1
    assert [answer for answer in begun if not isinstance(answer, Started)] == [Replay(winners[0].run)] * 49


async def test_twins_that_each_minted_a_thread_end_in_one(journal: Journal):
    first, twin = opening(), opening("run_2", "thread_2")
    assert twin.session is not None
    twin = replace(
        twin,
        run=replace(twin.run, session_id="session of thread_1"),
        session=replace(twin.session, session_id="session of thread_1"),
    )
    begun = await asyncio.gather(journal.begin_run(first), journal.begin_run(twin))
    assert [isinstance(answer, Started) for answer in begun].count(True) == 1
    assert Moved(1) in begun


async def test_somebody_elses_thread_is_not_found(journal: Journal):
    await started(journal)
    await ended(journal, "run_1")
    with pytest.raises(NotFound):
        await journal.begin_run(opening("run_2", client="r2", base=2, owner="you"))


async def test_a_beginning_that_fails_leaves_nothing(journal: Journal):
    with pytest.raises(IllegalTransition):
        await journal.begin_run(opening(events=[DONE], contents={"c": b"c"}))
    with pytest.raises(StoreError):
        await journal.begin_run(opening(events=[RunStarted(2**70, "r1", "a", "d", [])], contents={"c": b"c"}))
    assert await journal.find_run("run_1") is None
    assert await journal.find_session("-", "me", "session of thread_1") is None
    assert await journal.content("c") is None
    await started(journal)


async def test_a_run_id_is_given_once(journal: Journal):
    await started(journal)
    with pytest.raises(StoreError) as raised:
        await journal.begin_run(opening("run_1", "thread_2", contents={"c": b"c"}))
    assert raised.value.code == "unstorable"
    assert await journal.content("c") is None
    assert await journal.find_session("-", "me", "session of thread_2") is None


async def test_a_run_may_end_in_its_first_commit(journal: Journal):
    run = await started(journal, events=[STARTED, DONE])
    assert run.status == SUCCEEDED
    assert await journal.active_runs() == []
    with pytest.raises(FenceLost):
        await journal.append("run_1", 1, 2, deltas(1), NOW)


async def test_a_child_thread_has_no_session(journal: Journal):
    run = await started(journal, session=False)
    assert run.session_id is None
    assert await journal.find_run("run_1") == run


# --- appending ----------------------------------------------------------------------------------------------------


async def test_events_get_their_places_in_order(journal: Journal):
    await started(journal)
    first = await journal.append("run_1", 1, 1, deltas(3), NOW + 1)
    second = await journal.append("run_1", 1, 4, deltas(2, start=3), NOW + 2)
    assert places(first + second) == [2, 3, 4, 5, 6]
    assert [record.root_seq for record in first + second] == [2, 3, 4, 5, 6]
    assert (await journal.read("run_1", 1, 10)) == first + second
    run = await journal.find_run("run_1")
    assert run is not None
    assert run.last_seq == 6


async def test_a_record_says_when_and_with_what_checksum(journal: Journal):
    await started(journal)
    [record] = await journal.append("run_1", 1, 1, deltas(1), NOW + 1)
    assert record.occurred_at == NOW + 1
    assert record.recorded_at == RECORDED
    assert record.event_type == "message.delta"
    assert record.payload == encode(deltas(1)[0])
    assert record.payload_checksum == drafts_of(deltas(1))[0].checksum.hex()
    assert len(record.payload_checksum) == 32


async def test_the_same_append_again_is_the_same_append(journal: Journal):
    await started(journal)
    first = await journal.append("run_1", 1, 1, deltas(2), NOW)
    assert await journal.append("run_1", 1, 1, deltas(2), NOW + 9) == first
    later = await journal.append("run_1", 1, 3, deltas(1, start=2), NOW)
    assert await journal.append("run_1", 1, 1, deltas(2), NOW + 9) == first
    assert await journal.read("run_1", 1, 10) == first + later


async def test_the_terminal_again_is_the_same_append(journal: Journal):
    await started(journal)
    first = await journal.append("run_1", 1, 1, [DONE], NOW)
    assert await journal.append("run_1", 1, 1, [DONE], NOW + 9) == first


async def test_other_events_at_a_taken_place_are_a_conflict(journal: Journal):
    await started(journal)
    await journal.append("run_1", 1, 1, deltas(2), NOW)
    for expected, events in ((1, deltas(2, start=7)), (0, deltas(2)), (2, deltas(2)), (9, deltas(1)), (-1, deltas(1))):
        with pytest.raises(AppendConflict):
            await journal.append("run_1", 1, expected, events, NOW)
    assert len(await journal.read("run_1", 0, 10)) == 3


async def test_another_type_with_the_same_payload_is_a_conflict(journal: Journal):
    await started(journal)
    await journal.append("run_1", 1, 1, [RunCancelling("stop")], NOW)
    with pytest.raises(AppendConflict):
        await journal.append("run_1", 1, 1, [RunInterrupted("stop")], NOW)


async def test_no_events_are_appended_as_nothing(journal: Journal):
    await started(journal)
    assert await journal.append("run_1", 1, 1, [], NOW) == []


async def test_a_wrong_fence_is_refused(journal: Journal):
    await started(journal)
    for fence in (0, 2):
        with pytest.raises(FenceLost):
            await journal.append("run_1", fence, 1, deltas(1), NOW)
    with pytest.raises(FenceLost):
        await journal.append("unknown", 1, 0, deltas(1), NOW)


async def test_nothing_comes_after_the_end(journal: Journal):
    await started(journal)
    await ended(journal, "run_1")
    for expected, events in ((2, deltas(1)), (1, deltas(1)), (2, [FAILURE]), (1, [FAILURE])):
        with pytest.raises(FenceLost):
            await journal.append("run_1", 1, expected, events, NOW)
    assert places(await journal.read("run_1", 0, 10)) == [1, 2]


async def test_two_terminals_are_refused_and_change_nothing(journal: Journal):
    run = await started(journal)
    for events in ([DONE, FAILURE], [DONE, *deltas(1)], [RunCancelled("stop", external_stop_confirmed=True)]):
        with pytest.raises(IllegalTransition):
            await journal.append("run_1", 1, 1, events, NOW)
    assert await journal.find_run("run_1") == run
    assert places(await journal.append("run_1", 1, 1, deltas(1), NOW)) == [2]


async def test_of_cancel_and_completion_at_once_one_wins(journal: Journal):
    await started(journal)
    stop: list[Event] = [RunCancelling("stop"), RunCancelled("stop", external_stop_confirmed=True)]
    answers = await asyncio.gather(
        journal.append("run_1", 1, 1, [DONE], NOW), journal.append("run_1", 1, 1, stop, NOW), return_exceptions=True
    )
    assert isinstance(answers[0], list)
    assert isinstance(answers[1], StoreError)
    assert [record.event_type for record in await journal.read("run_1", 1, 10)] == ["run.completed"]


async def test_the_record_follows_from_the_events(journal: Journal):
    await started(journal)
    run = await ended(journal, "run_1")
    assert (run.status, run.final_message_id, run.usage, run.error) == (SUCCEEDED, "msg_1", USAGE, None)
    assert (run.finished_at, run.last_seq) == (NOW + 1, 2)
    await started(journal, run_id="run_2", client="r2", base=2)
    failed = await ended(journal, "run_2", FAILURE)
    assert (failed.status, failed.error) == (FAILED, FAILURE.error)
    await started(journal, run_id="run_3", client="r3", base=4, events=[])
    await journal.append("run_3", 1, 0, [RunCancelling("stop")], NOW)
    cancelling = await journal.find_run("run_3")
    assert cancelling is not None
    assert (cancelling.status, cancelling.finished_at) == (CANCELLING, None)
    cancelled = await ended(journal, "run_3", RunCancelled("stop", external_stop_confirmed=True, usage=USAGE))
    assert (cancelled.status, cancelled.usage, cancelled.started_at) == (CANCELLED, USAGE, None)


async def test_two_hundred_runs_append_at_once_each_in_order(journal: Journal):
    for number in range(200):
        await started(journal, run_id=f"run_{number}", thread=f"thread_{number}", session=False)

    async def produce(number: int) -> None:
        for seq in range(1, 11):
            assert places(await journal.append(f"run_{number}", 1, seq, deltas(1, start=seq), NOW)) == [seq + 1]

    await asyncio.gather(*(produce(number) for number in range(200)))
    for number in (0, 99, 199):
        records = await journal.read(f"run_{number}", 1, 100)
        assert [record.event for record in records] == deltas(10, start=1)


async def test_many_appends_of_one_run_in_flight_keep_their_order(journal: Journal):
    await started(journal)
    await asyncio.gather(*(journal.append("run_1", 1, seq, deltas(1, start=seq), NOW) for seq in range(1, 65)))
    assert [record.event for record in await journal.read("run_1", 1, 100)] == deltas(64, start=1)


@pytest.mark.parametrize(
    ("event", "occurred_at"),
    [
        (MessageDelta("msg_1", "part_1", 2**70, "x"), NOW),
        (MessageDelta("msg_1", "part_1", 0, "\ud800"), NOW),
        (RunCompleted("\ud800"), NOW),
    ],
)
async def test_an_event_that_cannot_be_stored_fails_alone(journal: Journal, event: Event, occurred_at: int):
    for number in range(5):
        await started(journal, run_id=f"run_{number}", thread=f"thread_{number}")
    events: list[Event] = [*deltas(1), event]
    answers = await asyncio.gather(
        *(journal.append(f"run_{n}", 1, 1, events if n == 2 else deltas(2), occurred_at) for n in range(5)),
        return_exceptions=True,
    )
    refused = answers.pop(2)
    assert isinstance(refused, StoreError)
    assert (refused.code, refused.retryable) == ("unstorable", False)
    assert all(isinstance(answer, list) for answer in answers)
    assert places(await journal.read("run_2", 0, 10)) == [1]
    assert places(await journal.append("run_2", 1, 1, deltas(1), NOW)) == [2]


async def test_text_of_every_kind_and_size_comes_back(journal: Journal):
    await started(journal)
    content = "NUL \0 and \u2028, \U0001f600, " + "x" * 1_000_000
    events: list[Event] = [
        MessageCompleted("msg\0_1", "user", content, "c"),
        ToolCallCommitted("call_1", "tool", '{"a": "\\u0000"}', "server", opaque={"k": ["\0", 2**53, -1.5, None]}),
    ]
    records = await journal.append("run_1", 1, 1, events, NOW)
    read = await journal.read("run_1", 1, 10)
    assert read == records
    assert [record.event for record in read] == events


async def test_what_a_reader_does_to_an_event_is_not_stored(journal: Journal):
    await started(journal)
    await journal.append("run_1", 1, 1, [FAILURE], NOW)
    [record] = await journal.read("run_1", 1, 10)
    assert isinstance(record.event, RunFailed)
    record.event.error["code"] = "changed"
    [again] = await journal.read("run_1", 1, 10)
    assert again.event == FAILURE


# --- reading ------------------------------------------------------------------------------------------------------


async def test_a_run_is_read_in_pages(journal: Journal):
    await started(journal)
    await journal.append("run_1", 1, 1, deltas(9), NOW)
    assert places(await journal.read("run_1", 0, 4)) == [1, 2, 3, 4]
    assert places(await journal.read("run_1", 4, 4)) == [5, 6, 7, 8]
    assert places(await journal.read("run_1", 8, 4)) == [9, 10]
    assert await journal.read("run_1", 10, 4) == []
    assert await journal.read("unknown", 0, 4) == []


async def test_a_thread_is_read_without_the_deltas_of_runs_that_are_over(journal: Journal):
    whole = MessageCompleted("msg_1", "assistant", "hi", "c")
    await started(journal)
    await journal.append("run_1", 1, 1, [*deltas(3), whole, DONE], NOW)
    await started(journal, run_id="run_2", client="r2", base=6)
    await journal.append("run_2", 1, 1, deltas(2), NOW)
    await started(journal, run_id="run_9", thread="thread_9")
    [(first, old), (second, new)] = await journal.read_thread("thread_1", 0)
    assert (first.run_id, places(old)) == ("run_1", [1, 5, 6])
    assert (second.run_id, places(new)) == ("run_2", [1, 2, 3])
    assert first == await journal.find_run("run_1")


async def test_a_thread_is_read_from_a_position(journal: Journal):
    await started(journal)
    await ended(journal, "run_1")
    await started(journal, run_id="run_2", client="r2", base=2)
    assert [(run.run_id, places(records)) for run, records in await journal.read_thread("thread_1", 1)] == [
        ("run_1", [2]),
        ("run_2", [1]),
    ]
    assert [run.run_id for run, _ in await journal.read_thread("thread_1", 2)] == ["run_2"]
    assert await journal.read_thread("thread_1", 3) == []
    assert await journal.read_thread("unknown", 0) == []


async def test_active_runs_are_named_oldest_first(journal: Journal):
    for number in (3, 1, 2):
        await started(journal, run_id=f"run_{number}", thread=f"thread_{number}", events=[] if number == 2 else None)
    await ended(journal, "run_1")
    assert [run.run_id for run in await journal.active_runs()] == ["run_3", "run_2"]


async def test_contents_are_stored_once(journal: Journal):
    await started(journal, contents={"a": b"first", "b": b"\0\xff"})
    await journal.put_contents({"a": b"second", "c": b""})
    await journal.put_contents({})
    assert [await journal.content(name) for name in "abcd"] == [b"first", b"\0\xff", b"", None]


async def test_a_closed_journal_says_so(journal: Journal):
    await journal.healthy()
    await journal.close()
    await journal.close()
    for call in (journal.healthy(), journal.find_run("run_1"), journal.put_contents({}), journal.begin_run(opening())):
        with pytest.raises(StoreError) as raised:
            await call
        assert raised.value.code == "store_closed"


async def test_what_was_handed_in_is_written_before_it_closes(journal: Journal):
    await started(journal)
    appends = [asyncio.ensure_future(journal.append("run_1", 1, seq, deltas(1), NOW)) for seq in range(1, 200)]
    await asyncio.sleep(0)
    await journal.close()
    assert len(await asyncio.gather(*appends)) == 199
    await journal.open()
    run = await journal.find_run("run_1")
    assert run is not None
    assert run.last_seq == 200


async def test_a_caller_who_stops_waiting_does_not_stop_the_commit(journal: Journal):
    await started(journal)
    waiting = asyncio.ensure_future(journal.append("run_1", 1, 1, deltas(1), NOW))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert places(await journal.append("run_1", 1, 1, deltas(1), NOW)) == [2]


async def test_a_restart_keeps_everything(journal: Journal):
    run = await started(journal, contents={"a": b"blob"})
    records = await journal.append("run_1", 1, 1, deltas(2), NOW)
    await journal.close()
    await journal.open()
    assert await journal.read("run_1", 1, 10) == records
    assert await journal.active_runs() == [replace(run, last_seq=3)]
    assert await journal.content("a") == b"blob"
    assert await journal.begin_run(opening("run_2")) == Replay(replace(run, last_seq=3))
    assert places(await journal.append("run_1", 1, 3, [DONE], NOW)) == [4]
