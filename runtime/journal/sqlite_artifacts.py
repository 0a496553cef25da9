"""The artifacts of a SQLite store, each question and change a function of a connection (see `sqlite_catalogue`)."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import astuple, fields
from functools import partial
from typing import Any, TypeVar

from runtime.journal.artifacts import Artifact
from runtime.journal.queries import load

R = TypeVar("R")

_SQL = load("sqlite")
_FIELDS = tuple(f.name for f in fields(Artifact))


class SqliteArtifacts(ABC):
    """The `Artifacts` of a store that can `_ask` and `_change`."""

    @abstractmethod
    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        """Lend the question a connection that reads."""

    @abstractmethod
    async def _change(self, change: Callable[[sqlite3.Connection], R]) -> R:
        """Make the change in a transaction of the writer, which has written before it what it had gathered."""

    async def add_artifact(self, artifact: Artifact) -> None:
        """See the port."""
        await self._change(partial(_add, artifact))

    async def find_artifact(self, artifact_id: str) -> Artifact | None:
        """See the port."""
        rows = await self._ask(partial(_rows, "find_artifact", artifact_id))
        return _artifact_of(rows[0]) if rows else None

    async def artifacts_of(self, thread_id: str) -> list[Artifact]:
        """See the port."""
        return [_artifact_of(row) for row in await self._ask(partial(_rows, "artifacts_of_thread", thread_id))]

    async def is_named(self, digest: str) -> bool:
        """See the port."""
        return bool(await self._ask(partial(_named, digest)))

    async def content_slice(self, digest: str, start: int, length: int) -> bytes | None:
        """See the port."""
        rows = await self._ask(partial(_rows, "content_slice", start, length, digest))
        return rows[0]["piece"] if rows else None

    async def keep_secret(self, name: str, made: bytes) -> bytes:
        """See the port."""
        return await self._change(partial(_keep_secret, name, made))


def _add(artifact: Artifact, connection: sqlite3.Connection) -> None:
    connection.execute(_SQL["add_artifact"], astuple(artifact))


def _keep_secret(name: str, made: bytes, connection: sqlite3.Connection) -> bytes:
    connection.execute(_SQL["add_secret"], (name, made))
    return connection.execute(_SQL["find_secret"], (name,)).fetchone()["value"]


def _named(digest: str, connection: sqlite3.Connection) -> list[sqlite3.Row]:
    return connection.execute(_SQL["is_named"], {"digest": digest}).fetchall()


def _rows(query: str, *values: Any) -> list[sqlite3.Row]:
    *given, connection = values
    return connection.execute(_SQL[query], given).fetchall()


def _artifact_of(row: sqlite3.Row) -> Artifact:
    return Artifact(**{name: row[name] for name in _FIELDS})
