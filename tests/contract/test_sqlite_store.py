"""What the SQLite journal promises beyond the port: its file, its lock, its schema, and how it meets a bad disk."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import AguiBridgeError, ConfigurationError, StoreError, StoreLocked, StoreVersionError
from runtime.events import DELTAS, Event, MessageDelta, RunStarted
from runtime.journal import Opening, Started, sqlite_connection
from runtime.journal.group import GROUP_LIMIT, CommitThread, Job
from runtime.journal.memory import MemoryJournal
from runtime.journal.migrate import migrations, pending_in_sqlite
from runtime.journal.open import journal_from_url
from runtime.journal.queries import load
from runtime.journal.sqlite import SqliteJournal
from runtime.run import ACTIVE, QUEUED, TRANSITIONS, RunRecord

NOW = 1_750_000_000_000
ROOT = Path(__file__).parents[2]

HOLD = """
import asyncio, sys
from runtime.errors import StoreLocked
from runtime.journal.sqlite import SqliteJournal

async def main():
    try:
        await SqliteJournal(sys.argv[1]).open()
    except StoreLocked as error:
        print(error.code, error.message, flush=True)
    else:
        print("held", flush=True)
        sys.stdin.read()

asyncio.run(main())
"""


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    journal = SqliteJournal(tmp_path / "store.db", synchronous="normal")
    await journal.open()
    yield journal
    await journal.close()


def connection_of(journal: SqliteJournal) -> sqlite3.Connection:
    """The writing connection, to be touched only while nothing is being written."""
    assert journal._store is not None
    return journal._store.writer._connection


def delta(text: str = "tok ", index: int = 0) -> list[Event]:
    return [MessageDelta("msg_1", "part_1", index, text)]


async def begin(journal: SqliteJournal, number: int = 1) -> None:
    run_id = f"run_{number}"
    run = RunRecord(run_id, "-", "me", f"thread_{number}", None, "a", "r", "d", 1, QUEUED, 0, 0, 1, run_id, NOW)
    begun = await journal.begin_run(Opening(run, None, [RunStarted(NOW, "r", "a", "d", [])], NOW))
    assert isinstance(begun, Started)


async def refused(journal: SqliteJournal) -> AguiBridgeError:
    with pytest.raises(AguiBridgeError) as raised:
        await journal.open()
    return raised.value


# --- the lock -----------------------------------------------------------------------------------------------------


async def test_a_second_journal_in_this_process_is_refused(journal: SqliteJournal, tmp_path: Path):
    with pytest.raises(StoreLocked):
        await SqliteJournal(tmp_path / "store.db").open()
    await journal.close()
    second = SqliteJournal(tmp_path / "store.db")
    await second.open()
    await second.close()


async def test_another_process_is_refused_and_told_who_holds_the_store(tmp_path: Path):
    pipe = asyncio.subprocess.PIPE
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(tmp_path / "store.db"), cwd=ROOT, stdin=pipe, stdout=pipe
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    with pytest.raises(StoreLocked) as raised:
        await SqliteJournal(tmp_path / "store.db").open()
    assert f"process {holder.pid} " in raised.value.message
    holder.kill()
    await holder.communicate()
    journal = SqliteJournal(tmp_path / "store.db")
    await journal.open()
    await journal.close()
    assert (tmp_path / "store.db.lock").read_text() == ""


async def test_a_store_that_could_not_be_opened_is_not_left_locked(tmp_path: Path):
    path = tmp_path / "store.db"
    path.write_bytes(b"this is no database, " * 100)
    for _ in range(2):
        error = await refused(SqliteJournal(path))
        assert isinstance(error, ConfigurationError)
        assert "not a SQLite database" in error.message
    assert path.read_bytes() == b"this is no database, " * 100


async def test_a_path_that_cannot_be_a_store_is_a_matter_of_configuration(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "missing" / "store.db", tmp_path / "folder"):
        assert isinstance(await refused(SqliteJournal(path)), ConfigurationError)
    with pytest.raises(ConfigurationError):
        SqliteJournal(tmp_path / "store.db", synchronous="off")


# --- the schema ---------------------------------------------------------------------------------------------------


async def test_a_newer_store_is_refused_with_both_versions(journal: SqliteJournal, tmp_path: Path):
    connection_of(journal).execute("PRAGMA user_version = 99")
    await journal.close()
    error = await refused(journal)
    assert isinstance(error, StoreVersionError)
    assert "version 99" in error.message
    assert f"up to {len(migrations('sqlite'))}" in error.message
    with pytest.raises(StoreVersionError):
        pending_in_sqlite(tmp_path / "store.db")


async def test_the_database_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    assert isinstance(await refused(SqliteJournal(path)), StoreVersionError)
    assert path.read_bytes() == before


async def test_without_auto_migrate_a_store_with_pending_migrations_is_refused(tmp_path: Path):
    path = tmp_path / "store.db"
    assert pending_in_sqlite(path) == migrations("sqlite")
    assert isinstance(await refused(SqliteJournal(path, auto_migrate=False)), StoreVersionError)
    for auto_migrate in (True, False):
        journal = SqliteJournal(path, auto_migrate=auto_migrate)
        await journal.open()
        await journal.close()
    assert pending_in_sqlite(path) == []


async def test_every_table_has_a_tenant(journal: SqliteJournal):
    connection = connection_of(journal)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert len(tables) >= 6
    for table in tables:
        columns = [row["name"] for row in connection.execute(f"PRAGMA table_info({table})")]
        assert "tenant_id" in columns


def lists_in(sql: str, column: str) -> list[set[str]]:
    found: list[str] = re.findall(column + r"\s+(?:NOT )?IN\s+\(([^)]*)\)", sql)
    return [set(re.findall(r"'([^']*)'", names)) for names in found]


def test_the_lists_in_the_sql_are_those_of_the_run_and_the_events():
    queries = "\n".join(load("sqlite").values())
    found = lists_in(queries, "status")
    assert len(found) > 1
    assert all(names in (ACTIVE, ACTIVE - {QUEUED}) for names in found)
    deltas = lists_in(queries, "e.event_type")
    assert len(deltas) > 1
    assert all(names == {cls.event_type for cls in DELTAS} for names in deltas)
    [every, before, active] = lists_in("\n".join(step.sql for step in migrations("sqlite")), "status")
    assert every == TRANSITIONS.keys()
    assert (before, active) == (ACTIVE, ACTIVE - {QUEUED})


async def test_active_runs_are_found_by_their_index(journal: SqliteJournal):
    connection = connection_of(journal)
    for query, values in (("active_runs", ()), ("active_run_of_thread", ("thread_1",))):
        plan = connection.execute(f"EXPLAIN QUERY PLAN {load('sqlite')[query]}", values).fetchall()
        assert any("runs_active" in step["detail"] for step in plan)


async def test_commits_are_on_the_disk_by_default(tmp_path: Path):
    for synchronous, level in (("full", 2), ("normal", 1)):
        journal = SqliteJournal(tmp_path / f"{synchronous}.db", synchronous=synchronous)
        await journal.open()
        assert connection_of(journal).execute("PRAGMA synchronous").fetchone()[0] == level
        assert connection_of(journal).execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        await journal.close()
    journal = SqliteJournal(tmp_path / "default.db")
    await journal.open()
    assert connection_of(journal).execute("PRAGMA synchronous").fetchone()[0] == 2
    await journal.close()


# --- groups -------------------------------------------------------------------------------------------------------


async def test_writes_of_many_runs_share_a_commit(journal: SqliteJournal):
    for number in range(50):
        await begin(journal, number)
    commits: list[str] = []
    connection_of(journal).set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    await asyncio.gather(*(journal.append(f"run_{n}", 1, 1, delta(), NOW) for n in range(50)))
    connection_of(journal).set_trace_callback(None)
    assert 1 <= len(commits) <= 10


async def test_a_row_that_the_database_refuses_fails_alone(journal: SqliteJournal):
    for number in range(9):
        await begin(journal, number)
    answers = await asyncio.gather(
        *(journal.append(f"run_{n}", 1, 1, delta(), 2**70 if n in (3, 7) else NOW) for n in range(9)),
        return_exceptions=True,
    )
    for number, answer in enumerate(answers):
        if number in (3, 7):
            assert isinstance(answer, StoreError)
            assert (answer.code, answer.retryable) == ("unstorable", False)
        else:
            assert isinstance(answer, list)
        assert len(await journal.read(f"run_{number}", 0, 10)) == (1 if number in (3, 7) else 2)


async def test_a_full_disk_fails_the_append_and_the_journal_goes_on_when_there_is_room(journal: SqliteJournal):
    for number in range(4):
        await begin(journal, number)
    connection = connection_of(journal)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    big = delta("x" * 100_000)
    answers = await asyncio.gather(
        *(journal.append(f"run_{n}", 1, 1, big, NOW) for n in range(4)), return_exceptions=True
    )
    assert [getattr(answer, "code", answer) for answer in answers] == ["store_full"] * 4
    assert all(isinstance(answer, StoreError) and answer.retryable for answer in answers)
    assert [run.last_seq for run in await journal.active_runs()] == [1] * 4
    connection.execute("PRAGMA max_page_count = 1000000")
    for number in range(4):
        assert [record.seq for record in await journal.append(f"run_{number}", 1, 1, big, NOW)] == [2]


async def test_a_store_that_another_process_writes_to_is_waited_for(journal: SqliteJournal, tmp_path: Path):
    await begin(journal)
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as tool:
        tool.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(journal.append("run_1", 1, 1, delta(), NOW))
        assert len(await journal.read("run_1", 0, 10)) == 1
        tool.execute("ROLLBACK")
        assert [record.seq for record in await waiting] == [2]


async def test_a_store_that_stays_busy_fails_the_append_and_the_writer_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite_connection, "BUSY_TIMEOUT_S", 0.01)
    journal = SqliteJournal(tmp_path / "store.db")
    await journal.open()
    await begin(journal)
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as tool:
        tool.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as raised:
            await journal.append("run_1", 1, 1, delta(), NOW)
        assert (raised.value.code, raised.value.retryable) == ("store_error", True)
        tool.execute("ROLLBACK")
    assert [record.seq for record in await journal.append("run_1", 1, 1, delta(), NOW)] == [2]
    await journal.close()


async def test_an_append_larger_than_a_group_is_one_commit(journal: SqliteJournal):
    await begin(journal)
    await journal.append("run_1", 1, 1, delta() * (GROUP_LIMIT + 1), NOW)
    assert len(await journal.read("run_1", 1, 10_000)) == GROUP_LIMIT + 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_commit_thread_that_dies_leaves_nobody_waiting():
    def commit(_: object) -> None:
        raise RuntimeError("a bug")

    thread = CommitThread(commit, "dies")
    futures = [thread.submit(lambda: 1), thread.submit(lambda: 2)]
    for answer in await asyncio.gather(*futures, return_exceptions=True):
        assert isinstance(answer, StoreError)
    assert not thread.alive
    with pytest.raises(StoreError):
        thread.submit(lambda: 3)
    thread.stop()


def test_a_loop_that_is_gone_does_not_disturb_the_others():
    def commit(jobs: Sequence[Job[Any]]) -> None:
        for job in jobs:
            job.result = job.work()

    async def hand_in_and_leave() -> None:
        thread.submit(lambda: gone.wait(10))

    async def hand_in_and_wait() -> int:
        return await thread.submit(lambda: 7)

    gone = threading.Event()
    thread = CommitThread(commit, "lonely")
    asyncio.run(hand_in_and_leave())
    gone.set()
    assert asyncio.run(hand_in_and_wait()) == 7
    thread.stop()


# --- reading ------------------------------------------------------------------------------------------------------


async def test_readers_cannot_write(journal: SqliteJournal, tmp_path: Path):
    with closing(sqlite_connection.connect_reader(tmp_path / "store.db")) as reader, pytest.raises(sqlite3.Error):
        reader.execute("DELETE FROM runs")


async def test_an_event_of_a_later_release_is_given_without_its_meaning(journal: SqliteJournal):
    await begin(journal)
    connection_of(journal).execute("UPDATE events SET event_type = 'later.thing', payload = X'7B7D'")
    [record] = await journal.read("run_1", 0, 10)
    assert (record.event, record.event_type, record.payload) == (None, "later.thing", b"{}")


async def test_a_damaged_event_is_an_error_and_not_a_wrong_event(journal: SqliteJournal):
    await begin(journal)
    for payload in (b"{", b"{}", b"\xff"):
        connection_of(journal).execute("UPDATE events SET payload = ?", (payload,))
        with pytest.raises(StoreError) as raised:
            await journal.read("run_1", 0, 10)
        assert raised.value.code == "store_corrupt"


async def test_a_journal_is_named_by_its_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for url, path in (
        ("sqlite:///store.db", tmp_path / "store.db"),
        (f"sqlite:///{tmp_path}/absolute%20path.db", tmp_path / "absolute path.db"),
    ):
        journal = journal_from_url(url, synchronous="normal")
        await journal.open()
        assert path.exists()
        await journal.close()
    assert isinstance(journal_from_url("memory:"), MemoryJournal)
    for url in ("mysql://x", "postgres", "sqlite:///", "sqlite://store.db", "sqlite:///:memory:", ""):
        with pytest.raises(ConfigurationError):
            journal_from_url(url)
