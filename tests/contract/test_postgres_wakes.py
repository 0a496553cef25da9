"""Processes over one PostgreSQL wake each other; a wake that is lost costs time and never a fact."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from runtime.events import Event, MessageDelta, RunCompleted, RunStarted
from runtime.journal import Opening, Started, postgres_wakes
from runtime.journal.postgres import PostgresStore
from runtime.journal.postgres_wakes import text_of, wake_in
from runtime.journal.queries import load
from runtime.journal.tail import Tail
from runtime.journal.wakes import Wake
from runtime.run import QUEUED, RunRecord
from tests.stores import PostgresHome

pytestmark = pytest.mark.needs_postgres

NOW = 1_750_000_000_000


class Process:
    """A store as a process has it, with the tail that is told of wakes."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.tail = Tail(store)
        self.heard: list[Wake | None] = []
        self._more = asyncio.Event()
        store.subscribe(self._on_wake)

    def _on_wake(self, wake: Wake | None) -> None:
        self.heard.append(wake)
        self.tail.elsewhere.heard(wake)
        self._more.set()

    async def until_heard(self, wake: Wake | None, times: int = 1) -> None:
        async with asyncio.timeout(10):
            while self.heard.count(wake) < times:
                self._more.clear()
                await self._more.wait()

    async def append(self, seq: int, events: list[Event], *, tell: bool = True) -> None:
        await self.store.append("run_1", 1, seq, events, NOW)
        if tell:
            await self.store.wake(Wake("events", "run_1", seq + len(events)))

    async def close(self) -> None:
        await self.tail.elsewhere.close()
        await self.store.close()


@asynccontextmanager
async def process_over(url: str) -> AsyncGenerator[Process, None]:
    process = Process(PostgresStore(url))
    await process.store.open()
    try:
        yield process
    finally:
        await process.close()


@pytest.fixture
async def here(postgres_home: PostgresHome) -> AsyncIterator[Process]:
    async with process_over(postgres_home.url) as process:
        yield process


@pytest.fixture
async def there(postgres_home: PostgresHome) -> AsyncIterator[Process]:
    async with process_over(postgres_home.url) as process:
        yield process


async def begin(process: Process) -> None:
    run = RunRecord("run_1", "-", "me", "thread_1", None, "a", "r", "d", 1, QUEUED, 0, 0, 1, "run_1", NOW)
    begun = await process.store.begin_run(Opening(run, None, [RunStarted(NOW, "r", "a", "d", [])], NOW))
    assert isinstance(begun, Started)


def delta(number: int) -> list[Event]:
    return [MessageDelta("msg_1", "part_1", 0, f"tok {number} ")]


def reading(process: Process) -> asyncio.Task[list[int]]:
    """A reader of the whole run."""

    async def read() -> list[int]:
        seqs: list[int] = []
        cursor = process.tail.follow("run_1", 0)
        try:
            while records := await cursor.next():
                seqs += [record.seq for record in records]
        finally:
            cursor.close()
        return seqs

    return asyncio.create_task(read())


async def listening(home: PostgresHome) -> list[int]:
    """The backends that listen."""
    rows = await home.fetch(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1",
        "agui-bridge listen",
    )
    return [row["pid"] for row in rows]


# --- payloads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wake", [Wake("events", "run_1", 7), Wake("cancel", "a:b:c"), Wake("inbox", ""), Wake("read", "é")]
)
def test_a_wake_is_told_apart_from_ones_own(wake: Wake):
    assert wake_in(text_of(wake, "them"), "us") == wake
    assert wake_in(text_of(wake, "us"), "us") is None


@pytest.mark.parametrize("text", ["", "events", "later:run_1:0:them", "events:run_1:x:them", "::::", "events:them"])
def test_what_a_later_release_says_is_ignored(text: str):
    assert wake_in(text, "us") is None


# --- sending and hearing ------------------------------------------------------------------------------------------


async def test_others_hear_a_wake_and_the_sender_does_not(here: Process, there: Process):
    for wake in (Wake("events", "run_1", 3), Wake("cancel", "run_1"), Wake("inbox", "run_2"), Wake("read", "run_1")):
        await here.store.wake(wake)
        await there.until_heard(wake)
    await there.store.wake(Wake("cancel", "run_9"))
    await here.until_heard(Wake("cancel", "run_9"))
    assert here.heard == [Wake("cancel", "run_9")]


async def test_wakes_that_come_fast_are_merged_into_few_statements(
    here: Process, there: Process, monkeypatch: pytest.MonkeyPatch
):
    assert here.store._store is not None
    pool = here.store._store.pool
    fetch, sent = pool.fetch_once, list[int]()

    async def counting(sql: str, *values: Any) -> Any:
        if sql == load("postgres")["notify"]:
            sent.append(len(values[1]))
        return await fetch(sql, *values)

    monkeypatch.setattr(pool, "fetch_once", counting)
    for seq in range(1, 1001):
        await here.store.wake(Wake("events", "run_1", seq))
        await here.store.wake(Wake("events", "run_2", seq))
    await there.until_heard(Wake("events", "run_2", 1000))
    assert len(sent) <= 3
    assert max(sent) <= 2
    assert len(there.heard) == sum(sent)


async def test_no_wake_is_sent_within_the_transaction_of_an_append():
    append = load("postgres")["append"] + load("postgres")["start_run"]
    assert "notify" not in append.lower()


async def test_a_store_without_a_subscriber_holds_no_listener(postgres_home: PostgresHome):
    store = postgres_home.store()
    await store.open()
    assert await listening(postgres_home) == []
    await store.close()


# --- following what another process performs ----------------------------------------------------------------------


async def test_a_follower_elsewhere_gets_every_event_as_it_comes(here: Process, there: Process):
    await begin(here)
    reader = reading(there)
    await here.until_heard(Wake("read", "run_1"))
    for seq in range(1, 100):
        await here.append(seq, delta(seq))
    await here.append(100, [RunCompleted()])
    assert await asyncio.wait_for(reader, 20) == list(range(1, 102))


async def test_the_owner_learns_that_another_process_reads_and_that_it_has_left(here: Process, there: Process):
    await begin(here)
    taken = await here.store.take_over("run_1", "exec_1", 15)
    assert taken is not None
    reader = reading(there)
    await here.until_heard(Wake("read", "run_1"))
    assert [lease.unread_ms for lease in await here.store.renew("exec_1", ["run_1"], 15)] == [0]
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    await there.tail.elsewhere.close()
    assert [lease.unread_ms for lease in await here.store.renew("exec_1", ["run_1"], 15)] == [None]


async def test_a_follower_elsewhere_misses_nothing_when_no_wake_comes(here: Process, there: Process):
    """Only the question that is asked once a second tells it."""
    await begin(here)
    reader = reading(there)
    await here.until_heard(Wake("read", "run_1"))
    await here.append(1, delta(1), tell=False)
    await here.append(2, [RunCompleted()], tell=False)
    assert await asyncio.wait_for(reader, 20) == [1, 2, 3]
    assert there.heard == []


async def test_a_listener_that_is_ended_comes_back_and_makes_everybody_look(
    here: Process, there: Process, postgres_home: PostgresHome
):
    await begin(here)
    reader = reading(there)
    await here.until_heard(Wake("read", "run_1"))
    seq = 1
    for times in range(1, 4):
        for pid in await listening(postgres_home):
            await postgres_home.fetch("SELECT pg_terminate_backend($1)", pid)
        await here.append(seq, delta(seq))
        seq += 1
        await there.until_heard(None, times)
    await here.append(seq, [RunCompleted()])
    assert await asyncio.wait_for(reader, 20) == list(range(1, seq + 2))
    assert there.heard.count(None) == 3


class Line:
    """A TCP line to the server that can go silent without being cut, as a failing network does."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._open = asyncio.Event()
        self._open.set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.lines = 0

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    def go_silent(self) -> None:
        """What is connected now says nothing any more; new lines work."""
        self._open.clear()
        self._open = asyncio.Event()
        self._open.set()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lines += 1
        up_reader, up_writer = await asyncio.open_connection(self._host, self._port)
        for source, target in ((reader, up_writer), (up_reader, writer)):
            pump = asyncio.create_task(self._pump(source, target, self._open))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, is_open: asyncio.Event) -> None:
        try:
            while data := await source.read(65536):
                await is_open.wait()
                target.write(data)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()


async def test_a_listener_whose_line_goes_silent_is_noticed_and_made_again(
    here: Process, postgres_home: PostgresHome, monkeypatch: pytest.MonkeyPatch
):
    """No error is ever seen on such a line: only the missing sign of life tells."""
    monkeypatch.setattr(postgres_wakes, "SIGN_OF_LIFE_S", 0.05)
    monkeypatch.setattr(postgres_wakes, "CONTROL_S", 0.3)
    server = urlsplit(postgres_home.url)
    line = Line(server.hostname or "127.0.0.1", server.port or 5432)
    port = await line.start()
    try:
        url = f"{postgres_home.url}?listen=127.0.0.1:{port}"
        async with process_over(url) as there:
            await begin(here)
            reader = reading(there)
            await here.until_heard(Wake("read", "run_1"))
            line.go_silent()
            await here.append(1, delta(1))
            await there.until_heard(None)
            assert line.lines >= 2
            await here.append(2, delta(2))
            await there.until_heard(Wake("events", "run_1", 3))
            await here.append(3, [RunCompleted()])
            assert await asyncio.wait_for(reader, 20) == [1, 2, 3, 4]
    finally:
        await line.stop()


# --- behind a pooler ----------------------------------------------------------------------------------------------


@pytest.mark.needs_pgbouncer
async def test_processes_behind_a_pooler_wake_each_other_past_it(pooled_home: PostgresHome):
    async with process_over(pooled_home.url) as here, process_over(pooled_home.url) as there:
        await begin(here)
        reader = reading(there)
        await here.until_heard(Wake("read", "run_1"))
        for seq in range(1, 20):
            await here.append(seq, delta(seq))
        await there.until_heard(Wake("events", "run_1", 20))
        await here.append(20, [RunCompleted()])
        assert await asyncio.wait_for(reader, 20) == list(range(1, 22))


@pytest.mark.needs_pgbouncer
async def test_behind_a_pooler_with_nowhere_to_listen_followers_ask(pooled_home: PostgresHome):
    url = pooled_home.url.replace("listen=", "application_name=")
    async with process_over(url) as here, process_over(url) as there:
        await begin(here)
        reader = reading(there)
        await here.append(1, delta(1))
        await here.append(2, [RunCompleted()])
        assert await asyncio.wait_for(reader, 20) == [1, 2, 3]
        assert there.heard == []
