"""The read side of a PostgreSQL store: each question is one statement and sees one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from runtime.events import Record
from runtime.journal import Session
from runtime.journal.postgres_connection import Pool, Row, patiently, transaction
from runtime.journal.postgres_rows import run_of, session_of, stored_records
from runtime.journal.queries import load
from runtime.journal.wakes import End
from runtime.run import RunRecord

_SQL = load("postgres")

_NO_END = 2**62
"""A position that no thread reaches."""


class PostgresReader:
    """Answers the port's questions. Raises StoreError when the store fails."""

    def __init__(self, pool: Pool):
        self._pool = pool

    async def run(self, run_id: str) -> RunRecord | None:
        """A run by its id."""
        rows = await self._pool.fetch(_SQL["find_run"], run_id)
        return run_of(rows[0]) if rows else None

    async def session(self, tenant_id: str, owner_id: str, session_id: str) -> Session | None:
        """An owner's session by its id."""
        rows = await self._pool.fetch(_SQL["find_session"], tenant_id, owner_id, session_id)
        return session_of(rows[0]) if rows else None

    async def content(self, digest: str) -> bytes | None:
        """A blob by its digest."""
        rows = await self._pool.fetch(_SQL["find_content"], digest)
        return rows[0]["data"] if rows else None

    async def ping(self) -> None:
        """Ask the store something that it can answer only if it is whole; who asks is not kept waiting."""
        await patiently(lambda: self._pool.fetch_once(_SQL["ping"]), 0.1)

    async def active_runs(self) -> list[RunRecord]:
        """All runs that are not over, oldest first."""
        return [run_of(row) for row in await self._pool.fetch(_SQL["active_runs"])]

    async def events(self, run_id: str, after: int, limit: int) -> list[Record]:
        """A page of a run's records."""
        rows = await self._pool.fetch(_SQL["events_of_run"], run_id, after, limit)
        return stored_records(run_id, rows, after, limit)

    async def thread(self, thread_id: str, after: int, up_to: int | None) -> list[tuple[RunRecord, list[Record]]]:
        """The port's `read_thread`, as of one moment."""
        return await patiently(lambda: self._thread(thread_id, after, _NO_END if up_to is None else up_to))

    async def ends(self, run_ids: Sequence[str]) -> dict[str, End]:
        """The port's `ends`."""
        rows = await self._pool.fetch(_SQL["ends"], list(run_ids))
        return {row["run_id"]: End(row["last_seq"], row["is_over"]) for row in rows}

    async def _thread(self, thread_id: str, after: int, end: int) -> list[tuple[RunRecord, list[Record]]]:
        async with (
            self._pool.connection() as connection,
            transaction(connection, isolation="repeatable_read", readonly=True),
        ):
            rows = await connection.fetch(_SQL["runs_between"], thread_id, after, end)
            if not rows:
                return []
            runs = [run_of(row) for row in rows]
            events = await connection.fetch(
                _SQL["events_of_runs"],
                [row["run_no"] for row in rows],
                [run.run_id for run in runs],
                [after - run.base for run in runs],
                [end - run.base for run in runs],
                [run.is_over for run in runs],
                min(row["began_at"] for row in rows),
                max(row["recorded_at"] for row in rows),
            )
        found: defaultdict[str, list[Row]] = defaultdict(list)
        for event in events:
            found[event["run_id"]].append(event)
        return [
            (run, stored_records(run.run_id, found[run.run_id], after - run.base, up_to=end - run.base)) for run in runs
        ]
