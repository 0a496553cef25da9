"""The run log: facts in order, a batch at a time, so many on their way and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from runtime import events as e
from runtime.errors import StoreError
from runtime.journal import Started
from runtime.journal.memory import MemoryJournal
from runtime.journal.tail import Tail
from runtime.run_log import RunLog
from runtime.testing import ManualClock
from runtime.thread import Thread
from tests.contract.test_journal import opening
from tests.contract.workshop import until
from tests.journals import HeldJournal

MOST = 4


def delta(number: int) -> e.MessageDelta:
    return e.MessageDelta("m1", "p0", 0, str(number))


@dataclass
class Desk:
    """A run log on a journal that holds every commit."""

    log: RunLog
    journal: HeldJournal
    thread: Thread
    tail: Tail
    run_id: str

    async def stored(self) -> list[int]:
        """The seqs that are committed."""
        return [record.seq for record in await self.journal.read(self.run_id, 0, 100)]


@asynccontextmanager
async def desk() -> AsyncGenerator[Desk, None]:
    journal = HeldJournal(MemoryJournal(), holding=False)
    started = await journal.begin_run(opening())
    assert isinstance(started, Started)
    journal.hold()
    thread, tail = Thread("thread_1"), Tail(journal)
    tail.opened("run_1")
    log = RunLog(started.run, thread, journal, tail, ManualClock(), MOST)
    yield Desk(log, journal, thread, tail, "run_1")
    journal.let_go()


async def test_what_is_ready_while_a_batch_is_committed_goes_into_the_next():
    async with desk() as at:
        at.log.emit([delta(1)])
        first = await at.journal.next()
        at.log.emit([delta(2)])
        at.log.emit([delta(3)])
        first.release()
        second = await at.journal.next()
        assert [first.events, second.events] == [[delta(1)], [delta(2), delta(3)]]
        flushed = asyncio.create_task(at.log.flush())
        await asyncio.sleep(0)
        assert not flushed.done()
        second.release()
        await flushed
        assert await at.stored() == [1, 2, 3, 4]


async def test_a_reader_is_woken_by_the_commit_and_not_by_the_writer():
    async with desk() as at:
        cursor = at.tail.follow(at.run_id, 1)
        reading = asyncio.create_task(cursor.next())
        at.log.emit([delta(1)])
        held = await at.journal.next()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not reading.done()
        held.release()
        assert [record.event for record in await reading] == [delta(1)]
        cursor.close()


async def test_a_writer_with_no_room_waits_for_a_commit():
    async with desk() as at:
        at.log.emit([delta(n) for n in range(MOST - 1)])
        assert not at.log.crowded
        await at.log.room()
        at.log.emit([delta(9)])
        assert at.log.crowded
        waiting = asyncio.create_task(at.log.room())
        held = await at.journal.next()
        await asyncio.sleep(0)
        assert not waiting.done()
        held.release()
        await waiting
        assert not at.log.crowded


async def test_nothing_is_taken_after_the_end():
    async with desk() as at:
        at.journal.let_go()
        at.log.end([e.RunCompleted()])
        position = at.thread.position
        at.log.emit([delta(1)])
        await at.log.flush()
        assert await at.stored() == [1, 2]
        assert at.thread.position == position


async def test_a_failure_is_told_once_and_then_to_everybody_who_waits():
    async with desk() as at:
        told: list[str] = []
        at.log.on_failure = lambda: told.append("failed")
        at.log.emit([delta(1)])
        held = await at.journal.next()
        waiting = [asyncio.create_task(at.log.flush()), asyncio.create_task(at.log.flush())]
        await asyncio.sleep(0)
        held.go.set_exception(StoreError("no room", code="store_full"))
        for wait in waiting:
            with pytest.raises(StoreError, match="no room"):
                await wait
        assert at.log.crowded
        at.log.emit([delta(2)])
        for _ in range(10):
            await asyncio.sleep(0)
        assert told == ["failed"]
        with pytest.raises(StoreError, match="no room"):
            await at.log.room()
        assert await at.stored() == [1]


async def test_a_fact_that_cannot_be_folded_is_none_and_those_before_it_are_kept(monkeypatch: pytest.MonkeyPatch):
    async with desk() as at:
        at.journal.let_go()
        bad = e.StateDelta([{"op": "remove", "path": "/nothing"}])
        with pytest.raises(Exception, match="operations do not apply"):
            at.log.emit([delta(1), bad, delta(2)])
        async with asyncio.timeout(5):
            await at.log.flush()
        at.log.emit([delta(3)])
        await at.log.flush()
        stored = await at.journal.read(at.run_id, 1, 100)
        assert [record.event for record in stored] == [delta(1), delta(3)]


async def test_a_waiter_that_is_cancelled_leaves_the_others_waiting():
    async with desk() as at:
        at.log.emit([delta(1)])
        held = await at.journal.next()
        one, other = asyncio.create_task(at.log.flush()), asyncio.create_task(at.log.flush())
        await asyncio.sleep(0)
        one.cancel()
        await until(one.done)
        held.release()
        await other
        assert one.cancelled()
