"""The catalogue of a SQLite store: questions and changes, each a function of a connection.

Which connection, in which thread and transaction, is the store's business: it lends one to each question, and runs
each change within the transaction of the one writer.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

import orjson

from runtime.journal import KeyedRun, Session
from runtime.journal.catalogue import Owner, Place, RunFilter, SessionChange, SessionFilter, UsedSession
from runtime.journal.queries import load
from runtime.journal.sqlite_rows import run_of, session_of
from runtime.run import RunRecord

R = TypeVar("R")

_SQL = load("sqlite")
_FIRST = Place(2**63 - 1, "")


class SqliteCatalogue(ABC):
    """The `Catalogue` of a store that can `_ask` and `_change`."""

    @abstractmethod
    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        """Lend the question a connection that reads."""

    @abstractmethod
    async def _change(self, change: Callable[[sqlite3.Connection], R]) -> R:
        """Make the change in a transaction of the writer, which has written before it what it had gathered."""

    async def add_session(self, session: Session) -> None:
        """See the port."""
        await self._change(partial(_add_session, session))

    async def change_session(self, owner: Owner, session_id: str, change: SessionChange) -> Session | None:
        """See the port."""
        values = {**asdict(owner), **asdict(change), "session_id": session_id}
        return await self._change(partial(_session, "change_session", values))

    async def hide_session(self, owner: Owner, session_id: str, at: int) -> list[RunRecord] | None:
        """See the port."""
        return await self._change(partial(_hide_session, owner, session_id, at))

    async def list_sessions(self, owner: Owner, before: Place | None, limit: int) -> list[Session]:
        """See the port."""
        rows = await self._ask(partial(_rows, "list_sessions", _page(owner, before, limit)))
        return [session_of(row) for row in rows]

    async def list_used_sessions(
        self, owner: Owner, wanted: SessionFilter, before: Place | None, limit: int
    ) -> list[UsedSession]:
        """See the port."""
        values = {**_page(owner, before, limit), **asdict(wanted)}
        rows = await self._ask(partial(_rows, "list_used_sessions", values))
        return [UsedSession(session_of(row), row["last_run_at"]) for row in rows]

    async def list_runs(self, owner: Owner, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        """See the port."""
        statuses = None if wanted.statuses is None else orjson.dumps(sorted(wanted.statuses)).decode()
        values = {**_page(owner, before, limit), "session_id": wanted.session_id, "statuses": statuses}
        query = "list_runs" if wanted.session_id is None else "list_runs_of_session"
        return [run_of(row) for row in await self._ask(partial(_rows, query, values))]

    async def list_every_run(self, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        """See the port."""
        statuses = None if wanted.statuses is None else orjson.dumps(sorted(wanted.statuses)).decode()
        page = _page(Owner("", ""), before, limit)
        values = {**page, "session_id": wanted.session_id, "statuses": statuses}
        return [run_of(row) for row in await self._ask(partial(_rows, "list_every_run", values))]

    async def find_visible_run(self, run_id: str) -> RunRecord | None:
        """See the port."""
        rows = await self._ask(partial(_rows, "find_visible_run", (run_id,)))
        return run_of(rows[0]) if rows else None

    async def runs_of_tree(self, root_run_id: str) -> list[RunRecord]:
        """See the port."""
        return [run_of(row) for row in await self._ask(partial(_rows, "runs_of_tree", (root_run_id,)))]

    async def find_keyed(self, owner: Owner, key_digest: str) -> KeyedRun | None:
        """See the port."""
        return await self._ask(partial(keyed_run, owner, key_digest))


def keyed_run(owner: Owner, key_digest: str, connection: sqlite3.Connection) -> KeyedRun | None:
    """What an idempotency key was used for."""
    values = (owner.tenant_id, owner.owner_id, key_digest)
    row = connection.execute(_SQL["find_keyed"], values).fetchone()
    return None if row is None else KeyedRun(run_of(row), row["request_digest"], row["message_id"])


def is_hidden(thread_id: str, connection: sqlite3.Connection) -> bool:
    """Whether the session of this thread is hidden; a thread without one is not."""
    row = connection.execute(_SQL["hidden_at_of_thread"], (thread_id,)).fetchone()
    return row is not None and row["hidden_at"] is not None


def _add_session(new: Session, connection: sqlite3.Connection) -> None:
    connection.execute(_SQL["add_thread"], (new.thread_id, new.tenant_id, new.owner_id, new.created_at))
    key = (new.tenant_id, new.owner_id, new.session_id)
    told = (new.thread_id, new.agent_id, new.title, new.created_at, new.default_title)
    connection.execute(_SQL["add_session"], (*key, *told))


def _hide_session(owner: Owner, session_id: str, at: int, connection: sqlite3.Connection) -> list[RunRecord] | None:
    values = (at, owner.tenant_id, owner.owner_id, session_id)
    rows = connection.execute(_SQL["hide_session"], values).fetchall()
    if not rows:
        return None
    return [run_of(row) for row in connection.execute(_SQL["active_run_of_thread"], (rows[0]["thread_id"],))]


def _session(query: str, values: dict[str, Any], connection: sqlite3.Connection) -> Session | None:
    rows = connection.execute(_SQL[query], values).fetchall()
    return session_of(rows[0]) if rows else None


def _rows(query: str, values: Any, connection: sqlite3.Connection) -> list[sqlite3.Row]:
    return connection.execute(_SQL[query], values).fetchall()


def _page(owner: Owner, before: Place | None, limit: int) -> dict[str, Any]:
    place = before or _FIRST
    return {**asdict(owner), "created_at": place.created_at, "id": place.id, "limit": limit}
