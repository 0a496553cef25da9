"""The heartbeat: what it hears reaches the runs at work, and what was lost is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from runtime import events as e
from runtime import samples as s
from runtime.errors import StoreError
from runtime.heartbeat import Heartbeat
from runtime.journal.leases import Lease
from runtime.journal.memory import MemoryJournal
from runtime.journal.store import Store
from runtime.run import RunRecord
from runtime.supervisor import Leasing, Supervisor
from runtime.testing import says
from tests.contract.workshop import only, types, until, workshop
from tests.journals import Double


class Renewed(Double):
    """A store that says when leases were renewed twice."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.twice = asyncio.Event()
        self._times = 0

    async def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
        leases = await super().renew(executor_instance_id, run_ids, lease_s)
        self._times += 1
        if self._times == 2:
            self.twice.set()
        return leases


class Deaf(Double):
    """A store shared with others that has stopped to answer heartbeats."""

    silent = False

    @property
    def exclusive(self) -> bool:
        return False

    async def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
        if self.silent:
            raise StoreError("gone")
        return await super().renew(executor_instance_id, run_ids, lease_s)


class Hanging(Deaf):
    """A store whose heartbeats never come back (C-186)."""

    async def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
        if self.silent:
            await asyncio.Event().wait()
        return await super().renew(executor_instance_id, run_ids, lease_s)


async def test_a_run_at_work_keeps_its_lease():
    never = asyncio.Event()
    journal = Renewed(MemoryJournal())  # by the machine's clock
    async with workshop([s.TextDelta("a"), never, *says("b")], journal=journal, leasing=Leasing(0.3, 0.02)) as shop:
        run = await shop.begin()
        first = run.lease_expires_at
        assert first is not None
        async with asyncio.timeout(10):
            await journal.twice.wait()
        found = await shop.journal.find_run(run.run_id)
        assert found is not None
        assert found.lease_expires_at is not None
        assert found.lease_expires_at > first
        never.set()
        await shop.follow(run)


async def test_a_mark_from_elsewhere_cancels_the_run_with_its_reason():
    never = asyncio.Event()
    async with workshop([s.TextDelta("a"), never], leasing=Leasing(60, 60)) as shop:
        run = await shop.begin()
        await shop.seen(run, "message.delta")
        await shop.journal.mark_cancel(run.run_id, "because")
        shop.supervisor._heartbeat.hurry()
        events = await shop.follow(run)
        assert [kind for kind in types(events) if kind.startswith("run.")][-2:] == ["run.cancelling", "run.cancelled"]
        assert [over.reason for over in only(events, e.RunCancelled)] == ["because"]


async def test_a_run_that_another_took_stops_here_and_writes_nothing_more():
    never = asyncio.Event()
    async with workshop([s.TextDelta("a"), never], leasing=Leasing(60, 60)) as shop:
        run = await shop.begin()
        await until(lambda: len(shop.script.requests) == 1)
        taken = await shop.journal.take_over(run.run_id, "another", 15)
        assert taken is not None
        shop.supervisor._heartbeat.hurry()
        await until(lambda: not shop.supervisor.is_at_work(run.run_id))
        found = await shop.journal.find_run(run.run_id)
        assert found is not None
        assert (found.status, found.executor_instance_id) == ("running", "another")


@pytest.mark.parametrize("kind", [Deaf, Hanging])
async def test_work_stops_before_a_lease_that_cannot_be_renewed_ends(kind: type[Deaf]):
    store = kind(MemoryJournal())
    never = asyncio.Event()
    async with workshop([s.TextDelta("a"), never], journal=store, leasing=Leasing(2, 0.2)) as shop:
        run = await shop.begin()
        store.silent = True
        events = await shop.follow(run)
        assert [lost.reason for lost in only(events, e.RunInterrupted)] == ["lease_lost"]
        (over,) = await shop.journal.read(run.run_id, len(events) - 1, 1)
        found = await shop.journal.find_run(run.run_id)
        assert found is not None
        assert found.lease_expires_at is not None
        assert over.recorded_at < found.lease_expires_at


async def test_a_lost_run_is_closed_by_the_next_look_of_anybody():
    clock = [1_700_000_000_000]
    store = MemoryJournal(clock=lambda: clock[0])
    never = asyncio.Event()
    async with workshop([s.TextDelta("a"), never], journal=store, leasing=Leasing(60, 60)) as shop:
        run = await shop.begin()
        other = Supervisor(store, {}, leasing=Leasing(60, 60))
        await other._heartbeat.look_for_lost()
        still = await store.find_run(run.run_id)
        assert still is not None
        assert not still.is_over
        clock[0] += 60_000
        await other._heartbeat.look_for_lost()
        closed = await store.find_run(run.run_id)
        assert closed is not None
        assert closed.status == "interrupted"
        shop.supervisor._heartbeat.hurry()
        await until(lambda: not shop.supervisor.is_at_work(run.run_id))


async def test_a_beat_without_runs_asks_nothing():
    class Counting(Double):
        asked = 0

        async def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
            self.asked += 1
            return await super().renew(executor_instance_id, run_ids, lease_s)

    store = Counting(MemoryJournal())
    heartbeat = Heartbeat(
        store,
        "exec_1",
        lease_s=15,
        every_s=5,
        held=frozenset,
        on_leases=lambda held, leases: None,
        on_expiry=lambda: None,
        on_lost=_nothing,
    )
    await heartbeat.beat()
    assert store.asked == 0


async def _nothing(run: RunRecord) -> None:
    raise AssertionError(f"{run.run_id} was not lost")
