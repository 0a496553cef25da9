"""Following runs that other processes perform: nothing is missed, whatever becomes of the wakes, and nothing is asked
while nobody waits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest

from runtime.errors import NotFound, StoreError
from runtime.events import Event, MessageDelta, RunCompleted, RunStarted
from runtime.journal import Opening, Started
from runtime.journal.elsewhere import POLL_S
from runtime.journal.memory import MemoryJournal
from runtime.journal.tail import MARK_S, Cursor, Tail
from runtime.journal.wakes import End, Wake
from runtime.run import QUEUED, RunRecord
from runtime.testing import ManualClock

NOW = 1_750_000_000_000
RUN = "run_1"


class SharedJournal(MemoryJournal):
    """Facts that several processes share, and what they tell each other."""

    def __init__(self) -> None:
        super().__init__()
        self.polls: list[list[str]] = []
        self.marks: list[list[str]] = []
        self.cleared: list[str] = []
        self.woken: list[Wake] = []
        self.fails = False

    @property
    def exclusive(self) -> bool:
        return False

    async def ends(self, run_ids: Sequence[str]) -> dict[str, End]:
        self.polls.append(list(run_ids))
        if self.fails:
            raise StoreError
        return await super().ends(run_ids)

    async def mark_read(self, run_ids: Sequence[str]) -> None:
        self.marks.append(list(run_ids))

    async def clear_read(self, run_id: str) -> None:
        self.cleared.append(run_id)

    async def wake(self, wake: Wake) -> None:
        self.woken.append(wake)


class World:
    """A run at work in one process, and a tail in another."""

    def __init__(self) -> None:
        self.store = SharedJournal()
        self.clock = ManualClock()
        self.tail = Tail(self.store, clock=self.clock, mark_s=MARK_S)
        self.seq = 0

    async def begin(self) -> World:
        run = RunRecord(RUN, "-", "me", "thread_1", None, "a", "r", "d", 1, QUEUED, 0, 0, 1, RUN, NOW)
        begun = await self.store.begin_run(Opening(run, None, [RunStarted(NOW, "r", "a", "d", [])], NOW))
        assert isinstance(begun, Started)
        self.seq = 1
        return self

    async def commit(self, count: int = 1) -> None:
        """The other process appends, and says nothing."""
        await self._append([MessageDelta("msg_1", "part_1", 0, f"{self.seq + n}") for n in range(count)])

    async def end(self) -> None:
        await self._append([RunCompleted()])

    def tell(self) -> None:
        """The other process says how far it is."""
        self.tail.elsewhere.heard(Wake("events", RUN, self.seq))

    async def tick(self, seconds: float = POLL_S) -> None:
        self.clock.advance(seconds)
        await settle()

    async def _append(self, events: Sequence[Event]) -> None:
        self.seq += len(await self.store.append(RUN, 1, self.seq, events, NOW))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def rest(cursor: Cursor) -> list[int]:
    seqs: list[int] = []
    while records := await cursor.next():
        seqs += [record.seq for record in records]
    return seqs


async def waiting(world: World, after: int = 0) -> tuple[Cursor, asyncio.Task[list[int]]]:
    """A reader that has all there is and waits for the rest."""
    cursor = world.tail.follow(RUN, after)
    task = asyncio.create_task(rest(cursor))
    await settle()
    assert not task.done()
    return cursor, task


async def test_a_wake_ends_the_wait_at_once():
    world = await World().begin()
    _, reading = await waiting(world)
    await world.commit(3)
    world.tell()
    await settle()
    await world.end()
    world.tell()
    assert await reading == [1, 2, 3, 4, 5]
    assert world.store.polls == []


async def test_what_no_wake_told_of_is_found_by_asking_once_a_second():
    world = await World().begin()
    _, reading = await waiting(world)
    await world.commit(2)
    await settle()
    await world.tick()
    await world.end()
    await world.tick()
    assert await reading == [1, 2, 3, 4]
    assert world.store.polls == [[RUN], [RUN]]


async def test_a_listener_that_was_away_makes_everybody_look():
    world = await World().begin()
    _, reading = await waiting(world)
    await world.commit()
    await world.end()
    world.tail.elsewhere.heard(None)
    assert await reading == [1, 2, 3]


async def test_one_question_a_second_serves_all_followed_runs():
    world = World()
    for number in range(100):
        run_id = f"run_{number}"
        run = RunRecord(run_id, "-", "me", run_id, None, "a", "r", "d", 1, QUEUED, 0, 0, 1, run_id, NOW)
        await world.store.begin_run(Opening(run, None, [RunStarted(NOW, "r", "a", "d", [])], NOW))
    tasks = [asyncio.create_task(rest(world.tail.follow(f"run_{n % 100}", 0))) for n in range(1000)]
    await settle()
    await settle()
    for _ in range(3):
        await world.tick()
    assert [len(asked) for asked in world.store.polls] == [100, 100, 100]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_nobody_asks_while_nobody_waits():
    world = await World().begin()
    await world.tick()
    assert world.clock.sleepers == 0
    cursor, reading = await waiting(world)
    assert world.clock.sleepers == 1
    cursor.close()
    await asyncio.gather(reading, return_exceptions=True)
    await settle()
    await world.tick()
    assert world.store.polls == []


async def test_the_owner_is_told_when_the_first_reader_comes_and_when_the_last_one_leaves():
    world = await World().begin()
    first, one = await waiting(world)
    second, two = await waiting(world)
    assert world.store.marks == [[RUN]]
    assert world.store.woken == [Wake("read", RUN)]
    first.close()
    await settle()
    assert world.store.cleared == []
    second.close()
    await settle()
    assert world.store.cleared == [RUN]
    await asyncio.gather(one, two, return_exceptions=True)


async def test_a_run_that_goes_on_being_read_is_marked_again_and_again():
    world = await World().begin()
    _, reading = await waiting(world)
    for _ in range(7):
        await world.tick()
    assert len(world.store.marks) == 1 + 7 // MARK_S
    await world.end()
    await world.tick()
    assert await reading == [1, 2]
    await settle()
    assert world.store.cleared == [RUN]


async def test_a_reader_that_comes_again_at_once_is_not_taken_for_gone():
    world = await World().begin()
    first, one = await waiting(world)
    first.close()
    _, two = await waiting(world)
    await settle()
    assert world.store.cleared.count(RUN) < world.store.marks.count([RUN])
    await asyncio.gather(one, return_exceptions=True)
    two.cancel()
    await asyncio.gather(two, return_exceptions=True)


async def test_a_run_that_comes_to_this_process_is_no_longer_waited_for_elsewhere():
    world = await World().begin()
    _, reading = await waiting(world)
    world.tail.opened(RUN)
    await settle()
    assert world.clock.sleepers == 1
    records = await world.store.append(RUN, 1, 1, [MessageDelta("m", "p", 0, "x"), RunCompleted()], NOW)
    world.tail.publish(RUN, records)
    assert await reading == [1, 2, 3]
    await settle()
    assert world.store.cleared == [RUN]


async def test_a_run_that_leaves_this_process_is_followed_where_it_goes():
    world = await World().begin()
    world.tail.opened(RUN)
    world.tail.publish(RUN, await world.store.read(RUN, 0, 10))
    _, reading = await waiting(world)
    world.tail.closed(RUN)
    await settle()
    assert not reading.done()
    await world.end()
    world.tell()
    assert await reading == [1, 2]


async def test_a_cursor_that_is_closed_while_it_waits_elsewhere_says_so():
    world = await World().begin()
    cursor, reading = await waiting(world)
    cursor.close()
    with pytest.raises(StoreError) as raised:
        await reading
    assert raised.value.code == "cursor_closed"


async def test_a_store_that_fails_once_is_asked_again():
    world = await World().begin()
    _, reading = await waiting(world)
    await world.end()
    world.store.fails = True
    await world.tick()
    assert not reading.done()
    world.store.fails = False
    await world.tick()
    assert await reading == [1, 2]


async def test_a_run_that_is_purged_while_it_is_followed_is_not_found():
    world = await World().begin()
    _, reading = await waiting(world)
    world.store._runs.clear()
    world.store._records.clear()
    await world.tick()
    with pytest.raises(NotFound):
        await reading


async def test_what_was_committed_while_the_reader_looked_is_not_waited_for():
    """A hint between the look at the store and the wait counts."""
    world = await World().begin()
    stay = world.tail.elsewhere.follow(RUN)
    news = stay.news
    world.tell()
    await asyncio.wait_for(stay.wait(1, news), 1)
    stay.leave()
    await world.tail.elsewhere.close()


@pytest.mark.parametrize("seed", range(20))
async def test_readers_get_exactly_the_journal_whatever_becomes_of_the_wakes(seed: int):
    chance = random.Random(seed)
    world = await World().begin()
    readers = [asyncio.create_task(rest(world.tail.follow(RUN, after))) for after in (0, 1, 0, 1)]
    doubtful: list[Callable[[], object]] = [
        world.tell,
        lambda: world.tail.elsewhere.heard(None),
        lambda: world.tail.elsewhere.heard(Wake("events", RUN, 10**9)),
        lambda: world.tail.elsewhere.heard(Wake("events", "another", 7)),
        lambda: None,
    ]
    for _ in range(40):
        await world.commit(chance.randint(1, 5))
        chance.choice(doubtful)()
        if chance.random() < 0.3:
            await world.tick()
        for _ in range(chance.randint(0, 5)):
            await asyncio.sleep(0)
    await world.end()
    await settle()
    await world.tick()
    await world.tick()
    for number, seqs in enumerate(await asyncio.gather(*readers)):
        assert seqs == list(range(1 + number % 2, world.seq + 1))
