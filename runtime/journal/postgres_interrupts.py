"""The interrupts of a PostgreSQL store.

Facts of interrupts are rare. So the statement that appends knows nothing of them: a group in which there are some takes
a transaction of two or three statements in the place of one that is its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from runtime.events import Event, InterruptAnswered
from runtime.journal.catalogue import Place
from runtime.journal.changes import Asked
from runtime.journal.interrupts import Closed, Raised, StoredInterrupt
from runtime.journal.postgres_batch import RunStep, interrupts_of, statement_of
from runtime.journal.postgres_connection import Connection, Pool, Row
from runtime.journal.postgres_rows import interrupt_of, run_of
from runtime.journal.queries import load

_SQL = load("postgres")
_FIRST = Place(2**63 - 1, "")


class PostgresInterrupts(ABC):
    """The `Interrupts` of a store that has a `_pool`."""

    @property
    @abstractmethod
    def _pool(self) -> Pool:
        """The open store's connections. Raises StoreError if it is closed."""

    async def find_interrupt(self, interrupt_id: str) -> StoredInterrupt | None:
        """See the port."""
        rows = await self._pool.fetch(_SQL["find_interrupt"], interrupt_id)
        return interrupt_of(rows[0]) if rows else None

    async def open_interrupts(
        self, tenant_id: str, owner_id: str | None, before: Place | None, limit: int
    ) -> list[StoredInterrupt]:
        """See the port."""
        values = (tenant_id, *(before or _FIRST), limit)
        if owner_id is None:
            rows = await self._pool.fetch(_SQL["open_interrupts"], *values)
        else:
            rows = await self._pool.fetch(_SQL["open_interrupts_of_owner"], *values, owner_id)
        return [interrupt_of(row) for row in rows]


async def asked_interrupts(connection: Connection, events: Sequence[Event]) -> dict[str, Asked]:
    """The interrupts that an opening with these events answers."""
    ids = [event.interrupt_id for event in events if isinstance(event, InterruptAnswered)]
    if not ids:
        return {}
    found = [interrupt_of(row) for row in await connection.fetch(_SQL["interrupts_among"], ids)]
    answering = sorted({its.answering_run_id for its in found if its.answering_run_id is not None})
    runs = [run_of(row) for row in await connection.fetch(_SQL["find_runs"], answering)] if answering else []
    by_id = {run.run_id: run for run in runs}
    return {its.interrupt_id: Asked(its, by_id.get(its.answering_run_id or "")) for its in found}


async def keep_interrupts(connection: Connection, raised: Collection[Raised], closed: Collection[Closed]) -> list[str]:
    """Write what facts say of interrupts, in the transaction that wrote the facts; the ids of those that it closed."""
    if raised:
        await connection.fetch(_SQL["raise_interrupts"], *_columns(raised))
    if not closed:
        return []
    return [row["interrupt_id"] for row in await connection.fetch(_SQL["close_interrupts"], *_columns(closed))]


async def append_steps(connection: Connection, steps: Sequence[RunStep]) -> list[Row]:
    """Write these steps with all that belongs to them, in the caller's transaction; a row for each that was done."""
    query, values = statement_of(steps)
    rows = await connection.fetch(_SQL[query], *values)
    places: list[int] = [row["place"] for row in rows]
    await keep_interrupts(connection, *interrupts_of([steps[place] for place in places]))
    return rows


def _columns(rows: Collection[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
