"""The artifacts of the store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod

from runtime.journal.artifacts import Artifact
from runtime.journal.drafts import Unstorable
from runtime.journal.media import Medium
from runtime.run import RunRecord


class MemoryArtifacts(ABC):
    """The `Artifacts` of a store that keeps its blobs here."""

    def __init__(self) -> None:
        super().__init__()
        self._contents: dict[str, bytes] = {}
        self._artifacts: dict[str, Artifact] = {}
        self._secrets: dict[str, bytes] = {}
        self._media: dict[str, Medium]
        self._runs: dict[str, RunRecord]

    @abstractmethod
    def _require_open(self) -> None:
        """Raises StoreError if the store is closed."""

    async def add_artifact(self, artifact: Artifact) -> None:
        """See the port."""
        self._require_open()
        if artifact.artifact_id in self._artifacts or artifact.run_id not in self._runs:
            raise Unstorable(f"There is an artifact {artifact.artifact_id} already, or no run {artifact.run_id}.")
        self._artifacts[artifact.artifact_id] = artifact

    async def find_artifact(self, artifact_id: str) -> Artifact | None:
        """See the port."""
        self._require_open()
        return self._artifacts.get(artifact_id)

    async def artifacts_of(self, thread_id: str) -> list[Artifact]:
        """See the port."""
        self._require_open()
        found = [artifact for artifact in self._artifacts.values() if artifact.thread_id == thread_id]
        return sorted(found, key=lambda artifact: (artifact.created_at, artifact.artifact_id))

    async def is_named(self, digest: str) -> bool:
        """See the port."""
        self._require_open()
        return digest in self._named_blobs()

    def _named_blobs(self) -> set[str]:
        """The digests that artifacts and media name."""
        return {named.digest for named in (*self._artifacts.values(), *self._media.values())}

    async def content_slice(self, digest: str, start: int, length: int) -> bytes | None:
        """See the port."""
        self._require_open()
        data = self._contents.get(digest)
        return None if data is None else data[start : start + length]

    async def keep_secret(self, name: str, made: bytes) -> bytes:
        """See the port."""
        self._require_open()
        return self._secrets.setdefault(name, made)
