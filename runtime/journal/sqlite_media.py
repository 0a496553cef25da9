"""The media of a SQLite store, each question and change a function of a connection (see `sqlite_catalogue`)."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import astuple, fields
from functools import partial
from typing import Any, TypeVar

import orjson

from runtime.journal.catalogue import Owner
from runtime.journal.media import Medium
from runtime.journal.queries import load
from runtime.journal.retention import NOTHING, Removed

R = TypeVar("R")

_SQL = load("sqlite")
_FIELDS = tuple(f.name for f in fields(Medium))


class SqliteMedia(ABC):
    """The `Media` of a store that can `_ask` and `_change`."""

    @abstractmethod
    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        """Lend the question a connection that reads."""

    @abstractmethod
    async def _change(self, change: Callable[[sqlite3.Connection], R]) -> R:
        """Make the change in a transaction of the writer, which has written before it what it had gathered."""

    async def add_medium(self, medium: Medium) -> None:
        """See the port."""
        await self._change(partial(_add, medium))

    async def find_medium(self, media_id: str) -> Medium | None:
        """See the port."""
        return next(iter(await self._ask(partial(_media, "find_medium", {"id": media_id}))), None)

    async def medium_of(self, owner: Owner, given_id: str) -> Medium | None:
        """See the port."""
        wanted = {"id": given_id, "tenant": owner.tenant_id, "owner": owner.owner_id}
        return next(iter(await self._ask(partial(_media, "medium_of_owner", wanted))), None)

    async def media_of_thread(self, thread_id: str) -> list[Medium]:
        """See the port."""
        return await self._ask(partial(_media, "media_of_thread", (thread_id,)))

    async def uploads_of(self, owner: Owner) -> list[Medium]:
        """See the port."""
        return await self._ask(partial(_media, "uploads_of_owner", (owner.tenant_id, owner.owner_id)))

    async def remove_unused_media(self, since: int, before: int, limit: int, owner: Owner | None = None) -> Removed:
        """See the port."""
        tenant_id, owner_id = (None, None) if owner is None else (owner.tenant_id, owner.owner_id)
        values = {"since": since, "before": before, "limit": limit, "tenant": tenant_id, "owner": owner_id}
        if not await self._ask(partial(_rows, "unused_media", values)):
            return NOTHING  # mostly there is nothing, and then the writer is not asked
        return await self._change(partial(_remove_unused, values))


def _add(medium: Medium, connection: sqlite3.Connection) -> None:
    connection.execute(_SQL["add_medium"], astuple(medium))
    if medium.given_id is not None:
        connection.execute(_SQL["use_upload"], (medium.given_id, medium.tenant_id, medium.owner_id))


def _remove_unused(values: dict[str, Any], connection: sqlite3.Connection) -> Removed:
    rows = _rows("unused_media", values, connection)
    digests = {row["digest"] for row in rows}
    counts = {"media": connection.execute(_SQL["remove_media_by_id"], (_json([row[0] for row in rows]),)).rowcount}
    named = {"digests": _json(digests)}
    counts["contents"] = connection.execute(_SQL["remove_contents"], named).rowcount
    still = {row["digest"] for row in _rows("named_blobs", named, connection)}
    return NOTHING + Removed(counts, frozenset(digests - still))  # without what there was none of


def _media(query: str, values: Any, connection: sqlite3.Connection) -> list[Medium]:
    return [Medium(**{name: row[name] for name in _FIELDS}) for row in _rows(query, values, connection)]


def _rows(query: str, values: Any, connection: sqlite3.Connection) -> list[sqlite3.Row]:
    return connection.execute(_SQL[query], values).fetchall()


def _json(values: Collection[str]) -> str:
    return orjson.dumps(list(values)).decode()
