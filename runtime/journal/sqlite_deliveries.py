"""The deliveries of a SQLite store, each question and change a function of a connection (see `sqlite_catalogue`)."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from runtime.journal.queries import load

R = TypeVar("R")

_SQL = load("sqlite")


class SqliteDeliveries(ABC):
    """The `Deliveries` of a store that can `_ask` and `_change`, by the clock `_clock`."""

    _clock: Callable[[], int]

    @abstractmethod
    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        """Lend the question a connection that reads."""

    @abstractmethod
    async def _change(self, change: Callable[[sqlite3.Connection], R]) -> R:
        """Make the change in a transaction of the writer, which has written before it what it had gathered."""

    async def due_deliveries(self, limit: int) -> list[str]:
        """See the port."""
        return await self._ask(partial(_due, self._clock(), limit))

    async def claim_delivery(self, run_id: str, for_s: float) -> int | None:
        """See the port."""
        now = self._clock()
        return await self._change(partial(_claim, run_id, now, now + round(for_s * 1000)))

    async def put_off_delivery(self, run_id: str, for_s: float) -> None:
        """See the port."""
        await self._change(partial(_run, "put_off_delivery", (self._clock() + round(for_s * 1000), run_id)))

    async def end_delivery(self, run_id: str) -> None:
        """See the port."""
        await self._change(partial(_run, "end_delivery", (run_id,)))


def _due(now: int, limit: int, connection: sqlite3.Connection) -> list[str]:
    return [run_id for (run_id,) in connection.execute(_SQL["due_deliveries"], (now, limit)).fetchall()]


def _claim(run_id: str, now: int, until: int, connection: sqlite3.Connection) -> int | None:
    row = connection.execute(_SQL["claim_delivery"], (until, run_id, now)).fetchone()
    return None if row is None else row["delivery_attempts"]


def _run(query: str, values: tuple[object, ...], connection: sqlite3.Connection) -> None:
    connection.execute(_SQL[query], values)
