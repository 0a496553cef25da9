"""The deliveries of a PostgreSQL store."""

from __future__ import annotations

from abc import ABC, abstractmethod

from runtime.journal.postgres_connection import Pool
from runtime.journal.queries import load

_SQL = load("postgres")


class PostgresDeliveries(ABC):
    """The `Deliveries` of a store that has a `_pool`."""

    @property
    @abstractmethod
    def _pool(self) -> Pool:
        """The open store's connections. Raises StoreError if it is closed."""

    async def due_deliveries(self, limit: int) -> list[str]:
        """See the port."""
        return [row["run_id"] for row in await self._pool.fetch(_SQL["due_deliveries"], limit)]

    async def claim_delivery(self, run_id: str, for_s: float) -> int | None:
        """See the port."""
        rows = await self._pool.fetch(_SQL["claim_delivery"], run_id, round(for_s * 1000))
        return rows[0]["delivery_attempts"] if rows else None

    async def put_off_delivery(self, run_id: str, for_s: float) -> None:
        """See the port."""
        await self._pool.fetch(_SQL["put_off_delivery"], run_id, round(for_s * 1000))

    async def end_delivery(self, run_id: str) -> None:
        """See the port."""
        await self._pool.fetch(_SQL["end_delivery"], run_id)
