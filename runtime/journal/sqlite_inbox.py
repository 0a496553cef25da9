"""The inbox of a SQLite store, each question a function of a connection (see `sqlite_catalogue`)."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from runtime.journal.queries import load
from runtime.journal.sqlite_rows import run_of
from runtime.run import RunRecord

R = TypeVar("R")

_SQL = load("sqlite")


class SqliteInbox(ABC):
    """What the `Inbox` of a store that can `_ask` is asked; what it changes is the writer's business."""

    @abstractmethod
    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        """Lend the question a connection that reads."""

    async def queued_runs(self, thread_id: str) -> list[RunRecord]:
        """See the port."""
        return await self._ask(partial(queued_runs, thread_id))

    async def next_queued(self, thread_id: str | None = None) -> list[RunRecord]:
        """See the port."""
        return await self._ask(partial(_next_queued, thread_id))


def queued_runs(thread_id: str, connection: sqlite3.Connection) -> list[RunRecord]:
    """The line of a thread."""
    return [run_of(row) for row in connection.execute(_SQL["queued_runs"], (thread_id,)).fetchall()]


def run_that_continues(run_id: str | None, connection: sqlite3.Connection) -> RunRecord | None:
    """The run that goes on with this one."""
    if run_id is None:
        return None
    row = connection.execute(_SQL["run_that_continues"], (run_id,)).fetchone()
    return None if row is None else run_of(row)


def _next_queued(thread_id: str | None, connection: sqlite3.Connection) -> list[RunRecord]:
    rows = connection.execute(_SQL["next_queued"], {"thread_id": thread_id}).fetchall()
    return [run_of(row) for row in rows]
