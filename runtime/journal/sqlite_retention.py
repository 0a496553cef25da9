"""How facts get fewer and go in a SQLite store, each step a function of a connection (see `sqlite_catalogue`).

Removed rows leave free pages in the file, which the next events take: the file stops growing, and does not shrink.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

import orjson

from runtime.errors import ThreadBusy
from runtime.journal import Session
from runtime.journal.catalogue import Owner
from runtime.journal.compaction import stretches_of
from runtime.journal.queries import load
from runtime.journal.retention import NOTHING, SWEEP_RUNS, Removed
from runtime.journal.sqlite_rows import session_of, stored_records

R = TypeVar("R")

_SQL = load("sqlite")
_NAMES = (
    ("artifacts", "remove_artifacts"),
    ("media", "remove_media"),
    ("aliases", "remove_aliases"),
    ("idempotency_keys", "remove_keys"),
    ("interrupts", "remove_interrupts"),
    ("sessions", "remove_sessions"),
)
_FACTS = (("events", "remove_events"), ("runs", "remove_runs"), ("threads", "remove_threads"))


class SqliteRetention(ABC):
    """The `Retention` of a store that can `_ask` and `_change`."""

    @abstractmethod
    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        """Lend the question a connection that reads."""

    @abstractmethod
    async def _change(self, change: Callable[[sqlite3.Connection], R]) -> R:
        """Make the change in a transaction of the writer, which has written before it what it had gathered."""

    async def uncompacted_runs(self, ended_before: int, limit: int, without: Collection[str] = ()) -> list[str]:
        """See the port."""
        values = {"before": ended_before, "limit": limit, "without": _json(without)}
        return await self._ask(partial(_column, "uncompacted_runs", values))

    async def compact(self, run_id: str, at: int) -> int:
        """See the port."""
        return await self._change(partial(_compact, run_id, at))

    async def expire(self, idle_before: int, at: int, limit: int, without: Collection[str] = ()) -> Removed:
        """See the port."""
        values = {"before": idle_before, "limit": limit, "without": _json(without)}
        return await self._change(partial(_expire, values, at))

    async def sweep(self, at: int) -> Removed:
        """See the port."""
        return await self._change(partial(_sweep, at))

    async def threads_of_session(self, owner: Owner, session_id: str) -> list[str]:
        """See the port."""
        return await self._ask(partial(_threads_of_session, (owner.tenant_id, owner.owner_id, session_id)))

    async def threads_of_owner(self, owner: Owner) -> list[str]:
        """See the port."""
        return await self._ask(partial(_column, "threads_of_owner", (owner.tenant_id, owner.owner_id)))

    async def sessions_of_owner(self, owner: Owner) -> list[Session]:
        """See the port."""
        return await self._ask(partial(_sessions_of_owner, (owner.tenant_id, owner.owner_id)))

    async def erase(self, thread_ids: Sequence[str]) -> Removed:
        """See the port."""
        return await self._change(partial(_erase, list(thread_ids)))


def _compact(run_id: str, at: int, connection: sqlite3.Connection) -> int:
    row = connection.execute(_SQL["compactable_run"], (run_id,)).fetchone()
    if row is None:
        return 0
    run_no = row["run_no"]
    stretches = stretches_of(stored_records(run_id, connection.execute(_SQL["deltas_of_run"], (run_no,))))
    for from_seq, seq, draft, _ in stretches:
        connection.execute(_SQL["compact_event"], (draft.payload, draft.checksum, from_seq, run_no, seq))
        connection.execute(_SQL["remove_compacted"], (run_no, from_seq, seq))
    connection.execute(_SQL["mark_compacted"], (at, run_no))
    return sum(stretch.saved for stretch in stretches)


def _expire(values: dict[str, Any], at: int, connection: sqlite3.Connection) -> Removed:
    threads = _with_below(_column("idle_threads", values, connection), connection)
    if not threads:
        return NOTHING
    runs = connection.execute(_SQL["expire_runs"], {"threads": _json(threads), "at": at}).rowcount
    return Removed({"threads": len(threads), "runs": runs}) + _remove(threads, _NAMES, connection)


def _erase(threads: list[str], connection: sqlite3.Connection) -> Removed:
    if busy := _column("busy_run_among", {"threads": _json(threads)}, connection):
        raise ThreadBusy(details={"run_id": busy[0]})
    return _remove(threads, (*_NAMES, *_FACTS), connection)


def _remove(threads: Sequence[str], steps: Sequence[tuple[str, str]], connection: sqlite3.Connection) -> Removed:
    """Take the steps, and then remove what nothing names any more."""
    named = {"threads": _json(threads)}
    blobs = set(_column("digests_of_threads", named, connection))
    snapshots = set(_column("snapshots_of_threads", named, connection)) - {None}
    counts = {kind: connection.execute(_SQL[query], named).rowcount for kind, query in steps}
    contents = {"digests": _json(blobs | snapshots)}
    counts["contents"] = connection.execute(_SQL["remove_contents"], contents).rowcount
    still = set(_column("named_blobs", {"digests": _json(blobs)}, connection))
    return NOTHING + Removed(counts, frozenset(blobs - still))  # without what there was none of


def _sweep(at: int, connection: sqlite3.Connection) -> Removed:
    runs = _column("unswept_runs", (SWEEP_RUNS,), connection)
    if not runs:
        return NOTHING
    events = connection.execute(_SQL["sweep_events"], (_json(runs),)).rowcount
    connection.execute(_SQL["mark_swept"], (at, _json(runs)))
    return Removed({"swept_runs": len(runs), "events": events})


def _threads_of_session(key: tuple[str, str, str], connection: sqlite3.Connection) -> list[str]:
    return _with_below(_column("thread_of_session", key, connection), connection)


def _sessions_of_owner(key: tuple[str, str], connection: sqlite3.Connection) -> list[Session]:
    return [session_of(row) for row in connection.execute(_SQL["sessions_of_owner"], key).fetchall()]


def _with_below(threads: Sequence[str], connection: sqlite3.Connection) -> list[str]:
    return _column("threads_with_below", {"threads": _json(threads)}, connection) if threads else []


def _column(query: str, values: Any, connection: sqlite3.Connection) -> list[Any]:
    return [row[0] for row in connection.execute(_SQL[query], values).fetchall()]


def _json(values: Collection[Any]) -> str:
    return orjson.dumps(list(values)).decode()
