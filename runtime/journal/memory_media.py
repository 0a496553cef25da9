"""The media of the store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable

from runtime.journal.catalogue import Owner
from runtime.journal.media import Medium
from runtime.journal.retention import NOTHING, Removed


class MemoryMedia(ABC):
    """The `Media` of a store that keeps them in a dict, and knows its threads and what else names a blob."""

    def __init__(self) -> None:
        super().__init__()
        self._media: dict[str, Medium] = {}
        self._owners: dict[str, tuple[str, str]]
        self._hidden: set[str]

    @abstractmethod
    def _require_open(self) -> None:
        """Raises StoreError if the store is closed."""

    @abstractmethod
    def _named_blobs(self) -> set[str]:
        """The digests that artifacts and media name."""

    @abstractmethod
    def _remove_unnamed(self, digests: Collection[str]) -> Removed:
        """Remove those of the contents that nothing names."""

    async def add_medium(self, medium: Medium) -> None:
        """See the port."""
        self._require_open()
        self._media.setdefault(medium.media_id, medium)
        waiting = self._media.get(medium.given_id or "")
        if waiting is not None and waiting.thread_id is None and _is_of(waiting, medium.tenant_id, medium.owner_id):
            del self._media[waiting.media_id]

    async def find_medium(self, media_id: str) -> Medium | None:
        """See the port."""
        self._require_open()
        named = [self._media[media_id]] if media_id in self._media else []
        named += _in_order(medium for medium in self._media.values() if medium.given_id == media_id)
        return next((medium for medium in named if medium.thread_id not in self._hidden), None)

    async def medium_of(self, owner: Owner, given_id: str) -> Medium | None:
        """See the port."""
        self._require_open()
        mine = (medium for medium in self._media.values() if _is_of(medium, owner.tenant_id, owner.owner_id))
        return next(iter(_in_order(m for m in mine if given_id in (m.media_id, m.given_id))), None)

    async def media_of_thread(self, thread_id: str) -> list[Medium]:
        """See the port."""
        self._require_open()
        return _in_order(medium for medium in self._media.values() if medium.thread_id == thread_id)

    async def uploads_of(self, owner: Owner) -> list[Medium]:
        """See the port."""
        self._require_open()
        waiting = (medium for medium in self._media.values() if medium.thread_id is None)
        return _in_order(medium for medium in waiting if _is_of(medium, owner.tenant_id, owner.owner_id))

    async def remove_unused_media(self, since: int, before: int, limit: int, owner: Owner | None = None) -> Removed:
        """See the port."""
        self._require_open()
        unused = _in_order(
            medium
            for medium in self._media.values()
            if since <= medium.created_at < before
            and medium.thread_id not in self._owners
            and (owner is None or _is_of(medium, owner.tenant_id, owner.owner_id))
        )[:limit]
        for medium in unused:
            del self._media[medium.media_id]
        digests = frozenset(medium.digest for medium in unused)
        removed = Removed({"media": len(unused)}, digests - self._named_blobs()) + self._remove_unnamed(digests)
        return removed or NOTHING


def _is_of(medium: Medium, tenant_id: str, owner_id: str) -> bool:
    return (medium.tenant_id, medium.owner_id) == (tenant_id, owner_id)


def _in_order(media: Iterable[Medium]) -> list[Medium]:
    return sorted(media, key=lambda medium: (medium.created_at, medium.media_id))
