"""Erasure: removes sessions, or all that an owner has, from wherever it lies, and says how much that was.

What is at work there is stopped first. A receipt counts what went, store by store: the database's rows, the files of
artifacts. Who asks twice is told of what was left the second time.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from runtime.artifacts import ArtifactShelf
from runtime.canonical import JsonObject
from runtime.errors import ThreadBusy
from runtime.journal.catalogue import Owner
from runtime.journal.retention import NOTHING, Removed
from runtime.journal.store import Store

TOGETHER: Final = 16
"""How many threads are erased in one transaction: writers wait for it."""

MEDIA_TOGETHER: Final = 256
"""How many media are erased in one transaction."""

PASSES: Final = 5
"""How often an owner's threads are looked for again: one may begin while others are erased."""

Cancel = Callable[[str, str, float], Awaitable[None]]
"""Asks a run to stop, with a reason, and waits for so many seconds."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was erased: rows of the database by kind, and files of artifacts and media."""

    database: Removed = NOTHING
    artifact_files: int = 0

    def __add__(self, other: Receipt) -> Receipt:
        return Receipt(self.database + other.database, self.artifact_files + other.artifact_files)

    def as_payload(self) -> JsonObject:
        """`{database: {kind: rows}, artifact_files}`."""
        return {"database": dict(self.database.counts), "artifact_files": self.artifact_files}


class Erasure:
    """Erases from one store and its place for artifacts. `forget` is told which threads are gone."""

    def __init__(
        self, store: Store, shelf: ArtifactShelf, cancel: Cancel, forget: Callable[[Iterable[str]], None]
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._cancel = cancel
        self._forget = forget

    async def session(self, owner: Owner, session_id: str, wait_s: float) -> Receipt:
        """Erase a session, hidden or not, with all that happened in it and below it.

        Raises ThreadBusy if a run does not end within `wait_s` seconds, StoreError.
        """
        return await self._threads(await self._store.threads_of_session(owner, session_id), wait_s)

    async def owner(self, owner: Owner, wait_s: float) -> Receipt:
        """Erase everything that an owner has. Raises as `session`; what went before the error is gone."""
        receipt = Receipt()
        for _ in range(PASSES):
            threads = await self._store.threads_of_owner(owner)
            if not threads:
                return receipt + await self.unused_media(0, sys.maxsize, owner)
            for first in range(0, len(threads), TOGETHER):
                receipt += await self._threads(threads[first : first + TOGETHER], wait_s)
        raise ThreadBusy("The owner goes on talking while everything of theirs is erased; keep them out first.")

    async def unused_media(self, since: int, before: int, owner: Owner | None = None) -> Receipt:
        """Erase the media, of this owner or of all, that were kept between these times and belong to no thread."""
        receipt = Receipt()
        while removed := await self._store.remove_unused_media(since, before, MEDIA_TOGETHER, owner):
            receipt += await self.remove_files(removed)
        return receipt

    async def remove_files(self, removed: Removed) -> Receipt:
        """The receipt of what the database has removed, after the files that it no longer names."""
        return Receipt(removed, await self._shelf.remove(removed.digests))

    async def _threads(self, thread_ids: Sequence[str], wait_s: float) -> Receipt:
        stopped: set[str] = set()
        while True:
            try:
                removed = await self._store.erase(thread_ids)
            except ThreadBusy as busy:
                run_id = str(busy.details.get("run_id"))
                if run_id in stopped:
                    raise
                stopped.add(run_id)
                await self._cancel(run_id, "erased", wait_s)
            else:
                self._forget(thread_ids)
                return await self.remove_files(removed)
