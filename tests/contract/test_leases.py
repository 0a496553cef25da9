"""The leases port: who is at work on which run, held by every store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtime.errors import FenceLost
from runtime.events import RunCancelled, RunCancelling, RunInterrupted
from runtime.journal import Started
from runtime.journal.leases import Lease
from runtime.journal.store import Store
from runtime.journal.wakes import End
from runtime.run import CANCELLING, INTERRUPTED, RUNNING, RunRecord
from tests.contract.test_journal import DONE, NOW, deltas, ended, opening
from tests.stores import RECORDED, Home

LEASE_S = 15.0


async def leased(store: Store, run_id: str = "run_1", executor: str = "exec_1", *, thread: str = "") -> RunRecord:
    """A run at work, held by `executor`."""
    asked = opening(run_id, thread or f"thread of {run_id}")
    begun = await store.begin_run(
        replace(asked, run=replace(asked.run, executor_instance_id=executor), lease_s=LEASE_S)
    )
    assert isinstance(begun, Started)
    return begun.run


async def found(store: Store, run_id: str = "run_1") -> RunRecord:
    run = await store.find_run(run_id)
    assert run is not None
    return run


async def test_a_run_is_held_from_its_beginning_by_the_clock_of_the_store(store: Store):
    assert (await leased(store)).lease_expires_at == RECORDED + 15_000
    assert (await found(store)).lease_expires_at == RECORDED + 15_000


async def test_a_heartbeat_holds_what_it_names_and_nothing_else(store: Store, home: Home):
    await leased(store)
    await leased(store, "run_2")
    await home.pass_time(10)
    assert await store.renew("exec_1", ["run_1"], LEASE_S) == [Lease("run_1", 1, None, None)]
    assert (await found(store)).lease_expires_at == RECORDED + 25_000
    assert (await found(store, "run_2")).lease_expires_at == RECORDED + 15_000


async def test_a_heartbeat_is_not_answered_for_what_is_over_or_of_others(store: Store):
    await leased(store)
    await leased(store, "run_2", "exec_2")
    await leased(store, "run_3")
    await ended(store, "run_3")
    assert [lease.run_id for lease in await store.renew("exec_1", ["run_1", "run_2", "run_3", "run_4"], 15)] == [
        "run_1"
    ]


async def test_runs_whose_lease_ran_out_are_lost_oldest_first(store: Store, home: Home):
    for number in (1, 2, 3):
        await leased(store, f"run_{number}")
    assert await store.lost_runs() == []
    await home.pass_time(10)
    await store.renew("exec_1", ["run_2"], LEASE_S)
    await home.pass_time(5)
    assert [run.run_id for run in await store.lost_runs()] == ["run_1", "run_3"]


async def test_a_run_that_is_over_is_not_lost(store: Store, home: Home):
    await leased(store)
    await ended(store, "run_1")
    await home.pass_time(60)
    assert await store.lost_runs() == []


async def test_taking_over_raises_the_fence_and_stops_the_old_executor(store: Store, home: Home):
    await leased(store)
    await store.append("run_1", 1, 1, deltas(2), NOW)
    await home.pass_time(15)
    run = await store.take_over("run_1", "exec_2", LEASE_S)
    assert run is not None
    assert (run.fence, run.executor_instance_id, run.last_seq, run.status) == (2, "exec_2", 3, RUNNING)
    assert run.lease_expires_at == RECORDED + 30_000
    assert await found(store) == run
    with pytest.raises(FenceLost):
        await store.append("run_1", 1, 3, [DONE], NOW)
    with pytest.raises(FenceLost):
        await store.append("run_1", 1, 1, deltas(2), NOW)
    assert await store.renew("exec_1", ["run_1"], LEASE_S) == []
    await store.append("run_1", 2, 3, [RunInterrupted("lost")], NOW)
    after = await found(store)
    assert (after.status, after.fence, after.finished_at) == (INTERRUPTED, 2, NOW)


async def test_a_run_whose_lease_holds_is_only_its_executors_to_take(store: Store):
    await leased(store)
    other = await store.take_over("run_1", "exec_2", LEASE_S)
    assert (other is not None) == store.exclusive  # nobody else is alive then, whatever an old lease says
    holder = "exec_2" if store.exclusive else "exec_1"
    again = await store.take_over("run_1", holder, LEASE_S)
    assert again is not None
    assert again.fence == (3 if store.exclusive else 2)


async def test_a_run_that_is_over_or_unknown_is_not_taken_over(store: Store, home: Home):
    await leased(store)
    await ended(store, "run_1")
    await home.pass_time(60)
    assert await store.take_over("run_1", "exec_2", LEASE_S) is None
    assert await store.take_over("unknown", "exec_2", LEASE_S) is None


async def test_a_run_that_was_handed_over_may_be_taken_at_once(store: Store):
    await leased(store)
    assert not await store.hand_over("run_1", 7)
    assert await store.hand_over("run_1", 1)
    assert [run.run_id for run in await store.lost_runs()] == ["run_1"]
    assert await store.take_over("run_1", "exec_2", LEASE_S) is not None
    assert await store.lost_runs() == []


async def test_a_mark_to_cancel_comes_with_the_next_heartbeat_and_the_first_one_counts(store: Store):
    await leased(store)
    marked = await store.mark_cancel("run_1", "user")
    assert marked is not None
    assert marked.status == RUNNING
    await store.mark_cancel("run_1", "another")
    assert await store.renew("exec_1", ["run_1"], LEASE_S) == [Lease("run_1", 1, "user", None)]
    assert await store.read("run_1", 1, 10) == []


async def test_a_mark_on_a_run_that_is_over_or_unknown_changes_nothing(store: Store):
    await leased(store)
    over = await ended(store, "run_1")
    assert await store.mark_cancel("run_1", "user") == over
    assert await store.mark_cancel("unknown", "user") is None


async def test_a_taken_over_run_keeps_its_mark(store: Store, home: Home):
    await leased(store)
    await store.mark_cancel("run_1", "user")
    await home.pass_time(15)
    await store.take_over("run_1", "exec_2", LEASE_S)
    assert await store.renew("exec_2", ["run_1"], LEASE_S) == [Lease("run_1", 2, "user", None)]


async def test_the_ends_of_many_runs_are_told_in_one_answer(store: Store):
    await leased(store)
    await store.append("run_1", 1, 1, deltas(2), NOW)
    await leased(store, "run_2")
    await store.append("run_2", 1, 1, [RunCancelling("user"), RunCancelled("user", external_stop_confirmed=True)], NOW)
    assert await store.ends(["run_1", "run_2", "unknown"]) == {"run_1": End(3, False), "run_2": End(3, True)}


async def test_a_cancelling_run_whose_executor_is_gone_is_lost_too(store: Store, home: Home):
    await leased(store)
    await store.append("run_1", 1, 1, [RunCancelling("user")], NOW)
    await home.pass_time(15)
    assert [run.status for run in await store.lost_runs()] == [CANCELLING]
