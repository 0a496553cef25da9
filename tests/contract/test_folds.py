"""Folds of a thread as it once was: read from the store, and no further than needed."""

from __future__ import annotations

from runtime.events import Event, MessageCompleted, MessageStarted, Record
from runtime.folds import PAGE, Folds
from runtime.journal.memory import MemoryJournal
from runtime.run import RunRecord
from tests.contract.test_journal import DONE, STARTED, deltas, ended, started
from tests.journals import Double


class Counting(Double):
    """Counts the records that are read."""

    read_so_far = 0

    async def read(self, run_id: str, after: int, limit: int) -> list[Record]:
        records = await super().read(run_id, after, limit)
        self.read_so_far += len(records)
        return records

    async def read_thread(
        self, thread_id: str, after: int, up_to: int | None = None
    ) -> list[tuple[RunRecord, list[Record]]]:
        found = await super().read_thread(thread_id, after, up_to)
        self.read_so_far += sum(len(records) for _, records in found)
        return found


def asks(number: int) -> MessageCompleted:
    return MessageCompleted(f"u{number}", "user", "Hi", "0" * 64)


async def two_runs(intake: list[Event], said: int) -> tuple[Counting, RunRecord]:
    """A finished run, and one at work that took these facts in and has said so many words."""
    journal = Counting(MemoryJournal())
    await started(journal, events=[STARTED, asks(1)])
    await journal.append("run_1", 1, 2, [MessageStarted("msg_1", "assistant"), *deltas(200)], 0)
    over = await ended(journal, "run_1", DONE)
    run = await started(journal, run_id="run_2", client="r2", base=over.last_seq, events=[STARTED, *intake])
    await journal.append("run_2", 1, run.last_seq, [MessageStarted("msg_2", "assistant"), *deltas(said)], 0)
    live = await journal.find_run("run_2")
    assert live is not None
    return journal, live


async def test_a_thread_as_a_run_found_it_is_read_without_what_the_run_has_said():
    journal, run = await two_runs([asks(2)], 30_000)
    thread = await Folds(journal).as_of(run)
    assert [entry.key.partition("#")[0] for entry in thread.entries] == ["u1", "msg_1", "u2"]
    assert thread.position == run.base + 2
    assert journal.read_so_far <= 4 + PAGE


async def test_everything_that_came_with_the_request_is_taken_in_however_much_it_is():
    for count in (1, PAGE - 2, PAGE - 1, PAGE, 3 * PAGE):
        journal, run = await two_runs([asks(number) for number in range(2, 2 + count)], 10)
        thread = await Folds(journal).as_of(run)
        assert thread.position == run.base + 1 + count
        assert len(thread.users()) == 1 + count


async def test_a_thread_before_a_run_ends_where_the_run_begins():
    journal, run = await two_runs([asks(2)], 100)
    thread = await Folds(journal).before(run)
    assert [entry.key.partition("#")[0] for entry in thread.entries] == ["u1", "msg_1"]
    assert thread.position == run.base
    assert journal.read_so_far == 4
    first = await journal.find_run("run_1")
    assert first is not None
    assert (await Folds(journal).before(first)).is_empty
