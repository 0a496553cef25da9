"""The trees of a SQLite store, each question a function of a connection (see `sqlite_catalogue`)."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from heapq import merge
from itertools import islice
from typing import TypeVar

from runtime.events import Record
from runtime.journal.queries import load
from runtime.journal.sqlite_rows import stored_records

R = TypeVar("R")

_SQL = load("sqlite")


class SqliteTrees(ABC):
    """The `Trees` of a store that can `_ask`."""

    @abstractmethod
    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        """Lend the question a connection that reads."""

    async def read_tree(self, places: Mapping[str, int], limit: int) -> list[Record]:
        """See the port."""
        return await self._ask(partial(_read_tree, dict(places), limit))

    async def tree_end(self, root_run_id: str) -> int:
        """See the port."""
        return await self._ask(partial(_tree_end, root_run_id))


def _read_tree(places: Mapping[str, int], limit: int, connection: sqlite3.Connection) -> list[Record]:
    connection.execute("BEGIN")
    try:
        pages = [
            stored_records(run_id, connection.execute(_SQL["events_of_run"], (run_id, after, limit)), after, limit)
            for run_id, after in places.items()
        ]
    finally:
        connection.rollback()
    return list(islice(merge(*pages, key=lambda record: record.root_seq), limit))


def _tree_end(root_run_id: str, connection: sqlite3.Connection) -> int:
    row = connection.execute(_SQL["tree_end"], (root_run_id,)).fetchone()
    return 0 if row is None else row["root_seq"]
