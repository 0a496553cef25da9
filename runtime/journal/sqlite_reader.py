"""The read side of a SQLite journal: a few read-only connections, each lent to one worker thread at a time.

Readers see the last commit and never wait for the writer. The event loop only waits for the workers.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import orjson

from runtime.events import Record
from runtime.journal import Session
from runtime.journal.queries import load
from runtime.journal.sqlite_connection import FOREIGN, connect_reader, translated
from runtime.journal.sqlite_rows import run_of, session_of, stored_records
from runtime.journal.wakes import End
from runtime.run import TERMINAL, RunRecord

R = TypeVar("R")

READERS = 3
"""How many reads run at once."""

_NO_END = 2**62
"""A position that no thread reaches."""

_SQL = load("sqlite")


class SqliteReader:
    """Answers the port's questions. Raises StoreError when the store fails."""

    def __init__(self, path: Path):
        self._idle: deque[sqlite3.Connection] = deque()
        try:
            for _ in range(READERS):
                self._idle.append(connect_reader(path))
        except BaseException:
            self._close_connections()
            raise
        self._workers = ThreadPoolExecutor(READERS, thread_name_prefix="journal-read")

    def close(self) -> None:
        """Finish the reads that have begun. Blocks."""
        self._workers.shutdown(wait=True)
        self._close_connections()

    async def run(self, run_id: str) -> RunRecord | None:
        """A run by its id."""
        row = await self._one("find_run", run_id)
        return None if row is None else run_of(row)

    async def session(self, tenant_id: str, owner_id: str, session_id: str) -> Session | None:
        """An owner's session by its id."""
        row = await self._one("find_session", tenant_id, owner_id, session_id)
        return None if row is None else session_of(row)

    async def content(self, digest: str) -> bytes | None:
        """A blob by its digest."""
        row = await self._one("find_content", digest)
        return None if row is None else row["data"]

    async def ping(self) -> None:
        """Ask the store something that it can answer only if it is whole."""
        await self._one("ping")

    async def active_runs(self) -> list[RunRecord]:
        """All runs that are not over, oldest first."""

        def ask(connection: sqlite3.Connection) -> list[RunRecord]:
            return [run_of(row) for row in connection.execute(_SQL["active_runs"])]

        return await self._ask(ask)

    async def ends(self, run_ids: Sequence[str]) -> dict[str, End]:
        """The port's `ends`."""

        def ask(connection: sqlite3.Connection) -> dict[str, End]:
            rows = connection.execute(_SQL["ends_of_runs"], (orjson.dumps(list(run_ids)).decode(),))
            return {run_id: End(last_seq, status in TERMINAL) for run_id, last_seq, status in rows}

        return await self._ask(ask)

    async def events(self, run_id: str, after: int, limit: int) -> list[Record]:
        """A page of a run's records."""

        def ask(connection: sqlite3.Connection) -> list[Record]:
            rows = connection.execute(_SQL["events_of_run"], (run_id, after, limit))
            return stored_records(run_id, rows, after, limit)

        return await self._ask(ask)

    async def thread(self, thread_id: str, after: int, up_to: int | None) -> list[tuple[RunRecord, list[Record]]]:
        """The port's `read_thread`, as of one moment."""
        end = _NO_END if up_to is None else up_to

        def ask(connection: sqlite3.Connection) -> list[tuple[RunRecord, list[Record]]]:
            connection.execute("BEGIN")
            try:
                rows = connection.execute(_SQL["runs_between"], (thread_id, after, end))
                runs = [run_of(row) for row in rows.fetchall()]
                return [(run, _facts(connection, run, after - run.base, end - run.base)) for run in runs]
            finally:
                connection.rollback()

        return await self._ask(ask)

    async def ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        """Answer another question."""
        return await self._ask(question)

    async def _one(self, query: str, *values: Any) -> sqlite3.Row | None:
        def ask(connection: sqlite3.Connection) -> sqlite3.Row | None:
            return connection.execute(_SQL[query], values).fetchone()

        return await self._ask(ask)

    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._workers, self._lend, question)

    def _lend(self, question: Callable[[sqlite3.Connection], R]) -> R:
        # There are as many connections as workers: one is always idle here.
        connection = self._idle.pop()
        try:
            return question(connection)
        except FOREIGN as error:
            raise translated(error) from error
        finally:
            self._idle.append(connection)

    def _close_connections(self) -> None:
        while self._idle:
            self._idle.pop().close()


def _facts(connection: sqlite3.Connection, run: RunRecord, after: int, up_to: int) -> list[Record]:
    query = "facts_of_run" if run.is_over else "all_of_run"
    rows = connection.execute(_SQL[query], (run.run_id, after, up_to))
    return stored_records(run.run_id, rows, after, up_to=up_to)
