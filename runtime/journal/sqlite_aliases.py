"""The aliases of a SQLite store, each question and change a function of a connection (see `sqlite_catalogue`)."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from typing import TypeVar

from runtime.errors import NotFound
from runtime.journal.aliases import Alias
from runtime.journal.changes import answered_before
from runtime.journal.queries import load
from runtime.journal.sqlite_rows import run_of
from runtime.run import RunRecord

R = TypeVar("R")

_SQL = load("sqlite")


class SqliteAliases(ABC):
    """The `Aliases` of a store that can `_ask` and `_change`."""

    @abstractmethod
    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        """Lend the question a connection that reads."""

    @abstractmethod
    async def _change(self, change: Callable[[sqlite3.Connection], R]) -> R:
        """Make the change in a transaction of the writer, which has written before it what it had gathered."""

    async def add_alias(self, alias: Alias) -> RunRecord:
        """See the port."""
        return await self._change(partial(_add_alias, alias))

    async def find_named_run(self, thread_id: str, client_run_id: str) -> RunRecord | None:
        """See the port."""
        return await self._ask(partial(_find_named_run, thread_id, client_run_id))


def followed_runs(thread_id: str, client_run_id: str, connection: sqlite3.Connection) -> dict[str, RunRecord]:
    """The runs by which requests with this id were answered, by the requests' digests."""
    rows = connection.execute(_SQL["followed_runs"], (thread_id, client_run_id)).fetchall()
    return {row["followed_as"]: run_of(row) for row in rows}


def _add_alias(alias: Alias, connection: sqlite3.Connection) -> RunRecord:
    row = connection.execute(_SQL["run_of_thread"], (alias.run_id, alias.thread_id)).fetchone()
    if row is None:
        raise NotFound
    request = (alias.thread_id, alias.client_run_id, alias.input_digest)
    same = connection.execute(_SQL["newest_same_run"], request).fetchone()
    followed = followed_runs(alias.thread_id, alias.client_run_id, connection)
    answer = answered_before(alias, None if same is None else run_of(same), followed)
    if answer is None:
        connection.execute(_SQL["put_alias"], astuple(alias))
    return answer or run_of(row)


def _find_named_run(thread_id: str, client_run_id: str, connection: sqlite3.Connection) -> RunRecord | None:
    values = {"thread_id": thread_id, "client_run_id": client_run_id}
    row = connection.execute(_SQL["find_named_run"], values).fetchone()
    return None if row is None else run_of(row)
