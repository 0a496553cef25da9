"""Leases in PostgreSQL, over a connection of their own: a heartbeat never waits for appends or readers.

Each method is one statement, and all times are the database's. A statement whose answer was lost may be repeated; only
`take_over` then raises the fence twice, which harms nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.journal.leases import Lease
from runtime.journal.postgres_connection import CONTROL_S, Link, Row, patiently
from runtime.journal.postgres_rows import run_of
from runtime.journal.queries import load
from runtime.run import RunRecord

FORGET_AFTER_MS = 60_000
"""How long a lease that ran out is kept when its run is over."""

_SQL = load("postgres")


class PostgresLeases:
    """The `Leases` of a store. Raises StoreError; waits no longer for a server that is away than a beat may take."""

    def __init__(self, link: Link):
        self._link = link

    async def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
        """See the port."""
        rows = await self._ask("renew", executor_instance_id, list(run_ids), _ms(lease_s))
        return [Lease(row["run_id"], row["fence"], row["cancel_reason"], row["unread_ms"]) for row in rows]

    async def take_over(self, run_id: str, executor_instance_id: str, lease_s: float) -> RunRecord | None:
        """See the port."""
        return _run(await self._ask("take_over", run_id, executor_instance_id, _ms(lease_s)))

    async def hand_over(self, run_id: str, fence: int, for_s: float = 0.0) -> bool:
        """See the port."""
        return bool(await self._ask("hand_over", run_id, fence, _ms(for_s)))

    async def handed_over(self) -> list[RunRecord]:
        """See the port."""
        return [run_of(row) for row in await self._ask("handed_over")]

    async def lost_runs(self) -> list[RunRecord]:
        """See the port."""
        return [run_of(row) for row in await self._ask("lost_runs")]

    async def mark_cancel(self, run_id: str, reason: str) -> RunRecord | None:
        """See the port."""
        return _run(await self._ask("mark_cancel", run_id, reason))

    async def mark_read(self, run_ids: Sequence[str]) -> None:
        """See the port."""
        await self._ask("mark_read", list(run_ids))

    async def clear_read(self, run_id: str) -> None:
        """See the port."""
        await self._ask("clear_read", run_id)

    async def mark_unread(self, run_id: str, *, unread: bool) -> None:
        """See the port."""
        await self._ask("mark_unread", run_id, unread)

    async def is_unread(self, run_id: str) -> bool:
        """See the port."""
        rows = await self._ask("is_unread", run_id)
        return bool(rows) and rows[0]["unread"]

    async def forget(self) -> None:
        """Drop the leases of runs that are over and whose executors have not done so."""
        await self._ask("forget_leases", FORGET_AFTER_MS)

    async def _ask(self, query: str, *values: object) -> list[Row]:
        return await patiently(lambda: self._link.fetch(_SQL[query], *values), CONTROL_S / 5)


def _run(rows: Sequence[Row]) -> RunRecord | None:
    return run_of(rows[0]) if rows else None


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
