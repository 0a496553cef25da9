"""Everything that a store has of one owner, as a ZIP archive that people and programs can read.

`sessions.jsonl`, `runs.jsonl`, `events.jsonl`, `artifacts.jsonl` and `media.jsonl` have one JSON object a line;
`artifacts/ID` and `media/ID` are the contents of artifacts and media, `snapshots/DIGEST` what agents and contexts were
when runs began. It is written as it is read: nothing large is in memory whole.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import IO, Final
from zipfile import ZIP_DEFLATED, ZipFile

import orjson

from agui_bridge.encoders import event_document
from agui_bridge.run_documents import run_document
from runtime.artifacts import ArtifactShelf
from runtime.canonical import Json
from runtime.journal.artifacts import Artifact
from runtime.journal.catalogue import Owner
from runtime.journal.media import Medium
from runtime.journal.store import Store
from runtime.run import RunRecord

KINDS: Final = ("sessions", "runs", "events", "artifacts", "media")
_PAGE: Final = 512


async def export(store: Store, shelf: ArtifactShelf, owner: Owner, target: Path) -> dict[str, int]:
    """Write the archive and say how much of each kind it has. Raises StoreError, OSError."""
    with ExitStack() as resources:
        archive = resources.enter_context(ZipFile(target, "w", ZIP_DEFLATED))
        lines: dict[str, IO[bytes]] = {kind: resources.enter_context(tempfile.TemporaryFile()) for kind in KINDS}
        work = _Export(store, shelf, archive, lines)
        for session in await store.sessions_of_owner(owner):
            work.add("sessions", asdict(session))
        for thread_id in await store.threads_of_owner(owner):
            await work.thread(thread_id)
        await work.media(await store.uploads_of(owner))
        for kind, file in lines.items():
            file.seek(0)
            with archive.open(f"{kind}.jsonl", "w", force_zip64=True) as member:
                while piece := file.read(1 << 20):
                    member.write(piece)
    return {kind: work.counts[kind] for kind in (*KINDS, "snapshots")}


class _Export:
    """One archive at work; only one member of it can be open, so that lines wait beside it."""

    def __init__(self, store: Store, shelf: ArtifactShelf, archive: ZipFile, lines: dict[str, IO[bytes]]) -> None:
        self.counts: Counter[str] = Counter()
        self._store = store
        self._shelf = shelf
        self._archive = archive
        self._lines = lines
        self._snapshots: set[str] = set()

    def add(self, kind: str, document: Json) -> None:
        self.counts[kind] += 1
        self._lines[kind].write(orjson.dumps(document) + b"\n")

    async def thread(self, thread_id: str) -> None:
        for run, _ in await self._store.read_thread(thread_id, 0):
            self.add("runs", run_document(run))
            await self._events(run)
            for checksum in (run.agent_snapshot_checksum, run.context_snapshot_checksum):
                await self._snapshot(checksum)
        for artifact in await self._store.artifacts_of(thread_id):
            self.add("artifacts", asdict(artifact))
            await self._bytes(f"artifacts/{artifact.artifact_id}", artifact)
        await self.media(await self._store.media_of_thread(thread_id))

    async def media(self, media: Iterable[Medium]) -> None:
        for medium in media:
            self.add("media", asdict(medium))
            await self._bytes(f"media/{medium.media_id}", medium)

    async def _bytes(self, name: str, kept: Artifact | Medium) -> None:
        with self._archive.open(name, "w", force_zip64=True) as member:
            async for piece in self._shelf.pieces(kept, 0, kept.size):
                member.write(piece)

    async def _events(self, run: RunRecord) -> None:
        after = 0
        while page := await self._store.read(run.run_id, after, _PAGE):
            for record in page:
                self.add("events", orjson.Fragment(event_document(run, record, full=True)))
            after = page[-1].seq

    async def _snapshot(self, checksum: str | None) -> None:
        if checksum is None or checksum in self._snapshots:
            return
        self._snapshots.add(checksum)
        if (data := await self._store.content(checksum)) is not None:
            self._archive.writestr(f"snapshots/{checksum}", data)
            self.counts["snapshots"] += 1
