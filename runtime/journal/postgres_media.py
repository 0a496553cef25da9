"""The media of a PostgreSQL store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, fields

from runtime.journal.catalogue import Owner
from runtime.journal.media import Medium
from runtime.journal.postgres_begin import CONTENTS_LOCK
from runtime.journal.postgres_connection import Pool, Row, patiently, transaction
from runtime.journal.queries import load
from runtime.journal.retention import NOTHING, Removed

_SQL = load("postgres")
_FIELDS = tuple(f.name for f in fields(Medium))


class PostgresMedia(ABC):
    """The `Media` of a store that has a `_pool`."""

    @property
    @abstractmethod
    def _pool(self) -> Pool:
        """The open store's connections. Raises StoreError if it is closed."""

    async def add_medium(self, medium: Medium) -> None:
        """See the port."""
        await patiently(lambda: self._add_medium(medium))

    async def find_medium(self, media_id: str) -> Medium | None:
        """See the port."""
        rows = await self._pool.fetch(_SQL["find_medium"], media_id)
        return _medium_of(rows[0]) if rows else None

    async def medium_of(self, owner: Owner, given_id: str) -> Medium | None:
        """See the port."""
        rows = await self._pool.fetch(_SQL["medium_of_owner"], given_id, owner.tenant_id, owner.owner_id)
        return _medium_of(rows[0]) if rows else None

    async def media_of_thread(self, thread_id: str) -> list[Medium]:
        """See the port."""
        return [_medium_of(row) for row in await self._pool.fetch(_SQL["media_of_thread"], thread_id)]

    async def uploads_of(self, owner: Owner) -> list[Medium]:
        """See the port."""
        rows = await self._pool.fetch(_SQL["uploads_of_owner"], owner.tenant_id, owner.owner_id)
        return [_medium_of(row) for row in rows]

    async def remove_unused_media(self, since: int, before: int, limit: int, owner: Owner | None = None) -> Removed:
        """See the port."""
        return await patiently(lambda: self._remove_unused_media(since, before, limit, owner))

    # --- work that may be repeated --------------------------------------------------------------------------------

    async def _add_medium(self, medium: Medium) -> None:
        async with self._pool.connection() as connection, transaction(connection):
            await connection.fetch(_SQL["hold_contents_shared"], CONTENTS_LOCK)
            await connection.fetch(_SQL["add_medium"], *astuple(medium))
            if medium.given_id is not None:
                await connection.fetch(_SQL["use_upload"], medium.given_id, medium.tenant_id, medium.owner_id)

    async def _remove_unused_media(self, since: int, before: int, limit: int, owner: Owner | None) -> Removed:
        tenant_id, owner_id = (None, None) if owner is None else (owner.tenant_id, owner.owner_id)
        async with self._pool.connection() as connection, transaction(connection):
            rows = await connection.fetch(_SQL["unused_media"], since, before, limit, tenant_id, owner_id)
            if not rows:
                return NOTHING
            digests = {row["digest"] for row in rows}
            await connection.fetch(_SQL["hold_contents"], CONTENTS_LOCK)
            await connection.fetch(_SQL["remove_media_by_id"], [row["media_id"] for row in rows])
            [(contents,)] = await connection.fetch(_SQL["remove_contents"], sorted(digests))
            still = {row["digest"] for row in await connection.fetch(_SQL["named_blobs"], sorted(digests))}
        return NOTHING + Removed({"media": len(rows), "contents": contents}, frozenset(digests - still))


def _medium_of(row: Row) -> Medium:
    return Medium(**{name: row[name] for name in _FIELDS})
