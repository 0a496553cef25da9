"""Whatever happens to runs and their readers, in any order: the journal is what a simple model of it says.

A state machine starts, repeats, follows, cuts, resumes, cancels, lets speak and finish, crashes the process and has
another executor take runs over, on memory and on SQLite.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from runtime.agent import Agent
from runtime.authority import ANONYMOUS
from runtime.canonical import JsonObject
from runtime.events import Record
from runtime.items import Item, Message, ToolSpec
from runtime.journal import Busy, Replay, Started
from runtime.journal.memory import MemoryJournal
from runtime.journal.sqlite import SqliteJournal
from runtime.journal.store import Store
from runtime.journal.tail import Cursor
from runtime.limits import Limits
from runtime.request import RunRequest
from runtime.run import TERMINAL
from runtime.samples import Sample
from runtime.supervisor import Leasing, Performer, Supervisor
from runtime.testing import CountingIds, SamplesDialect, says
from tests.contract.workshop import asking, until
from tests.examples import examples

R = TypeVar("R")

SESSIONS = ("s1", "s2")
MOST_RUNS = 12
WORDS = 6


class AskedDialect(SamplesDialect):
    """Requests that name the question."""

    def encode(self, items: Sequence[Item], tools: Sequence[ToolSpec], options: JsonObject) -> JsonObject:
        super().encode(items, tools, options)
        (*_, asked) = [item.content for item in items if isinstance(item, Message) and item.role == "user"]
        return {"asked": asked, **options}


class GatedModel:
    """A model that says the next word of an answer when it is let."""

    name = "gated"
    provider = "testing"

    def __init__(self) -> None:
        self.dialect = AskedDialect()
        self.words: dict[str, asyncio.Queue[Sample]] = {}
        self.asked: list[str] = []

    async def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        question = str(request["asked"])
        self.asked.append(question)
        for _ in range(WORDS + 2):
            yield {"sample": await self.words[question].get()}


@dataclass
class Known:
    """What the model of the test knows of a run."""

    run_id: str
    session: str
    request: RunRequest
    question: str
    unsaid: list[Sample]
    status: str = "running"


@dataclass
class Reader:
    """Somebody who follows a run: what they were given so far."""

    run: Known
    given: list[Record] = field(default_factory=list[Record])
    cursor: Cursor | None = None
    began_after: int = 0

    @property
    def after(self) -> int:
        return self.given[-1].seq if self.given else self.began_after


class LifeOfRuns(RuleBasedStateMachine):
    """One store, one process at a time, and a second executor that takes runs over."""

    runs = Bundle("runs")
    readers = Bundle("readers")
    cut_readers = Bundle("cut_readers")

    def make_store(self) -> Store:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.ids = CountingIds()
        self.store = self.make_store()
        self.known: list[Known] = []
        self.followed: list[Reader] = []
        self.model = GatedModel()
        self.supervisor = self.begin_process()

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        return self.loop.run_until_complete(asyncio.wait_for(work, 20))

    def begin_process(self) -> Supervisor:
        agent = Agent("assistant", model=self.model)
        supervisor = Supervisor(
            self.store,
            {"assistant": Performer(agent, self.model)},
            mint=self.ids,
            limits=Limits(stop_grace_s=0.2),
            leasing=Leasing(600, 600),
            disconnect_grace_s=600,
        )
        self.wait(supervisor.start())
        return supervisor

    def active(self, session: str) -> Known | None:
        return next((run for run in self.known if run.session == session and run.status == "running"), None)

    async def settled(self, run: Known) -> None:
        await until(lambda: not self.supervisor.is_at_work(run.run_id))

    # --- what may happen ------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.known) < MOST_RUNS)
    @rule(target=runs, session=st.sampled_from(SESSIONS))
    def start(self, session: str) -> Known:
        name = f"r{len(self.known) + 1}"
        question = f"What is {name}?"
        self.model.words[question] = asyncio.Queue()

        async def begin() -> Known:
            found, thread = await self.supervisor.open(ANONYMOUS, session)
            request = asking(thread, question, session, name)
            begun = await self.supervisor.begin(request, found, thread)
            if (other := self.active(session)) is not None:
                assert isinstance(begun, Busy)
                assert begun.run.run_id == other.run_id
                return other
            assert isinstance(begun, Started)
            words = says(" ".join(f"{name}{number}" for number in range(WORDS)))
            run = Known(begun.run.run_id, session, request, question, words)
            self.known.append(run)
            return run

        return self.wait(begin())

    @rule(run=runs)
    def repeat(self, run: Known) -> None:
        async def again() -> None:
            found, thread = await self.supervisor.open(ANONYMOUS, run.session)
            begun = await self.supervisor.begin(run.request, found, thread)
            assert isinstance(begun, Replay)
            assert begun.run.run_id == run.run_id

        self.wait(again())

    @rule(run=runs, words=st.integers(1, WORDS))
    def speak(self, run: Known, words: int) -> None:
        """The model says some words, not the last."""
        if run.status != "running":
            return

        said = run.unsaid[: min(words, len(run.unsaid) - 3)]
        run.unsaid = run.unsaid[len(said) :]

        async def say() -> None:
            before = await self.end_of(run)
            for sample in said:
                self.model.words[run.question].put_nowait(sample)
            await self.grown(run, before)

        if said:
            self.wait(say())

    @rule(run=runs)
    def finish(self, run: Known) -> None:
        if run.status != "running":
            return
        for sample in run.unsaid:
            self.model.words[run.question].put_nowait(sample)
        self.wait(self.settled(run))
        run.status = "succeeded"

    @rule(run=runs)
    def cancel(self, run: Known) -> None:
        self.wait(self.supervisor.cancel(run.run_id, "user", 10))
        if run.status == "running":
            run.status = "cancelled"

    @rule(run=runs)
    def take_over(self, run: Known) -> None:
        """Another executor believes that the run was lost, and closes it; what is at work here learns of it."""
        if run.status != "running":
            return

        async def take() -> None:
            other = Supervisor(self.store, {}, mint=self.ids)
            record = await self.store.find_run(run.run_id)
            assert record is not None
            assert await other.close_lost(record)
            self.model.words[run.question].put_nowait(says("late")[0])
            self.supervisor._heartbeat.hurry()
            await self.settled(run)

        self.wait(take())
        run.status = "interrupted"

    @rule()
    def crash(self) -> None:
        """The process ends at once; the next one closes what it left."""
        self.wait(self.supervisor.stop())
        for run in self.known:
            if run.status == "running":
                run.status = "interrupted"
        for reader in self.followed:
            reader.cursor = None
        self.supervisor = self.begin_process()

    @rule(target=readers, run=runs, behind=st.integers(0, 4))
    def follow(self, run: Known, behind: int) -> Reader:
        end = self.wait(self.end_of(run))
        after = min(behind, end)
        reader = Reader(run, cursor=self.wait(self.opened(run, after)), began_after=after)
        self.followed.append(reader)
        return reader

    @rule(reader=readers)
    def read(self, reader: Reader) -> None:
        if reader.cursor is None:  # its process has ended
            reader.cursor = self.wait(self.opened(reader.run, reader.after))
        self.wait(self.read_up(reader))

    @rule(target=cut_readers, reader=consumes(readers))
    def cut(self, reader: Reader) -> Reader:
        if reader.cursor is not None:
            self.wait(self.closed(reader.cursor))
            reader.cursor = None
        return reader

    @rule(target=readers, reader=consumes(cut_readers))
    def resume(self, reader: Reader) -> Reader:
        reader.cursor = self.wait(self.opened(reader.run, reader.after))
        return reader

    # --- what always holds ----------------------------------------------------------------------------------------

    async def end_of(self, run: Known) -> int:
        record = await self.store.find_run(run.run_id)
        assert record is not None
        return record.last_seq

    async def opened(self, run: Known, after: int) -> Cursor:
        return self.supervisor.follow(run.run_id, after)

    async def closed(self, cursor: Cursor) -> None:
        cursor.close()

    async def grown(self, run: Known, before: int) -> None:
        cursor = self.supervisor.follow(run.run_id, before)
        assert await cursor.next()
        cursor.close()

    async def read_up(self, reader: Reader) -> None:
        """Read what there is; more of a run at work may come later."""
        assert reader.cursor is not None
        while reader.after < await self.end_of(reader.run):
            records = await reader.cursor.next()
            assert records, "a reader was sent away before the end"
            reader.given += records

    @invariant()
    def the_store_agrees(self) -> None:
        self.wait(self.look())

    async def look(self) -> None:
        for run in self.known:
            record = await self.store.find_run(run.run_id)
            assert record is not None
            assert record.status == run.status, run.question
        for session in SESSIONS:
            at_work = [run for run in self.known if run.session == session and run.status == "running"]
            assert len(at_work) <= 1
        assert len(self.model.asked) == len(set(self.model.asked)), "a model was asked twice"

    def teardown(self) -> None:
        try:
            self.wait(self.whole())
        finally:
            self.wait(self.supervisor.stop())
            self.loop.close()
            super().teardown()

    async def whole(self) -> None:
        for run in self.known:
            await self.supervisor.cancel(run.run_id, "end of the test", 10)
            records = await self.store.read(run.run_id, 0, 10_000)
            assert [record.seq for record in records] == list(range(1, len(records) + 1))
            record = await self.store.find_run(run.run_id)
            assert record is not None
            assert record.status in TERMINAL
            ends = [r.seq for r in records if r.event_type in _TERMINAL_EVENTS]
            assert ends == [len(records)]
            cursor = self.supervisor.follow(run.run_id, 0)
            given: list[Record] = []
            while more := await cursor.next():
                given += more
            cursor.close()
            assert _as_told(given) == _as_told(records)
        for reader in self.followed:
            told = await self.store.read(reader.run.run_id, reader.began_after, len(reader.given))
            assert _as_told(reader.given) == _as_told(told)


_TERMINAL_EVENTS = {"run.completed", "run.failed", "run.cancelled", "run.interrupted", "run.suspended"}


def _as_told(records: list[Record]) -> list[tuple[int, str, bytes]]:
    return [(record.seq, record.event_type, record.payload) for record in records]


class LifeInMemory(LifeOfRuns):
    def make_store(self) -> Store:
        return MemoryJournal()


class LifeInSqlite(LifeOfRuns):
    def make_store(self) -> Store:
        self.folder = tempfile.TemporaryDirectory()
        return SqliteJournal(Path(self.folder.name) / "store.db", synchronous="normal")

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.folder.cleanup()


TestLifeInMemory = LifeInMemory.TestCase
TestLifeInMemory.settings = settings(examples(60), stateful_step_count=40)
TestLifeInSqlite = LifeInSqlite.TestCase
TestLifeInSqlite.settings = settings(examples(25), stateful_step_count=40)
