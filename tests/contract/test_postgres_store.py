"""What the store in PostgreSQL promises beyond the port: its schema, its groups, and how it meets a bad server."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from asyncpg.transaction import Transaction

from agui_bridge.doctor import examine
from agui_bridge.settings import Settings
from runtime.errors import ConfigurationError, StoreError, StoreVersionError
from runtime.events import DELTAS, Event, InterruptRaised, MessageDelta, RunCompleted, RunStarted, RunSuspended
from runtime.journal import Opening, Replay, Started, postgres_writer
from runtime.journal.leases import Lease
from runtime.journal.migrate import Migration, migrations
from runtime.journal.open import journal_from_url
from runtime.journal.postgres import PostgresStore
from runtime.journal.postgres_connection import Unsettled, address_of, without_password
from runtime.journal.postgres_schema import (
    WEEK_MS,
    WEEKS_AHEAD,
    StoreVersion,
    keep_partitions,
    oldest_code_of,
    partition_of,
    steps_for,
)
from runtime.journal.postgres_writer import GROUP_LIMIT
from runtime.journal.queries import load
from runtime.run import ACTIVE, QUEUED, TRANSITIONS, RunRecord
from tests.stores import RECORDED, PostgresHome, database_name, drop_database, make_database

pytestmark = pytest.mark.needs_postgres

NOW = 1_750_000_000_000
URL = "postgresql://me:secret@db.example:6432/chat"


@pytest.fixture
async def store(postgres_home: PostgresHome) -> AsyncIterator[PostgresStore]:
    store = postgres_home.store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def empty_url() -> AsyncIterator[str]:
    """A database without our schema."""
    name = database_name(f"empty_{time.monotonic_ns()}")
    yield await make_database(name)
    await drop_database(name)


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Any, None]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


def delta(text: str = "tok ", index: int = 0) -> list[Event]:
    return [MessageDelta("msg_1", "part_1", index, text)]


def asked(number: int = 1, executor: str | None = None, lease_s: float | None = None) -> Opening:
    run_id = f"run_{number}"
    run = RunRecord(run_id, "-", "me", f"thread_{number}", None, "a", "r", "d", 1, QUEUED, 0, 0, 1, run_id, NOW)
    run = replace(run, executor_instance_id=executor)
    return Opening(run, None, [RunStarted(NOW, "r", "a", "d", [])], NOW, lease_s=lease_s)


async def begin(store: PostgresStore, number: int = 1, *, executor: str | None = None) -> RunRecord:
    begun = await store.begin_run(asked(number, executor, 15.0))
    assert isinstance(begun, Started)
    return begun.run


def writer(store: PostgresStore) -> Any:
    assert store._store is not None
    return store._store.writer


def statements_of(link: Any) -> list[str]:
    """From now on, what the link's connection is asked."""
    seen: list[str] = []
    link.connection.add_query_logger(lambda logged: seen.append(logged.query))
    return seen


async def end_backends(home: PostgresHome, purpose: str) -> int:
    """End the stores' connections for this purpose, as an administrator would."""
    rows = await home.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = $1",
        f"agui-bridge {purpose}",
    )
    return len(rows)


# --- addresses ----------------------------------------------------------------------------------------------------


def test_a_url_says_where_the_store_is():
    address = address_of(URL + "?sslmode=require")
    assert address.dsn == URL + "?sslmode=require"
    assert (address.pooler, address.listen_dsn) == (False, address.dsn)


def test_a_url_says_that_a_pooler_stands_between_and_where_to_listen():
    address = address_of(URL + "?pgbouncer=1&sslmode=require&pool_size=3")
    assert (address.dsn, address.pooler, address.listen_dsn) == (URL + "?sslmode=require", True, None)
    assert address.pool_size == 3
    assert address_of(URL + "?pgbouncer=1&listen=db:5432").listen_dsn == "postgresql://me:secret@db:5432/chat"


@pytest.mark.parametrize("query", ["pgbouncer=yes", "pool_size=0", "pool_size=many", "pool_size=-1"])
def test_a_url_that_cannot_be_meant_is_refused(query: str):
    with pytest.raises(ConfigurationError):
        address_of(f"{URL}?{query}")


def test_a_password_is_never_shown():
    for url in (URL, "postgresql://db/chat?user=me&password=secret", URL + "?pgbouncer=1&listen=db:5432"):
        assert "secret" not in without_password(url)
        assert "secret" not in address_of(url).shown
    assert without_password("postgresql://db.example/chat") == "postgresql://db.example/chat"


async def test_a_store_that_cannot_be_opened_says_why_without_the_password():
    for url, error in (
        ("postgresql://postgres:secret@127.0.0.1:5432/no_such_database", ConfigurationError),
        ("postgresql://postgres:secret@127.0.0.1:1/x", StoreError),
        ("postgresql://postgres:secret@127.0.0.1:5432/x?sslmode=nonsense", ConfigurationError),
    ):
        store = journal_from_url(url)
        with pytest.raises(error) as raised:
            await store.open()
        assert "secret" not in str(raised.value)
        assert isinstance(raised.value, (ConfigurationError, StoreError))
        assert "127.0.0.1" in raised.value.message


# --- the schema ---------------------------------------------------------------------------------------------------


async def test_processes_that_start_at_once_migrate_once(empty_url: str):
    stores = [PostgresStore(empty_url) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    async with connected(empty_url) as connection:
        rows = await connection.fetch("SELECT version FROM agui_bridge.schema_versions ORDER BY version")
    assert [row["version"] for row in rows] == [step.number for step in migrations("postgres")]
    await asyncio.gather(*(store.close() for store in stores))


async def test_a_store_that_is_not_to_be_migrated_is_refused_until_it_is(empty_url: str):
    with pytest.raises(StoreVersionError, match="agui-bridge migrate"):
        await PostgresStore(empty_url, auto_migrate=False).open()
    for auto_migrate in (True, False):
        store = PostgresStore(empty_url, auto_migrate=auto_migrate)
        await store.open()
        await store.close()


async def test_a_schema_of_another_program_is_left_alone(empty_url: str):
    async with connected(empty_url) as connection:
        await connection.execute("CREATE SCHEMA agui_bridge; CREATE TABLE agui_bridge.runs (x int)")
        with pytest.raises(StoreVersionError, match="another program"):
            await PostgresStore(empty_url).open()
        assert await connection.fetch("SELECT * FROM agui_bridge.runs") == []


async def test_a_schema_that_an_administrator_has_made_is_used(empty_url: str):
    async with connected(empty_url) as connection:
        await connection.execute("CREATE SCHEMA agui_bridge")
    store = PostgresStore(empty_url)
    await store.open()
    await store.healthy()
    await store.close()


async def test_a_database_of_another_encoding_is_refused(empty_url: str):
    name = database_name("latin")
    async with connected(empty_url) as connection:
        await connection.execute(
            f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    try:
        with pytest.raises(ConfigurationError, match="UTF8"):
            await PostgresStore(empty_url.rpartition("/")[0] + f"/{name}").open()
    finally:
        await drop_database(name)


async def test_a_newer_store_is_refused_unless_it_still_suits_this_release(empty_url: str):
    store = PostgresStore(empty_url)
    await store.open()
    await store.close()
    newest = migrations("postgres")[-1].number
    async with connected(empty_url) as connection:
        add = "INSERT INTO agui_bridge.schema_versions (version, name, oldest_code) VALUES ($1, 'later', $2)"
        await connection.execute(add, newest + 1, newest)
        store = PostgresStore(empty_url, auto_migrate=False)
        await store.open()
        await begin(store)
        await store.close()
        await connection.execute(add, newest + 2, newest + 1)
    with pytest.raises(StoreVersionError, match=rf"version {newest + 2}.*up to {newest}"):
        await PostgresStore(empty_url).open()


def test_a_migration_says_which_releases_it_leaves_behind():
    expanding = Migration(3, "expand", "-- more room\n-- oldest code: 2\nSELECT 1;\n")
    contracting = Migration(4, "contract", "SELECT 1;\n")
    assert (oldest_code_of(expanding), oldest_code_of(contracting)) == (2, 4)
    known = [Migration(1, "a", ""), Migration(2, "b", "")]
    assert steps_for(StoreVersion(3, 2), known) == []
    assert steps_for(StoreVersion(1, 1), known) == known[1:]
    with pytest.raises(StoreVersionError):
        steps_for(StoreVersion(4, 4), known)


async def test_a_process_goes_on_while_a_newer_release_changes_the_tables(empty_url: str):
    """The statements that it has prepared still promise the old columns."""
    store = PostgresStore(empty_url)
    await store.open()
    await begin(store)
    await store.read_thread("thread_1", 0)
    async with connected(empty_url) as connection:
        for number in range(2, 5):
            for table in ("runs", "events", "sessions", "threads"):
                await connection.execute(f"ALTER TABLE agui_bridge.{table} ADD COLUMN later_{number} text")
            await begin(store, number)
            await store.append(f"run_{number}", 1, 1, delta(), NOW)
            assert [record.seq for record in await store.read(f"run_{number}", 0, 10)] == [1, 2]
            [(run, records)] = await store.read_thread(f"thread_{number}", 0)
            assert (run.last_seq, len(records)) == (2, 2)
            assert await store.renew("exec_1", [], 15) == []
    await store.close()


async def test_every_table_has_a_tenant(postgres_home: PostgresHome):
    rows = await postgres_home.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'agui_bridge'::regnamespace AND relkind IN ('r', 'p') "
        "AND NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'tenant_id')"
    )
    assert {row["relname"] for row in rows} <= {"schema_versions", "secrets", "aliases"}  # of the store, or of a thread


def lists_in(sql: str, column: str) -> list[set[str]]:
    found: list[str] = re.findall(column + r"\s+(?:NOT )?IN\s+\(([^)]*)\)", sql)
    return [set(re.findall(r"'([^']*)'", names)) for names in found]


def test_the_lists_in_the_sql_are_those_of_the_run_and_the_events():
    queries = "\n".join(load("postgres").values())
    statuses = lists_in(queries, "status")
    assert len(statuses) > 5
    assert all(names in (ACTIVE, ACTIVE - {QUEUED}) for names in statuses)
    assert {cls.event_type for cls in DELTAS} in lists_in(queries, "event_type")
    every, *active = lists_in("\n".join(step.sql for step in migrations("postgres")), "status")
    assert every == TRANSITIONS.keys()
    assert active
    assert all(names in (ACTIVE, ACTIVE - {QUEUED}) for names in active)


async def test_the_database_itself_refuses_a_second_active_run_and_a_second_attempt(
    store: PostgresStore, postgres_home: PostgresHome
):
    await begin(store)
    columns = "tenant_id, owner_id, thread_id, agent_id, client_run_id, input_digest, base, fence, root_run_id"
    copy = (
        f"INSERT INTO agui_bridge.runs (run_id, {columns}, attempt, status, last_seq, created_at, began_at, "
        f"recorded_at) SELECT 'twin', {columns}, {{attempt}}, '{{status}}', 0, 0, 0, 0 FROM agui_bridge.runs"
    )
    for attempt, status, constraint in ((2, "running", "runs_active"), (1, "succeeded", "runs_attempt")):
        with pytest.raises(asyncpg.UniqueViolationError) as raised:
            await postgres_home.execute(copy.format(attempt=attempt, status=status))
        assert raised.value.constraint_name == constraint


async def test_no_index_knows_where_a_journal_ends_so_that_an_append_touches_none(postgres_home: PostgresHome):
    """A row that changes in no indexed column changes in place: measured, four times the appends a second."""
    rows = await postgres_home.fetch(
        "SELECT DISTINCT attname FROM pg_index AS i "
        "JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) "
        "WHERE i.indrelid = 'agui_bridge.runs'::regclass"
    )
    indexed = {row["attname"] for row in rows}
    assert "run_id" in indexed
    assert indexed.isdisjoint({"last_seq", "recorded_at", "executor_instance_id", "usage"})


# --- looking ------------------------------------------------------------------------------------------------------


async def seen_at(url: str, **settings: Any) -> tuple[str, str]:
    """What `doctor` says of the store."""
    findings = {found.subject: found async for found in examine(Settings(store=url, **settings))}
    return findings["store"].level, findings["store"].message


async def test_doctor_looks_at_a_database_and_changes_nothing(empty_url: str):
    level, message = await seen_at(empty_url)
    assert level == "warn"  # a test's database does not wait for the disk
    assert "synchronous_commit" in message
    async with connected(empty_url) as connection:
        await connection.execute(f'ALTER DATABASE "{empty_url.rpartition("/")[2]}" SET synchronous_commit = on')
        level, message = await seen_at(empty_url)
        assert (level, "the first start makes the tables" in message) == ("ok", True)
        assert await connection.fetch("SELECT 1 FROM pg_namespace WHERE nspname = 'agui_bridge'") == []
        store = PostgresStore(empty_url)
        await store.open()
        await store.close()
        assert (await seen_at(empty_url))[0] == "ok"
        level, message = await seen_at(empty_url + "?pgbouncer=1")
        assert (level, "listen=" in message) == ("warn", True)
        await connection.execute("DELETE FROM agui_bridge.schema_versions WHERE version > 1")
        assert (await seen_at(empty_url))[0] == "warn"
        level, message = await seen_at(empty_url, auto_migrate=False)
        assert (level, "agui-bridge migrate" in message) == ("fail", True)
    level, message = await seen_at("postgresql://postgres:secret@127.0.0.1:1/x")
    assert (level, "secret" in message) == ("fail", False)


def test_a_store_without_its_driver_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("runtime.journal.open.find_spec", lambda _name: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'agui-bridge\[postgres\]'"):
        journal_from_url(URL)


# --- partitions ---------------------------------------------------------------------------------------------------


def test_a_partition_is_a_week():
    week = partition_of(RECORDED)
    assert week.start <= RECORDED < week.end
    assert week.end - week.start == WEEK_MS
    assert week.name == "events_20250612"
    assert partition_of(week.start) == partition_of(week.end - 1) == week
    assert partition_of(week.end).start == week.end


async def kept(home: PostgresHome) -> list[str]:
    async with connected(home.url) as connection:
        return await keep_partitions(connection)


async def test_events_lie_in_the_partition_of_their_week(store: PostgresStore, postgres_home: PostgresHome):
    await kept(postgres_home)
    await begin(store)
    await store.append("run_1", 1, 1, delta(), NOW)
    rows = await postgres_home.fetch("SELECT DISTINCT tableoid::regclass::text AS name FROM agui_bridge.events")
    assert [row["name"] for row in rows] == [f"agui_bridge.{partition_of(RECORDED).name}"]


async def test_no_event_is_lost_for_want_of_a_partition_and_each_moves_into_its_own(
    store: PostgresStore, postgres_home: PostgresHome
):
    await begin(store)
    await postgres_home.pass_time(100 * WEEK_MS / 1000)
    await store.append("run_1", 1, 1, delta(), NOW)
    await begin(store, 2)
    rows = await postgres_home.fetch("SELECT count(*) FROM agui_bridge.events_default")
    assert rows[0][0] == 2
    made = await asyncio.gather(*(kept(postgres_home) for _ in range(4)))
    assert sorted(name for names in made for name in names) == [
        partition_of(RECORDED + (100 + week) * WEEK_MS).name for week in range(WEEKS_AHEAD)
    ]
    assert await kept(postgres_home) == []
    rows = await postgres_home.fetch("SELECT count(*) FROM agui_bridge.events_default")
    assert rows[0][0] == 0
    assert [record.seq for record in await store.read("run_1", 0, 10)] == [1, 2]
    assert [record.seq for record in await store.append("run_1", 1, 2, delta(), NOW)] == [3]
    for name in (name for names in made for name in names):
        await postgres_home.execute(f"DROP TABLE agui_bridge.{name}")


async def test_a_clock_that_is_set_back_hides_no_event(store: PostgresStore, postgres_home: PostgresHome):
    await begin(store)
    await store.append("run_1", 1, 1, delta(), NOW)
    await postgres_home.pass_time(-3600)
    [record] = await store.append("run_1", 1, 2, delta(), NOW)
    assert record.recorded_at == RECORDED
    await store.append("run_1", 1, 3, [RunCompleted()], NOW)
    assert [record.seq for record in await store.read("run_1", 0, 10)] == [1, 2, 3, 4]
    [(_, facts)] = await store.read_thread("thread_1", 0)
    assert [record.seq for record in facts] == [1, 4]


async def test_a_run_is_looked_for_in_the_partitions_of_its_time_alone(
    store: PostgresStore, postgres_home: PostgresHome
):
    await kept(postgres_home)
    await begin(store)
    async with connected(postgres_home.url) as connection:
        query = load("postgres")["events_of_run"].replace("$1", "'run_1'").replace("$2", "0").replace("$3", "10")
        rows = await connection.fetch(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {query}")
    plan = [row[0] for row in rows]
    looked_into = {
        match[1] for line in plan if (match := re.search(r"on (events_\w+) .*actual", line)) and "never" not in line
    }
    assert looked_into == {partition_of(RECORDED).name}


# --- groups -------------------------------------------------------------------------------------------------------


async def test_a_batch_is_one_statement_and_so_are_the_batches_of_many_runs(store: PostgresStore):
    for number in range(50):
        await begin(store, number)
    await store.append("run_0", 1, 1, delta(), NOW)
    seen = statements_of(writer(store)._link)
    await store.append("run_0", 1, 2, delta() * 64, NOW)
    assert seen == [load("postgres")["append"]]
    await asyncio.gather(*(store.append(f"run_{n}", 1, 1, delta(), NOW) for n in range(1, 50)))
    assert seen.count(load("postgres")["append"]) <= 3
    assert set(seen) == {load("postgres")["append"]}


async def test_an_append_larger_than_a_group_is_one_statement(store: PostgresStore):
    await begin(store)
    await store.append("run_1", 1, 1, delta() * (GROUP_LIMIT + 1), NOW)
    assert len(await store.read("run_1", 1, 10_000)) == GROUP_LIMIT + 1


async def test_rows_that_the_database_refuses_fail_alone(store: PostgresStore):
    for number in range(9):
        await begin(store, number)
    bad: dict[int, list[Event]] = {3: [RunCompleted("msg \0")], 5: [RunCompleted("x" * 300_000_000)]}
    answers = await asyncio.gather(
        *(store.append(f"run_{n}", 1, 1, bad.get(n, delta()), 2**70 if n == 7 else NOW) for n in range(5)),
        store.append("run_7", 1, 1, delta(), 2**70),
        store.append("run_8", 1, 1, delta(), NOW),
        return_exceptions=True,
    )
    for number, answer in zip((0, 1, 2, 3, 4, 7, 8), answers, strict=True):
        if number in (3, 7):
            assert isinstance(answer, StoreError)
            assert (answer.code, answer.retryable) == ("unstorable", False)
        else:
            assert isinstance(answer, list)
        assert len(await store.read(f"run_{number}", 0, 10)) == (1 if number in (3, 7) else 2)


async def test_a_commit_whose_answer_was_lost_is_the_same_commit(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    await begin(store)
    await store.append("run_1", 1, 1, delta("a"), NOW)
    link = writer(store)._link
    fetch, lost = link.fetch, [1, 2]

    async def deaf(sql: str, *values: Any) -> Any:
        rows = await fetch(sql, *values)
        if sql == load("postgres")["append"] and lost:
            lost.pop()
            raise Unsettled
        return rows

    monkeypatch.setattr(link, "fetch", deaf)
    first = await store.append("run_1", 1, 2, delta("b"), NOW)
    ended = await store.append("run_1", 1, 3, [RunCompleted()], NOW)
    assert lost == []
    assert await store.read("run_1", 2, 10) == first + ended
    assert [record.seq for record in first + ended] == [3, 4]


async def test_a_group_with_an_interrupt_is_one_commit_even_if_its_answer_was_lost(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    await asyncio.gather(*(begin(store, number) for number in range(4)))
    link = writer(store)._link
    transact, lost = link.transact, [1, 2]

    async def deaf(work: Any) -> Any:
        rows = await transact(work)
        if lost:
            lost.pop()
            raise Unsettled
        return rows

    monkeypatch.setattr(link, "transact", deaf)
    asks = [InterruptRaised("int_1", "confirmation", "call_1", 1, "d" * 64, "send"), RunSuspended([])]
    appends = [store.append(f"run_{n}", 1, 1, asks if n == 2 else delta(), NOW) for n in range(4)]
    records = await asyncio.gather(*appends)
    assert lost == []
    assert [[record.seq for record in each] for each in records] == [[2], [2], [2, 3], [2]]
    assert await store.read("run_2", 1, 10) == records[2]
    assert [its.interrupt_id for its in await store.open_interrupts("-", "me", None, 10)] == ["int_1"]


async def test_a_beginning_whose_answer_was_lost_has_begun(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    commit, lost = Transaction.commit, [1]

    async def deaf(self: Any) -> None:
        await commit(self)
        if lost:
            lost.pop()
            raise ConnectionResetError

    monkeypatch.setattr(Transaction, "commit", deaf)
    begun = await store.begin_run(asked())
    assert lost == []
    assert isinstance(begun, Started)
    assert [record.seq for record in begun.records] == [1]
    assert await store.find_run("run_1") == begun.run
    assert [record.seq for record in await store.append("run_1", 1, 1, delta(), NOW)] == [2]


async def test_connections_that_are_cut_in_mid_append_lose_and_double_nothing(
    store: PostgresStore, postgres_home: PostgresHome
):
    """Backends are ended while runs append: each append succeeds once, or says that it did not."""
    for number in range(8):
        await begin(store, number)
    cuts: list[asyncio.Task[int]] = []

    async def produce(number: int) -> None:
        for seq in range(1, 61):
            if seq % 8 == number:
                cuts.append(asyncio.create_task(end_backends(postgres_home, "write")))
            records = await store.append(f"run_{number}", 1, seq, delta(f"{seq}", seq), NOW)
            assert [record.seq for record in records] == [seq + 1]

    await asyncio.gather(*(produce(number) for number in range(8)))
    assert sum(await asyncio.gather(*cuts)) > 5
    for number in range(8):
        records = await store.read(f"run_{number}", 1, 100)
        assert [record.event for record in records] == [delta(f"{seq}", seq)[0] for seq in range(1, 61)]


async def test_a_server_that_stays_away_fails_the_append_and_the_writer_goes_on(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    await begin(store)
    monkeypatch.setattr(postgres_writer, "PATIENCE_S", 0.2)
    link = writer(store)._link
    good = link._address
    link._address = replace(good, dsn="postgresql://postgres@127.0.0.1:1/x")
    link._drop()
    with pytest.raises(StoreError) as raised:
        await store.append("run_1", 1, 1, delta(), NOW)
    assert (raised.value.code, raised.value.retryable) == ("store_error", True)
    link._address = good
    assert [record.seq for record in await store.append("run_1", 1, 1, delta(), NOW)] == [2]


async def test_readers_and_beginnings_go_on_after_their_connections_were_cut(
    store: PostgresStore, postgres_home: PostgresHome
):
    await begin(store)
    for number in (2, 3):
        assert await end_backends(postgres_home, "pool")
        assert [record.seq for record in await store.read("run_1", 0, 10)] == [1]
        assert await end_backends(postgres_home, "pool")
        await begin(store, number)
    assert await end_backends(postgres_home, "pool")
    await store.healthy()


async def test_a_writer_that_has_stopped_is_not_healthy(store: PostgresStore):
    writer(store)._task.cancel()
    await asyncio.wait({writer(store)._task})
    for call in (store.healthy(), store.append("run_1", 1, 1, delta(), NOW)):
        with pytest.raises(StoreError):
            await call


# --- two processes ------------------------------------------------------------------------------------------------


@pytest.fixture
async def other(postgres_home: PostgresHome, store: PostgresStore) -> AsyncIterator[PostgresStore]:
    """What a second process has of the same facts."""
    other = postgres_home.store()
    await other.open()
    yield other
    await other.close()


async def test_of_twins_in_two_processes_one_begins_and_the_other_is_its_replay(
    store: PostgresStore, other: PostgresStore
):
    for number in range(1, 21):
        first = asked(number)
        twin = replace(first, run=replace(first.run, run_id=f"twin_{number}"))
        begun = await asyncio.gather(store.begin_run(first), other.begin_run(twin))
        [winner] = [answer for answer in begun if isinstance(answer, Started)]
        [loser] = [answer for answer in begun if not isinstance(answer, Started)]
        assert isinstance(loser, Replay)
        assert loser.run == winner.run


async def test_an_executor_that_was_paused_beyond_its_lease_cannot_append(
    store: PostgresStore, other: PostgresStore, postgres_home: PostgresHome
):
    await begin(store, executor="exec_1")
    await store.append("run_1", 1, 1, delta("a"), NOW)
    await postgres_home.pass_time(16)
    [lost] = await other.lost_runs()
    taken = await other.take_over(lost.run_id, "exec_2", 15)
    assert taken is not None
    assert taken.fence == 2
    for expected, events in ((2, delta("b")), (1, delta("a")), (2, [RunCompleted()])):
        with pytest.raises(StoreError) as raised:
            await store.append("run_1", 1, expected, events, NOW)
        assert raised.value.code == "fence_lost"
    assert await store.renew("exec_1", ["run_1"], 15) == []
    assert [record.seq for record in await other.append("run_1", 2, 2, [RunCompleted()], NOW)] == [3]


async def test_of_those_who_take_over_at_once_one_gets_the_run(
    store: PostgresStore, other: PostgresStore, postgres_home: PostgresHome
):
    await begin(store, executor="exec_1")
    await postgres_home.pass_time(16)
    taken = await asyncio.gather(
        *(each.take_over("run_1", f"exec_{n}", 15) for n, each in enumerate((store, other) * 5, 2))
    )
    assert [run.fence for run in taken if run is not None] == [2]


async def test_a_run_that_comes_back_is_appended_to_under_its_new_fence(store: PostgresStore, other: PostgresStore):
    """What a process has at hand of a run is of no use when others have had it."""
    await begin(store, executor="exec_1")
    assert await store.hand_over("run_1", 1)
    assert await other.take_over("run_1", "exec_2", 15) is not None
    await other.append("run_1", 2, 1, delta(), NOW)
    assert await other.hand_over("run_1", 2)
    assert not await store.hand_over("run_1", 2 - 1)
    taken = await store.take_over("run_1", "exec_1", 15)
    assert taken is not None
    assert (taken.fence, taken.last_seq) == (3, 2)
    assert [record.seq for record in await store.append("run_1", 3, 2, delta(), NOW)] == [3]


async def test_a_reader_in_another_process_never_sees_a_gap(store: PostgresStore, other: PostgresStore):
    for number in range(4):
        await begin(store, number)
    done = asyncio.Event()

    async def produce(number: int) -> None:
        for seq in range(1, 101, 4):
            await store.append(f"run_{number}", 1, seq, delta() * 4, NOW)

    async def read(number: int) -> int:
        after = 0
        while after < 101:
            over = done.is_set()
            records = await other.read(f"run_{number}", after, 50)
            assert [record.seq for record in records] == list(range(after + 1, after + 1 + len(records)))
            after += len(records)
            assert records or not over
        return after

    readers = [asyncio.create_task(read(number)) for number in range(4)]
    await asyncio.gather(*(produce(number) for number in range(4)))
    done.set()
    assert await asyncio.gather(*readers) == [101] * 4


# --- leases -------------------------------------------------------------------------------------------------------


async def test_a_heartbeat_is_one_statement_for_all_runs(store: PostgresStore):
    for number in range(20):
        await begin(store, number, executor="exec_1")
    await store.renew("exec_1", ["run_0"], 15)
    assert store._store is not None
    seen = statements_of(store._store.leases._link)
    leases = await store.renew("exec_1", [f"run_{number}" for number in range(20)], 15)
    assert len(leases) == 20
    await asyncio.sleep(0)
    assert seen == [load("postgres")["renew"]]


async def test_a_heartbeat_waits_neither_for_appends_nor_for_readers(store: PostgresStore, postgres_home: PostgresHome):
    await begin(store, executor="exec_1")
    async with connected(postgres_home.url) as stranger:
        held = stranger.transaction()
        await held.start()
        await stranger.execute("SELECT * FROM agui_bridge.runs FOR UPDATE")
        append = asyncio.ensure_future(store.append("run_1", 1, 1, delta(), NOW))
        await stranger.execute("LOCK TABLE agui_bridge.contents IN ACCESS EXCLUSIVE MODE")
        reads = [asyncio.ensure_future(store.content("c")) for _ in range(50)]
        leases = await asyncio.wait_for(store.renew("exec_1", ["run_1"], 15), 5)
        assert leases == [Lease("run_1", 1, None, None)]
        assert not append.done()
        await held.rollback()
    assert [record.seq for record in await append] == [2]
    assert await asyncio.gather(*reads) == [None] * 50


async def test_a_lease_tells_how_long_nobody_elsewhere_has_read(
    store: PostgresStore, other: PostgresStore, postgres_home: PostgresHome
):
    await begin(store, executor="exec_1")
    await other.mark_read(["run_1", "unknown"])
    await postgres_home.pass_time(4)
    assert [lease.unread_ms for lease in await store.renew("exec_1", ["run_1"], 15)] == [4000]
    await other.clear_read("run_1")
    assert [lease.unread_ms for lease in await store.renew("exec_1", ["run_1"], 15)] == [None]


async def test_leases_of_runs_that_are_over_are_forgotten(store: PostgresStore, postgres_home: PostgresHome):
    for number in range(3):
        await begin(store, number, executor=f"exec_{number % 2}")
    for number in (0, 1):
        await store.append(f"run_{number}", 1, 1, [RunCompleted()], NOW)
    await store.renew("exec_0", ["run_2"], 1000)
    count = "SELECT count(*) FROM agui_bridge.leases"
    assert (await postgres_home.fetch(count))[0][0] == 2
    await postgres_home.pass_time(100)
    assert store._store is not None
    await store._store.leases.forget()
    assert (await postgres_home.fetch(count))[0][0] == 1
    run = await store.find_run("run_0")
    assert run is not None
    assert run.is_over
