"""The inbox port: runs that wait for their thread, held by every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from runtime.events import Event, MessageCompleted, RunCancelled, RunCompleted, RunInterrupted, RunStarted
from runtime.journal import Busy, Moved, Queued, QueueFull, Replay, Started
from runtime.journal.inbox import Part, Starting
from runtime.journal.store import Store
from runtime.run import CANCELLED, QUEUED, RUNNING, SUCCEEDED, RunRecord
from tests.contract.test_journal import DONE, NOW, STARTED, ended, opening
from tests.stores import Home

SAID = MessageCompleted("u2", "user", "And me", "0" * 64)


async def at_work(store: Store, run_id: str = "run_1", **wanted: object) -> RunRecord:
    begun = await store.begin_run(opening(run_id, **wanted))  # pyright: ignore[reportArgumentType]
    assert isinstance(begun, Started)
    return begun.run


async def waiting(store: Store, run_id: str, when_busy: str = "enqueue", **more: object) -> RunRecord:
    begun = await asked(store, run_id, when_busy, **more)
    assert isinstance(begun, Queued)
    return begun.run


async def asked(store: Store, run_id: str, when_busy: str, **more: object):
    new = opening(run_id, client=run_id, digest=run_id, base=999)
    return await store.begin_run(replace(new, when_busy=when_busy, **more))  # pyright: ignore[reportArgumentType]


def starting(run: RunRecord, base: int, *events: Event, executor: str = "exec_1") -> Starting:
    facts = [STARTED, *events]
    return Starting(run.run_id, run.fence, base, executor, facts, NOW, 15.0, "agent", {"agent": b"{}"})


async def line(store: Store) -> list[str]:
    return [run.run_id for run in await store.queued_runs("thread_1")]


async def free(store: Store) -> list[str]:
    return [run.run_id for run in await store.next_queued()]


async def test_a_run_that_may_wait_is_stored_without_facts_where_it_would_be_busy(store: Store):
    first = await at_work(store)
    begun = await asked(store, "run_2", "enqueue")
    assert isinstance(begun, Queued)
    assert begun.behind.run_id == first.run_id
    for run in (begun.run, await store.find_run("run_2")):
        assert run is not None
        assert (run.status, run.last_seq, run.base, run.when_busy) == (QUEUED, 0, 0, "enqueue")
        assert (run.executor_instance_id, run.lease_expires_at) == (None, None)
    assert await store.read("run_2", 0, 10) == []
    assert await line(store) == ["run_2"]
    assert isinstance(await asked(store, "run_3", "reject"), Busy)


async def test_a_request_that_waits_is_found_again_by_its_repeats(store: Store):
    await at_work(store)
    await waiting(store, "run_2")
    again = replace(opening("run_9", client="run_2", digest="run_2"), when_busy="enqueue")
    begun = await store.begin_run(again)
    assert isinstance(begun, Replay)
    assert begun.run.run_id == "run_2"


async def test_a_run_that_could_begin_at_once_does_not_wait(store: Store):
    begun = await store.begin_run(replace(opening(), when_busy="enqueue"))
    assert isinstance(begun, Started)
    assert begun.run.when_busy is None


async def test_while_others_wait_nobody_else_begins_on_a_thread_that_has_become_free(store: Store):
    await at_work(store)
    await waiting(store, "run_2")
    over = await ended(store, "run_1")
    late = opening("run_3", client="r3", digest="d3", base=over.last_seq)
    assert isinstance(await store.begin_run(late), Busy)
    assert isinstance(await store.begin_run(replace(late, when_busy="enqueue")), Queued)
    assert await line(store) == ["run_2", "run_3"]


async def test_only_so_many_wait_for_a_thread(store: Store):
    await at_work(store)
    await waiting(store, "run_2", queue_limit=2)
    await waiting(store, "run_3", queue_limit=2)
    full = await asked(store, "run_4", "enqueue", queue_limit=2)
    assert isinstance(full, QueueFull)
    assert full.run.run_id == "run_1"
    assert await store.find_run("run_4") is None


async def test_first_in_is_first_out_but_who_interrupts_goes_before(store: Store):
    await at_work(store)
    await waiting(store, "run_2")
    await waiting(store, "run_3", "steer")
    await waiting(store, "run_4", "interrupt")
    await waiting(store, "run_5", "interrupt")
    assert await line(store) == ["run_4", "run_5", "run_2", "run_3"]


async def test_the_next_in_line_is_named_once_nobody_is_at_work(store: Store):
    await at_work(store)
    await waiting(store, "run_2")
    await waiting(store, "run_3")
    assert await free(store) == []
    await ended(store, "run_1")
    assert await free(store) == ["run_2"]
    assert [run.run_id for run in await store.next_queued("thread_1")] == ["run_2"]
    assert await store.next_queued("thread_2") == []


async def test_a_queued_run_begins_where_the_thread_stands_then(store: Store):
    await at_work(store)
    second = await waiting(store, "run_2")
    over = await ended(store, "run_1")
    begun = await store.start_queued(starting(second, over.last_seq, SAID))
    assert isinstance(begun, Started)
    assert [record.event for record in begun.records] == [STARTED, SAID]
    for run in (begun.run, await store.find_run("run_2")):
        assert run is not None
        assert (run.status, run.base, run.last_seq, run.fence) == (RUNNING, over.last_seq, 2, 2)
        assert (run.executor_instance_id, run.agent_snapshot_checksum) == ("exec_1", "agent")
        assert run.lease_expires_at is not None
    assert await store.content("agent") == b"{}"
    assert [record.seq for record in await store.append("run_2", 2, 2, [DONE], NOW)] == [3]
    facts = await store.read_thread("thread_1", 0)
    assert [(run.run_id, [record.seq for record in records]) for run, records in facts] == [
        ("run_1", [1, 2]),
        ("run_2", [1, 2, 3]),
    ]


async def test_a_queued_run_does_not_begin_out_of_turn_elsewhere_or_twice(store: Store):
    await at_work(store)
    second, third = await waiting(store, "run_2"), await waiting(store, "run_3")
    assert await store.start_queued(starting(second, 1)) is None, "somebody is at work"
    over = await ended(store, "run_1")
    assert await store.start_queued(starting(third, over.last_seq)) is None, "another was first"
    assert await store.start_queued(starting(second, 1)) is None, "the thread stands elsewhere"
    assert await store.start_queued(starting(replace(second, fence=7), over.last_seq)) is None
    assert await store.start_queued(starting(second, over.last_seq)) is not None
    assert await store.start_queued(starting(second, over.last_seq, executor="exec_2")) is None


async def test_two_who_start_the_next_one_start_it_once(store: Store):
    await at_work(store)
    second = await waiting(store, "run_2")
    over = await ended(store, "run_1")
    takers = [store.start_queued(starting(second, over.last_seq, executor=f"exec_{n}")) for n in range(4)]
    begun = await asyncio.gather(*takers)
    assert [one is not None for one in begun].count(True) == 1


async def test_who_withdraws_leaves_the_line_and_no_gap_in_the_thread(store: Store):
    await at_work(store)
    second, third = await waiting(store, "run_2"), await waiting(store, "run_3")
    await store.append("run_2", second.fence, 0, [RunCancelled("user", True)], NOW)
    assert await line(store) == ["run_3"]
    over = await ended(store, "run_1")
    begun = await store.start_queued(starting(third, over.last_seq))
    assert begun is not None
    after = await ended(store, "run_3")
    assert after.base + after.last_seq == over.last_seq + 2
    withdrawn = await store.find_run("run_2")
    assert withdrawn is not None
    assert (withdrawn.status, withdrawn.has_place) == (CANCELLED, False)
    next_one = opening("run_4", client="r4", digest="d4", base=after.base + after.last_seq)
    assert isinstance(await store.begin_run(next_one), Started)


async def test_a_run_that_has_begun_cannot_be_withdrawn_under_its_old_fence(store: Store):
    await at_work(store)
    second = await waiting(store, "run_2")
    over = await ended(store, "run_1")
    await store.start_queued(starting(second, over.last_seq))
    with pytest.raises(Exception, match="fence"):
        await store.append("run_2", second.fence, 0, [RunCancelled("user", True)], NOW)


ABSORBED: list[Event] = [RunStarted(NOW, "run_2", "assistant", "0" * 64, []), RunCompleted()]


async def test_what_is_taken_into_the_run_at_work_is_one_commit(store: Store):
    first = await at_work(store)
    second = await waiting(store, "run_2", "steer")
    parts = [Part("run_1", first.fence, 1, [SAID]), Part("run_2", second.fence, 0, ABSORBED)]
    records = await store.append_all(parts, NOW)
    assert records is not None
    assert [[record.seq for record in each] for each in records] == [[2], [1, 2]]
    absorbed = await store.find_run("run_2")
    assert absorbed is not None
    assert (absorbed.status, absorbed.has_place) == (SUCCEEDED, False)
    assert await line(store) == []
    assert [record.seq for record in await store.append("run_1", first.fence, 2, [DONE], NOW)] == [3]
    later = opening("run_3", client="r3", digest="d3", base=3)
    assert isinstance(await store.begin_run(later), Started)


async def test_of_what_belongs_together_nothing_is_committed_if_a_part_is_refused(store: Store):
    first = await at_work(store)
    second, third = await waiting(store, "run_2", "steer"), await waiting(store, "run_3", "steer")
    await store.append("run_3", third.fence, 0, [RunCancelled("user", True)], NOW)
    parts = [
        Part("run_1", first.fence, 1, [SAID]),
        Part("run_2", second.fence, 0, ABSORBED),
        Part("run_3", third.fence, 0, ABSORBED),
    ]
    assert await store.append_all(parts, NOW) is None
    assert await store.append_all([replace(parts[0], fence=9), parts[1]], NOW) is None
    assert len(await store.read("run_1", 0, 10)) == 1
    assert await line(store) == ["run_2"]
    assert [record.seq for record in await store.append("run_1", first.fence, 1, [SAID], NOW)] == [2]


async def test_a_lost_run_is_continued_once_and_before_everybody_else(store: Store):
    first = await at_work(store)
    await waiting(store, "run_2", "interrupt")

    def continuation(run_id: str):
        new = opening(run_id, client=run_id, digest="c", base=0, session=False)
        return replace(new, run=replace(new.run, continues="run_1"), when_busy="enqueue")

    assert isinstance(await store.begin_run(continuation("run_3")), Queued)
    again = await store.begin_run(continuation("run_4"))
    assert isinstance(again, Replay)
    assert again.run.run_id == "run_3"
    assert await line(store) == ["run_3", "run_2"]
    await store.append("run_1", first.fence, 1, [RunInterrupted("executor_lost")], NOW)
    assert await free(store) == ["run_3"]


async def test_a_run_that_somebody_let_go_of_is_to_be_taken_for_a_while_and_then_lost(store: Store, home: Home):
    first = await at_work(store)
    held = await store.take_over("run_1", "exec_1", 15)
    assert held is not None
    assert held.fence == first.fence + 1
    assert await store.handed_over() == []
    assert await store.hand_over("run_1", held.fence, 15)
    (left,) = await store.handed_over()
    assert (left.run_id, left.executor_instance_id) == ("run_1", None)
    assert await store.lost_runs() == []
    taken = await store.take_over("run_1", "exec_2", 15)
    assert taken is not None
    assert (taken.fence, taken.executor_instance_id) == (held.fence + 1, "exec_2")
    assert await store.handed_over() == []
    assert await store.hand_over("run_1", taken.fence, 15)
    await home.pass_time(15)
    assert await store.handed_over() == []
    assert [run.run_id for run in await store.lost_runs()] == ["run_1"]


async def test_in_a_shared_store_a_queued_run_of_one_process_is_begun_by_another(store: Store, home: Home):
    if not home.shared:
        pytest.skip("one process at a time")
    await at_work(store)
    second = await waiting(store, "run_2")
    over = await ended(store, "run_1")
    other = home.store()
    await other.open()
    try:
        assert await other.start_queued(starting(second, over.last_seq, executor="exec_2")) is not None
        assert await store.start_queued(starting(second, over.last_seq)) is None
        assert isinstance(await store.begin_run(opening("run_5", client="r5", digest="d5", base=0)), Busy | Moved)
    finally:
        await other.close()


async def test_whether_a_run_is_unread_is_told_to_other_processes(store: Store, home: Home):
    if not home.shared:
        pytest.skip("one process at a time")
    await at_work(store)
    assert not await store.is_unread("run_1")
    await store.mark_unread("run_1", unread=True)
    assert await store.is_unread("run_1")
    await store.mark_read(["run_1"])
    assert not await store.is_unread("run_1")
    await store.clear_read("run_1")
    assert await store.is_unread("run_1")
    await store.mark_unread("run_1", unread=False)
    assert not await store.is_unread("run_1")
    assert not await store.is_unread("run_9")
