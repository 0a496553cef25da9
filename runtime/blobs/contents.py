"""Blobs in the store itself, among its other contents: nothing beside the database is to be kept or shared.

A database takes a content as a whole, so that it is in memory once while it is written; it is read in pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

from runtime.blobs import PIECE, Blob
from runtime.canonical import digest_of
from runtime.errors import InvalidInput, StoreError
from runtime.journal.store import Store

LARGEST = 256 * 2**20
"""The most bytes that one content may have."""


class ContentBlobs:
    """`Blobs` in a store's contents."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, source: bytes | Path) -> Blob:
        """See the port. Raises InvalidInput also for more than `LARGEST` bytes."""
        data = source if isinstance(source, bytes) else await asyncio.to_thread(_read, source)
        if len(data) > LARGEST:
            raise InvalidInput(f"A database takes at most {LARGEST // 2**20} MiB; keep artifacts in a folder.")
        digest = digest_of(data)
        await self._store.put_contents({digest: data})
        return Blob(digest, len(data))

    async def has(self, digest: str) -> bool:
        """See the port."""
        return await self._store.content_slice(digest, 0, 1) is not None

    async def pieces(self, digest: str, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """See the port."""
        while length > 0:
            piece = await self._store.content_slice(digest, start, min(PIECE, length))
            if not piece:
                raise StoreError(f"The artifact's content {digest} is not there.")
            start, length = start + len(piece), length - len(piece)
            yield piece

    async def remove(self, digest: str, is_named: Callable[[str], Awaitable[bool]]) -> bool:
        """See the port: the store removes its contents itself, in the transaction that removes their last name."""
        return False


def _read(source: Path) -> bytes:
    try:
        with source.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidInput(f"The file {source} cannot be read: {error.strerror}.") from error
