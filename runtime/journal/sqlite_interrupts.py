"""The interrupts of a SQLite store, each question a function of a connection (see `sqlite_catalogue`), and what the
writer has gathered of them."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import orjson

from runtime.events import Event, InterruptAnswered
from runtime.journal.catalogue import Place
from runtime.journal.changes import Asked
from runtime.journal.interrupts import Closed, Raised, StoredInterrupt, closed_in, raised_in
from runtime.journal.queries import load
from runtime.journal.sqlite_rows import interrupt_of, run_of
from runtime.run import RunRecord

R = TypeVar("R")

_SQL = load("sqlite")
_FIRST = Place(2**63 - 1, "")


class SqliteInterrupts(ABC):
    """The `Interrupts` of a store that can `_ask`."""

    @abstractmethod
    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        """Lend the question a connection that reads."""

    async def find_interrupt(self, interrupt_id: str) -> StoredInterrupt | None:
        """See the port."""
        found = await self._ask(partial(_interrupts, "find_interrupt", (interrupt_id,)))
        return found[0] if found else None

    async def open_interrupts(
        self, tenant_id: str, owner_id: str | None, before: Place | None, limit: int
    ) -> list[StoredInterrupt]:
        """See the port."""
        values = {"tenant_id": tenant_id, "owner_id": owner_id, **(before or _FIRST)._asdict(), "limit": limit}
        query = "open_interrupts" if owner_id is None else "open_interrupts_of_owner"
        return await self._ask(partial(_interrupts, query, values))


class InterruptRows:
    """What facts say of interrupts, until the writer writes it."""

    def __init__(self) -> None:
        self._raised: list[Raised] = []
        self._closed: list[Closed] = []

    def gather(self, run: RunRecord, events: Sequence[Event], occurred_at: int) -> None:
        """Take what these facts of the run say."""
        self._raised += raised_in(run, events, occurred_at)
        self._closed += closed_in(run, events, occurred_at)

    def write(self, connection: sqlite3.Connection) -> None:
        """Write all that was gathered; the rows of its runs stand already."""
        if self._raised:
            connection.executemany(_SQL["raise_interrupt"], self._raised)
        if self._closed:
            connection.executemany(_SQL["close_interrupt"], self._closed)
        self.forget()

    def forget(self) -> None:
        """Let go of what was gathered."""
        self._raised.clear()
        self._closed.clear()


def asked_interrupts(events: Sequence[Event], connection: sqlite3.Connection) -> dict[str, Asked]:
    """The interrupts that an opening with these events answers."""
    ids = [event.interrupt_id for event in events if isinstance(event, InterruptAnswered)]
    if not ids:
        return {}
    found = _interrupts("interrupts_among", (orjson.dumps(ids).decode(),), connection)
    return {its.interrupt_id: Asked(its, _run(its.answering_run_id, connection)) for its in found}


def _run(run_id: str | None, connection: sqlite3.Connection) -> RunRecord | None:
    row = None if run_id is None else connection.execute(_SQL["find_run"], (run_id,)).fetchone()
    return None if row is None else run_of(row)


def _interrupts(query: str, values: Any, connection: sqlite3.Connection) -> list[StoredInterrupt]:
    return [interrupt_of(row) for row in connection.execute(_SQL[query], values).fetchall()]
