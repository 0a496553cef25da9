"""Media: what users gave to be shown to a model, as far as the store knows. A part of the store's port.

A row names bytes that lie where `runtime.blobs` has them. It belongs to a thread, and goes with it; or to none yet,
which is an upload that waits to be used. Whoever adds a row has stored its bytes before, and looks afterwards whether
they are still there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from runtime.journal.catalogue import Owner
from runtime.journal.retention import Removed


@dataclass(frozen=True, slots=True)
class Medium:
    """Something that a user gave. `size` is in bytes, `digest` its SHA-256 as hex, `created_at` ms since the epoch.

    `given_id` is the id by which its owner referred to it, if it did not come with a message: that of an upload, or of
    something that belongs to another thread.
    """

    media_id: str
    tenant_id: str
    owner_id: str
    thread_id: str | None
    given_id: str | None
    name: str
    media_type: str
    size: int
    digest: str
    created_at: int


class Media(Protocol):
    """Every method may raise StoreError."""

    async def add_medium(self, medium: Medium) -> None:
        """Keep it, unless its id is there. Its upload, if it still waited, has been used with that and goes."""
        ...

    async def find_medium(self, media_id: str) -> Medium | None:
        """A medium by its own id or by the one under which it was given, whoever owns it; None also if the session that
        it belongs to is hidden."""
        ...

    async def medium_of(self, owner: Owner, given_id: str) -> Medium | None:
        """What the owner means by an id: a medium, an upload that waits, or what was used under that id."""
        ...

    async def media_of_thread(self, thread_id: str) -> list[Medium]:
        """All media of a thread, oldest first."""
        ...

    async def uploads_of(self, owner: Owner) -> list[Medium]:
        """The owner's uploads that wait to be used, oldest first."""
        ...

    async def remove_unused_media(self, since: int, before: int, limit: int, owner: Owner | None = None) -> Removed:
        """Remove at most `limit` media, of this owner or of all, that were kept between these times and belong to no
        thread: uploads that still wait, and what came with a request that began no thread after all."""
        ...
