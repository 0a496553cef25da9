"""The artifacts of a PostgreSQL store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, fields

from runtime.journal.artifacts import Artifact
from runtime.journal.postgres_connection import Pool, Row
from runtime.journal.queries import load

_SQL = load("postgres")
_FIELDS = tuple(f.name for f in fields(Artifact))


class PostgresArtifacts(ABC):
    """The `Artifacts` of a store that has a `_pool`."""

    @property
    @abstractmethod
    def _pool(self) -> Pool:
        """The open store's connections. Raises StoreError if it is closed."""

    async def add_artifact(self, artifact: Artifact) -> None:
        """See the port."""
        await self._pool.fetch_once(_SQL["add_artifact"], *astuple(artifact))

    async def find_artifact(self, artifact_id: str) -> Artifact | None:
        """See the port."""
        rows = await self._pool.fetch(_SQL["find_artifact"], artifact_id)
        return _artifact_of(rows[0]) if rows else None

    async def artifacts_of(self, thread_id: str) -> list[Artifact]:
        """See the port."""
        return [_artifact_of(row) for row in await self._pool.fetch(_SQL["artifacts_of_thread"], thread_id)]

    async def is_named(self, digest: str) -> bool:
        """See the port."""
        return bool(await self._pool.fetch(_SQL["is_named"], digest))

    async def content_slice(self, digest: str, start: int, length: int) -> bytes | None:
        """See the port."""
        rows = await self._pool.fetch(_SQL["content_slice"], digest, start, length)
        return rows[0]["piece"] if rows else None

    async def keep_secret(self, name: str, made: bytes) -> bytes:
        """See the port."""
        await self._pool.fetch(_SQL["add_secret"], name, made)
        [row] = await self._pool.fetch(_SQL["find_secret"], name)
        return row["value"]


def _artifact_of(row: Row) -> Artifact:
    return Artifact(**{name: row[name] for name in _FIELDS})
