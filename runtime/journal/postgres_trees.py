"""The trees of a PostgreSQL store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from runtime.events import Record
from runtime.journal.postgres_connection import Pool
from runtime.journal.postgres_rows import stored_records
from runtime.journal.queries import load

_SQL = load("postgres")


class PostgresTrees(ABC):
    """The `Trees` of a store that has a `_pool`."""

    @property
    @abstractmethod
    def _pool(self) -> Pool:
        """The open store's connections. Raises StoreError if it is closed."""

    async def read_tree(self, places: Mapping[str, int], limit: int) -> list[Record]:
        """See the port."""
        rows = await self._pool.fetch(_SQL["events_of_tree"], list(places), list(places.values()), limit)
        records: list[Record] = []
        for row in rows:
            records += stored_records(row["run_id"], [row], places[row["run_id"]])
        return records[:limit]

    async def tree_end(self, root_run_id: str) -> int:
        """See the port."""
        rows = await self._pool.fetch(_SQL["tree_end"], root_run_id)
        return rows[0]["root_seq"] if rows else 0
