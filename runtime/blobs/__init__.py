"""Blobs: where the bytes of artifacts lie, each content once, named by its SHA-256. A port.

Names, owners and references are the store's (see `journal.artifacts`); here are bytes alone. What is put is all there
when `put` returns, or not at all. A blob that is named again while it is being removed stays.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PIECE = 256 * 1024
"""How many bytes are read at once."""


@dataclass(frozen=True, slots=True)
class Blob:
    """What was put: the SHA-256 as hex, and the size in bytes."""

    digest: str
    size: int


class Blobs(Protocol):
    """Every method may raise StoreError."""

    async def put(self, source: bytes | Path) -> Blob:
        """Keep these bytes, or those of a file. Raises InvalidInput for a file that cannot be read, StoreError
        `store_full`."""
        ...

    async def has(self, digest: str) -> bool:
        """Whether the bytes are there."""
        ...

    def pieces(self, digest: str, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """`length` bytes from `start` on, a piece at a time. Raises StoreError if they are not there."""
        ...

    async def remove(self, digest: str, is_named: Callable[[str], Awaitable[bool]]) -> bool:
        """Remove the bytes unless somebody names them, as `is_named` says; whether a file of its own went."""
        ...
