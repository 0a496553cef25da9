"""Live reading: every reader gets exactly the journal, whenever it comes, goes or dawdles."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from runtime.errors import InvalidCursor, NotFound, StoreError
from runtime.events import Event, MessageDelta, Record, RunCompleted, RunStarted
from runtime.journal import Opening, Started
from runtime.journal.memory import MemoryJournal
from runtime.journal.tail import PAGE, RING, Cursor, Tail
from runtime.run import QUEUED, RunRecord

NOW = 1_750_000_000_000
RUN = "run_1"


class CountingJournal(MemoryJournal):
    """Counts the pages read from the store, and can hold a read back until told."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = 0
        self.hold: asyncio.Event | None = None

    async def read(self, run_id: str, after: int, limit: int) -> list[Record]:
        self.pages += 1
        records = await super().read(run_id, after, limit)
        if self.hold is not None:
            await self.hold.wait()
        return records


class Writer:
    """Plays engine and supervisor: commits, then publishes."""

    def __init__(self, *, ring: int = RING, page: int = PAGE):
        self.journal = CountingJournal()
        self.tail = Tail(self.journal, ring=ring, page=page)
        self.seq = 0

    async def begin(self) -> None:
        self.tail.opened(RUN)
        run = RunRecord(RUN, "-", "me", "thread_1", None, "a", "r", "d", 1, QUEUED, 0, 0, 1, RUN, NOW)
        begun = await self.journal.begin_run(Opening(run, None, [RunStarted(NOW, "r", "a", "d", [])], NOW))
        assert isinstance(begun, Started)
        self.seq = 1
        self.tail.publish(RUN, begun.records)

    async def commit(self, count: int = 1) -> list[Record]:
        events = [MessageDelta("msg_1", "part_1", 0, f"{self.seq + n}") for n in range(count)]
        return await self._append(events)

    async def write(self, count: int = 1) -> None:
        self.tail.publish(RUN, await self.commit(count))

    async def end(self) -> None:
        self.tail.publish(RUN, await self._append([RunCompleted()]))
        self.tail.closed(RUN)

    async def _append(self, events: Sequence[Event]) -> list[Record]:
        records = await self.journal.append(RUN, 1, self.seq, events, NOW)
        self.seq += len(records)
        return records


async def begun(**sizes: int) -> Writer:
    writer = Writer(**sizes)
    await writer.begin()
    return writer


async def rest(cursor: Cursor) -> list[int]:
    seqs: list[int] = []
    while records := await cursor.next():
        seqs += [record.seq for record in records]
    return seqs


async def settle() -> None:
    """Let every task run as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def failure(cursor: Cursor) -> str:
    with pytest.raises(StoreError) as raised:
        await cursor.next()
    return raised.value.code


# --- following ----------------------------------------------------------------------------------------------------


async def test_a_reader_gets_what_is_there_then_what_comes_then_the_end():
    writer = await begun()
    cursor = writer.tail.follow(RUN, 0)
    assert [record.seq for record in await cursor.next()] == [1]
    waiting = asyncio.ensure_future(cursor.next())
    await settle()
    assert not waiting.done()
    await writer.write(3)
    assert [record.seq for record in await waiting] == [2, 3, 4]
    await writer.end()
    assert [record.seq for record in await cursor.next()] == [5]
    for _ in range(3):
        assert await cursor.next() == []


async def test_a_reader_begins_behind_its_cursor():
    writer = await begun()
    await writer.write(9)
    assert [record.seq for record in await writer.tail.follow(RUN, 7).next()] == [8, 9, 10]


async def test_a_reader_at_the_end_of_a_run_gets_its_end_when_that_comes():
    writer = await begun()
    waiting = asyncio.ensure_future(rest(writer.tail.follow(RUN, 1)))
    await settle()
    await writer.end()
    assert await waiting == [2]
    assert await rest(writer.tail.follow(RUN, 2)) == []
    assert await rest(writer.tail.follow(RUN, 1)) == [2]


async def test_a_reader_behind_the_terminal_of_a_run_that_is_still_open_here_waits_for_its_close():
    writer = await begun()
    writer.tail.publish(RUN, await writer._append([RunCompleted()]))
    waiting = asyncio.ensure_future(writer.tail.follow(RUN, 2).next())
    await settle()
    writer.tail.closed(RUN)
    assert await waiting == []


async def test_a_live_reader_never_asks_the_store():
    writer = await begun()
    reading = asyncio.ensure_future(rest(writer.tail.follow(RUN, 0)))
    for _ in range(50):
        await settle()
        await writer.write()
    await writer.end()
    assert await reading == list(range(1, 53))
    assert writer.journal.pages == 0


async def test_a_reader_gets_a_bounded_page_at_once():
    writer = await begun()
    await writer.write(PAGE * 2)
    assert len(await writer.tail.follow(RUN, 0).next()) == PAGE


async def test_sixteen_readers_each_get_everything():
    writer = await begun(ring=64, page=16)
    readers = [asyncio.ensure_future(rest(writer.tail.follow(RUN, after))) for after in (0, 1) * 8]
    for _ in range(40):
        await writer.write(3)
        await asyncio.sleep(0)
    await writer.end()
    for number, seqs in enumerate(await asyncio.gather(*readers)):
        assert seqs == list(range(1 + number % 2, 123))


async def test_a_slow_reader_falls_out_of_the_ring_and_misses_nothing():
    writer = await begun(ring=8, page=5)
    slow = writer.tail.follow(RUN, 0)
    assert [record.seq for record in await slow.next()] == [1]
    await writer.write(100)
    assert len(writer.tail._channels[RUN].recent) == 8
    await writer.end()
    assert await rest(slow) == list(range(2, 103))
    assert writer.journal.pages > 0


async def test_a_commit_between_reading_the_store_and_waiting_is_seen():
    writer = await begun(ring=4)
    await writer.write(20)
    writer.journal.hold = asyncio.Event()
    cursor = writer.tail.follow(RUN, 0)
    waiting = asyncio.ensure_future(cursor.next())
    await settle()
    await writer.write(2)
    writer.journal.hold.set()
    assert [record.seq for record in await waiting] == list(range(1, 22))
    assert [record.seq for record in await cursor.next()] == [22, 23]


async def test_a_reader_that_comes_before_the_first_publication_waits_for_it():
    writer = Writer()
    writer.tail.opened(RUN)
    waiting = asyncio.ensure_future(writer.tail.follow(RUN, 0).next())
    await settle()
    await writer.begin()
    assert [record.seq for record in await waiting] == [1]


async def test_a_first_publication_during_a_read_of_the_store_is_seen():
    writer = Writer()
    writer.tail.opened(RUN)
    writer.journal.hold = asyncio.Event()
    waiting = asyncio.ensure_future(writer.tail.follow(RUN, 0).next())
    await settle()
    await writer.begin()
    writer.journal.hold.set()
    assert [record.seq for record in await waiting] == [1]


async def test_a_run_opened_in_its_middle_is_read_from_its_beginning():
    writer = await begun()
    await writer.write(5)
    later = Tail(writer.journal)
    later.opened(RUN)
    cursor = later.follow(RUN, 0)
    assert [record.seq for record in await cursor.next()] == [1, 2, 3, 4, 5, 6]
    later.publish(RUN, await writer.commit())
    assert [record.seq for record in await cursor.next()] == [7]
    assert [record.seq for record in await later.follow(RUN, 2).next()] == [3, 4, 5, 6, 7]


async def test_repeated_and_late_publications_are_given_once():
    writer = await begun()
    first, second = await writer.commit(2), await writer.commit(2)
    cursor = writer.tail.follow(RUN, 1)
    writer.tail.publish(RUN, second)
    writer.tail.publish(RUN, first)
    writer.tail.publish(RUN, [*first, *second])
    writer.tail.publish(RUN, [])
    assert [record.seq for record in await cursor.next()] == [2, 3, 4, 5]
    assert [record.seq for record in writer.tail._channels[RUN].recent] == [4, 5]


async def test_publications_of_runs_that_are_not_open_are_ignored():
    writer = Writer()
    writer.tail.publish(RUN, [])
    writer.tail.closed(RUN)
    assert writer.tail._channels == {}


# --- not live here ------------------------------------------------------------------------------------------------


async def test_a_finished_run_is_read_from_the_store_in_pages():
    writer = await begun(page=4)
    await writer.write(9)
    await writer.end()
    cursor = writer.tail.follow(RUN, 2)
    assert [len(await cursor.next()) for _ in range(4)] == [4, 4, 1, 0]


async def test_a_run_at_work_elsewhere_is_read_as_far_as_it_is_and_then_refused():
    writer = await begun()
    await writer.write(3)
    elsewhere = Tail(writer.journal)
    cursor = elsewhere.follow(RUN, 1)
    assert [record.seq for record in await cursor.next()] == [2, 3, 4]
    assert await failure(cursor) == "run_elsewhere"


async def test_a_run_that_is_closed_without_an_end_does_not_look_ended():
    writer = await begun()
    cursor = writer.tail.follow(RUN, 0)
    await cursor.next()
    waiting = asyncio.ensure_future(cursor.next())
    await settle()
    writer.tail.closed(RUN)
    with pytest.raises(StoreError) as raised:
        await waiting
    assert raised.value.code == "run_elsewhere"


async def test_a_run_that_comes_to_this_process_goes_on_for_its_reader():
    writer = await begun()
    here = Tail(writer.journal)
    cursor = here.follow(RUN, 0)
    await cursor.next()
    here.opened(RUN)
    waiting = asyncio.ensure_future(cursor.next())
    await settle()
    here.publish(RUN, await writer.commit())
    assert [record.seq for record in await waiting] == [2]


async def test_an_unknown_run_is_not_found_and_a_future_cursor_is_refused():
    writer = await begun()
    with pytest.raises(NotFound):
        await writer.tail.follow("unknown", 0).next()
    await writer.end()
    with pytest.raises(InvalidCursor):
        await writer.tail.follow(RUN, 3).next()


async def test_a_run_that_was_opened_and_did_not_begin_is_not_found():
    writer = Writer()
    writer.tail.opened(RUN)
    waiting = asyncio.ensure_future(writer.tail.follow(RUN, 0).next())
    await settle()
    writer.tail.closed(RUN)
    with pytest.raises(NotFound):
        await waiting


# --- gaps ---------------------------------------------------------------------------------------------------------


async def test_a_gap_in_the_store_stops_the_reader():
    writer = await begun()
    await writer.write(5)
    await writer.end()
    del writer.journal._records[RUN][3]
    assert await failure(writer.tail.follow(RUN, 0)) == "journal_gap"


async def test_a_hole_that_only_the_store_could_fill_stops_the_reader():
    writer = await begun(ring=2)
    await writer.write(5)
    del writer.journal._records[RUN][2:]
    assert await failure(writer.tail.follow(RUN, 2)) == "journal_gap"


# --- readers ------------------------------------------------------------------------------------------------------


async def test_open_cursors_are_counted_and_reported():
    writer = await begun()
    seen: list[tuple[str, int]] = []
    writer.tail.on_readers_changed = lambda run_id, count: seen.append((run_id, count))
    first, second = writer.tail.follow(RUN, 0), writer.tail.follow(RUN, 0)
    assert writer.tail.readers(RUN) == 2
    first.close()
    first.close()
    second.close()
    assert writer.tail.readers(RUN) == 0
    assert seen == [(RUN, 1), (RUN, 2), (RUN, 1), (RUN, 0)]


async def test_a_cursor_that_is_closed_while_it_waits_does_not_look_ended():
    writer = await begun()
    cursor, other = writer.tail.follow(RUN, 1), writer.tail.follow(RUN, 1)
    waiting = asyncio.ensure_future(cursor.next())
    undisturbed = asyncio.ensure_future(other.next())
    await settle()
    cursor.close()
    with pytest.raises(StoreError) as raised:
        await waiting
    assert raised.value.code == "cursor_closed"
    await settle()
    assert not undisturbed.done()
    await writer.write()
    assert [record.seq for record in await undisturbed] == [2]


async def test_a_reader_that_is_cancelled_leaves_nothing_behind():
    writer = await begun()
    cursor = writer.tail.follow(RUN, 1)
    waiting = asyncio.ensure_future(cursor.next())
    await settle()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert writer.tail._channels[RUN]._waiting == set()
    await writer.write()
    assert [record.seq for record in await cursor.next()] == [2]


async def read_with_cuts(writer: Writer, dice: random.Random) -> list[int]:
    """A reader that leaves at random and comes back where it was, as a browser does."""
    seqs: list[int] = []
    while True:
        cursor = writer.tail.follow(RUN, len(seqs))
        for _ in range(dice.randint(1, 4)):
            records = await cursor.next()
            if not records:
                cursor.close()
                return seqs
            seqs += [record.seq for record in records]
            for _ in range(dice.choice((0, 0, 1, 7))):
                await asyncio.sleep(0)
        cursor.close()


@pytest.mark.parametrize("seed", range(25))
async def test_readers_that_are_cut_and_resume_anywhere_get_exactly_the_journal(seed: int):
    dice = random.Random(seed)
    writer = await begun(ring=dice.randint(1, 20), page=dice.randint(1, 12))
    readers = [asyncio.ensure_future(read_with_cuts(writer, random.Random(seed * 100 + n))) for n in range(16)]
    while writer.seq < 150:
        held = [await writer.commit(dice.randint(1, 9)) for _ in range(dice.randint(1, 3))]
        if dice.random() < 0.3:
            await asyncio.sleep(0)
        for records in held:
            writer.tail.publish(RUN, records)
        for _ in range(dice.choice((0, 1, 1, 5))):
            await asyncio.sleep(0)
    await writer.end()
    for seqs in await asyncio.gather(*readers):
        assert seqs == list(range(1, writer.seq + 1))
    assert writer.tail.readers(RUN) == 0
