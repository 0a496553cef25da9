"""Artifacts: what tools made to be fetched, as far as the store knows. A part of the store's port.

Here stand names and digests; the bytes lie where `runtime.blobs` has them, each content once by its digest. Whoever
adds an artifact has stored its bytes before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something that a tool made. `size` is in bytes, `digest` its SHA-256 as hex, `created_at` ms since the epoch."""

    artifact_id: str
    tenant_id: str
    owner_id: str
    thread_id: str
    run_id: str
    name: str
    media_type: str
    size: int
    digest: str
    created_at: int


class Artifacts(Protocol):
    """Every method may raise StoreError."""

    async def add_artifact(self, artifact: Artifact) -> None:
        """Keep it. Raises Unstorable if its id is taken or its run is not there."""
        ...

    async def find_artifact(self, artifact_id: str) -> Artifact | None:
        """An artifact by its id."""
        ...

    async def artifacts_of(self, thread_id: str) -> list[Artifact]:
        """All artifacts of a thread, oldest first."""
        ...

    async def is_named(self, digest: str) -> bool:
        """Whether any artifact or medium has this content."""
        ...

    async def content_slice(self, digest: str, start: int, length: int) -> bytes | None:
        """At most `length` bytes of a blob from `start` on; None if there is no such blob."""
        ...

    async def keep_secret(self, name: str, made: bytes) -> bytes:
        """The store's secret of this name: what was kept first; `made` if there was none."""
        ...
