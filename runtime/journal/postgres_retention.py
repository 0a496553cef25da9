"""How facts get fewer and go in a PostgreSQL store.

Whoever removes holds the threads as a beginning does, so that no run begins on what is about to go. A week of events
in which nothing is kept any more is dropped whole; what stands in other weeks is removed row by row.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import asyncpg

from runtime.errors import ThreadBusy
from runtime.journal import Session
from runtime.journal.catalogue import Owner
from runtime.journal.compaction import stretches_of
from runtime.journal.postgres_begin import CONTENTS_LOCK
from runtime.journal.postgres_connection import Connection, Pool, patiently, transaction
from runtime.journal.postgres_rows import session_of, stored_records
from runtime.journal.postgres_schema import PARTITION_LOCK, Partition, partition_of
from runtime.journal.queries import load
from runtime.journal.retention import NOTHING, SWEEP_RUNS, Removed

_SQL = load("postgres")
_WEEK = re.compile(r"events_(\d{8})")
_NAMES: Final = (
    ("artifacts", "remove_artifacts"),
    ("media", "remove_media"),
    ("aliases", "remove_aliases"),
    ("idempotency_keys", "remove_keys"),
    ("interrupts", "remove_interrupts"),
    ("sessions", "remove_sessions"),
)
_FACTS: Final = (("events", "remove_events"), ("runs", "remove_runs"), ("threads", "remove_threads"))


class PostgresRetention(ABC):
    """The `Retention` of a store that has a `_pool`."""

    @property
    @abstractmethod
    def _pool(self) -> Pool:
        """The open store's connections. Raises StoreError if it is closed."""

    async def uncompacted_runs(self, ended_before: int, limit: int, without: Collection[str] = ()) -> list[str]:
        """See the port."""
        rows = await self._pool.fetch(_SQL["uncompacted_runs"], ended_before, limit, list(without))
        return [row["run_id"] for row in rows]

    async def compact(self, run_id: str, at: int) -> int:
        """See the port."""
        return await patiently(lambda: self._compact(run_id, at))

    async def expire(self, idle_before: int, at: int, limit: int, without: Collection[str] = ()) -> Removed:
        """See the port."""
        return await patiently(lambda: self._expire(idle_before, at, limit, list(without)))

    async def sweep(self, at: int) -> Removed:
        """See the port."""
        return await patiently(lambda: self._sweep(at))

    async def threads_of_session(self, owner: Owner, session_id: str) -> list[str]:
        """See the port."""
        key = (owner.tenant_id, owner.owner_id, session_id)
        threads = [row["thread_id"] for row in await self._pool.fetch(_SQL["thread_of_session"], *key)]
        return [row["thread_id"] for row in await self._pool.fetch(_SQL["threads_with_below"], threads)]

    async def threads_of_owner(self, owner: Owner) -> list[str]:
        """See the port."""
        rows = await self._pool.fetch(_SQL["threads_of_owner"], owner.tenant_id, owner.owner_id)
        return [row["thread_id"] for row in rows]

    async def sessions_of_owner(self, owner: Owner) -> list[Session]:
        """See the port."""
        rows = await self._pool.fetch(_SQL["sessions_of_owner"], owner.tenant_id, owner.owner_id)
        return [*map(session_of, rows)]

    async def erase(self, thread_ids: Sequence[str]) -> Removed:
        """See the port."""
        return await patiently(lambda: self._erase(list(thread_ids)))

    # --- work that may be repeated --------------------------------------------------------------------------------

    async def _compact(self, run_id: str, at: int) -> int:
        async with self._pool.connection() as connection, transaction(connection):
            rows = await connection.fetch(_SQL["hold_compactable"], run_id)
            if not rows:
                return 0
            place = (rows[0]["run_no"], rows[0]["began_at"], rows[0]["recorded_at"])
            stretches = stretches_of(stored_records(run_id, await connection.fetch(_SQL["deltas_of_run"], *place)))
            if stretches:
                await connection.fetch(
                    _SQL["compact_events"],
                    *place,
                    [each.from_seq for each in stretches],
                    [each.seq for each in stretches],
                    [each.draft.payload for each in stretches],
                    [each.draft.checksum for each in stretches],
                )
            await connection.fetch(_SQL["mark_compacted"], rows[0]["run_no"], at)
        return sum(each.saved for each in stretches)

    async def _expire(self, idle_before: int, at: int, limit: int, without: list[str]) -> Removed:
        async with self._pool.connection() as connection, transaction(connection):
            found = await _column(connection, "idle_threads", idle_before, limit, without, None)
            if not found:
                return NOTHING
            await connection.fetch(_SQL["hold_threads"], await _column(connection, "threads_with_below", found))
            # Asked again now that no run can begin on them: one may have, until they were held.
            idle = await _column(connection, "idle_threads", idle_before, limit, without, found)
            threads = await _column(connection, "threads_with_below", idle)
            [runs] = await _column(connection, "expire_runs", threads, at)
            return Removed({"threads": len(threads), "runs": runs}) + await _remove(connection, threads, _NAMES)

    async def _erase(self, threads: list[str]) -> Removed:
        async with self._pool.connection() as connection, transaction(connection):
            await connection.fetch(_SQL["hold_threads"], threads)
            if busy := await _column(connection, "busy_run_among", threads):
                raise ThreadBusy(details={"run_id": busy[0]})
            return await _remove(connection, threads, (*_NAMES, *_FACTS))

    async def _sweep(self, at: int) -> Removed:
        async with self._pool.connection() as connection:
            weeks = await drop_weeks(connection)
            async with transaction(connection):
                runs = await _column(connection, "unswept_runs", SWEEP_RUNS)
                if not runs:
                    return Removed({"weeks": weeks}) if weeks else NOTHING
                [events] = await _column(connection, "sweep_events", runs)
                await connection.fetch(_SQL["mark_swept"], runs, at)
        return Removed({"swept_runs": len(runs), "events": events, "weeks": weeks})


async def drop_weeks(connection: Connection) -> int:
    """Drop the weeks behind us of which nothing is kept; how many that were.

    Readers and writers are kept out for a moment, and not waited for: the next sweep tries again.
    """
    async with transaction(connection):
        [(now,)] = await connection.fetch(_SQL["now"])
        past = [week for name in await _column(connection, "weeks") if (week := _week_of(name)) and week.end < now]
        empty = [week for week in past if not (await _column(connection, "is_kept", week.start, week.end))[0]]
    if not empty:
        return 0
    try:
        async with transaction(connection):
            await connection.execute("SET LOCAL lock_timeout = '2s'")
            [(locked,)] = await connection.fetch(_SQL["try_lock"], PARTITION_LOCK)
            for week in empty if locked else []:
                await connection.execute(_SQL["drop_week"].format(name=week.name))
            return len(empty) if locked else 0
    except (asyncpg.LockNotAvailableError, asyncpg.UndefinedTableError):
        return 0


def _week_of(name: str) -> Partition | None:
    found = _WEEK.fullmatch(name)
    if found is None:
        return None
    day = datetime.strptime(found[1], "%Y%m%d").replace(tzinfo=UTC)
    return partition_of(round(day.timestamp() * 1000))


async def _remove(connection: Connection, threads: list[str], steps: Sequence[tuple[str, str]]) -> Removed:
    """Take the steps, and then remove what nothing names any more."""
    blobs = set(await _column(connection, "digests_of_threads", threads))
    snapshots = set(await _column(connection, "snapshots_of_threads", threads))
    counts = {kind: (await _column(connection, query, threads))[0] for kind, query in steps}
    await connection.fetch(_SQL["hold_contents"], CONTENTS_LOCK)
    [counts["contents"]] = await _column(connection, "remove_contents", sorted(blobs | snapshots))
    still = set(await _column(connection, "named_blobs", sorted(blobs)))
    return NOTHING + Removed(counts, frozenset(blobs - still))  # without what there was none of


async def _column(connection: Connection, query: str, *values: Any) -> list[Any]:
    return [row[0] for row in await connection.fetch(_SQL[query], *values)]
