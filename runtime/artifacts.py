"""The artifacts of a process: made for runs, read, and removed with what they belonged to.

It waits for the store and for the place of the bytes, and keeps their order: bytes before their name, names before
their bytes go.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Final

from runtime.blobs import Blobs
from runtime.errors import InvalidInput
from runtime.journal.artifacts import Artifact
from runtime.journal.media import Medium
from runtime.journal.store import Store
from runtime.run import RunRecord
from runtime.system import Clock, Mint

MOST_NAME: Final = 255
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,127}/[\w.+-]{1,127}(?:; ?[\w-]{1,63}=[\w.+-]{1,127})*", re.ASCII)


class ArtifactShelf:
    """Makes and reads artifacts. Every method may raise StoreError."""

    def __init__(self, store: Store, blobs: Blobs, clock: Clock, mint: Mint) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._mint = mint

    async def make(self, run: RunRecord, name: str, media_type: str, source: bytes | Path) -> Artifact:
        """Store the content and give it a name. Raises InvalidInput."""
        require_name(name, media_type)
        blob = await self._blobs.put(source)
        artifact = Artifact(
            self._mint("art"),
            run.tenant_id,
            run.owner_id,
            run.thread_id,
            run.run_id,
            name,
            media_type,
            blob.size,
            blob.digest,
            self._clock.now(),
        )
        await self._store.add_artifact(artifact)
        if not await self._blobs.has(blob.digest):  # its like was removed meanwhile; now that it has a name it stays
            await self._blobs.put(source)
        return artifact

    async def find(self, artifact_id: str) -> Artifact | None:
        """An artifact by its id, whoever owns it; None also if the session that it belongs to is hidden."""
        artifact = await self._store.find_artifact(artifact_id)
        if artifact is None or await self._store.find_visible_run(artifact.run_id) is None:
            return None
        return artifact if await self._blobs.has(artifact.digest) else None

    def pieces(self, artifact: Artifact | Medium, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """So many bytes of it, or of a medium, a piece at a time."""
        return self._blobs.pieces(artifact.digest, start, length)

    async def remove(self, digests: Iterable[str]) -> int:
        """Remove contents that have lost their last name, as far as they are files; how many went."""
        return sum([await self._blobs.remove(digest, self._store.is_named) for digest in sorted(digests)])


def require_name(name: str, media_type: str) -> None:
    """Return if an artifact may be called so. Raises InvalidInput."""
    if not 0 < len(name) <= MOST_NAME or not name.isprintable():
        raise InvalidInput(f"An artifact's name has 1 to {MOST_NAME} printable characters.")
    if _MEDIA_TYPE.fullmatch(media_type) is None:
        raise InvalidInput(f"{media_type!r} is no media type, such as text/markdown or image/png.")
