"""The media of a process: kept once by their digest, named for the thread in which they were said, found and loaded.

It waits for the store and for the place of the bytes, and keeps their order: bytes before their name, the name before
the fact that speaks of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from runtime.artifacts import MOST_NAME, require_name
from runtime.authority import Principal
from runtime.blobs import Blobs
from runtime.canonical import JsonObject, digest_of
from runtime.errors import NotFound
from runtime.items import Content
from runtime.journal.catalogue import Owner
from runtime.journal.media import Medium
from runtime.journal.store import Store
from runtime.media import INLINE_BYTES, blob_source, blobs_in, inline_of, media_type_of, medium_id, name_of, source_of
from runtime.system import Clock, Mint

UPLOAD: Final = "upl"
UNKNOWN_TYPE: Final = "application/octet-stream"


class MediumNotFound(NotFound):
    """There is no such upload, or it is not yours; upload it again."""

    code = "media_not_found"


@dataclass(frozen=True, slots=True)
class Given:
    """What a content refers to: `data`, which came with it, or bytes that are kept already and that its owner named by
    `given_id`."""

    name: str
    data: bytes | None = None
    given_id: str | None = None


Referred: TypeAlias = dict[str, Given]
"""What the `blob` sources of a content stand for, by their ids."""


class MediaShelf:
    """Keeps, finds and loads media. Every method may raise StoreError. Media above `inline_bytes` are kept apart."""

    def __init__(self, store: Store, blobs: Blobs, clock: Clock, mint: Mint, inline_bytes: int = INLINE_BYTES) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._mint = mint
        self.inline_bytes = inline_bytes
        """Media up to this size stay where they stand."""

    # --- keeping --------------------------------------------------------------------------------------------------

    async def upload(self, principal: Principal, name: str, media_type: str, source: Path) -> Medium:
        """Keep a file for its owner, to be used later; an empty name is made. Raises InvalidInput for what is no media
        type."""
        name = file_name(name, media_type)
        require_name(name, media_type)
        blob = await self._blobs.put(source)
        of = (principal.tenant_id, principal.id, None, None)
        medium = Medium(self._mint(UPLOAD), *of, name, media_type, blob.size, blob.digest, self._clock.now())
        await self._store.add_medium(medium)
        if not await self._blobs.has(blob.digest):  # its like was removed meanwhile; now that it has a name it stays
            await self._blobs.put(source)
        return medium

    async def refer(self, thread_id: str, content: Content) -> tuple[Content, Referred]:
        """The content with references in the place of large media, and these; nothing is kept yet."""
        if isinstance(content, str) or all(source_of(part) is None for part in content):
            return content, {}
        return await asyncio.to_thread(self._refer, thread_id, content)

    def _refer(self, thread_id: str, content: list[JsonObject]) -> tuple[Content, Referred]:
        referred: Referred = {}
        made: list[JsonObject] = []
        for part in content:
            inline = inline_of(source) if (source := source_of(part)) is not None else None
            if inline is not None and len(inline.data) > self.inline_bytes:
                media_type = media_type_of(inline.mime_type, inline.data)
                digest = digest_of(inline.data)
                id_ = medium_id(thread_id, digest)
                referred[id_] = Given(file_name(name_of(part), media_type), inline.data)
                part = {**part, "source": blob_source(id_, digest, media_type, len(inline.data))}
            made.append(part)
        return made if referred else content, referred

    async def keep(self, owner: Owner, thread_id: str, content: Content, referred: Referred) -> None:
        """Have all that this content refers to kept for the thread.

        Raises MediumNotFound for what is neither there nor kept.
        """
        for part in blobs_in(content):
            source: JsonObject = part["source"]
            known = await self._store.medium_of(owner, source["id"])
            if known is None or known.thread_id != thread_id:
                await self._name(owner, thread_id, source, referred.get(source["id"]))

    async def _name(self, owner: Owner, thread_id: str, source: JsonObject, given: Given | None) -> None:
        if given is None:
            raise MediumNotFound
        if given.data is not None:
            await self._blobs.put(given.data)
        medium = Medium(
            source["id"],
            owner.tenant_id,
            owner.owner_id,
            thread_id,
            given.given_id,
            given.name,
            source["mime_type"] or UNKNOWN_TYPE,
            source["size"],
            source["digest"],
            self._clock.now(),
        )
        await self._store.add_medium(medium)
        if not await self._blobs.has(medium.digest):
            if given.data is None:
                raise MediumNotFound
            await self._blobs.put(given.data)

    async def kept(self, owner: Owner, thread_id: str, content: Content) -> Content:
        """The content, its large media kept and referred to."""
        referring, referred = await self.refer(thread_id, content)
        await self.keep(owner, thread_id, referring, referred)
        return referring

    # --- finding and loading --------------------------------------------------------------------------------------

    async def find(self, media_id: str) -> Medium | None:
        """A medium by its id, whoever owns it; None also if the session that it belongs to is hidden."""
        medium = await self._store.find_medium(media_id)
        return medium if medium is not None and await self._blobs.has(medium.digest) else None

    async def given(self, principal: Principal, thread_id: str, given_id: str) -> tuple[JsonObject, Given]:
        """What the principal means on this thread by the id of an upload, a medium or an artifact: a source that refers
        to it, and what it stands for. Raises MediumNotFound."""
        found = await self._store.medium_of(Owner(principal.tenant_id, principal.id), given_id)
        if found is not None and found.thread_id == thread_id:
            id_ = found.media_id
        else:
            found = found or await self._store.find_artifact(given_id)
            if found is None or (found.tenant_id, found.owner_id) != (principal.tenant_id, principal.id):
                raise MediumNotFound
            id_ = medium_id(thread_id, found.digest, given_id)
        return blob_source(id_, found.digest, found.media_type, found.size), Given(found.name, given_id=given_id)

    async def load(self, source: JsonObject) -> bytes | None:
        """All bytes of a `blob` source; None if they are gone."""
        if not await self._blobs.has(source["digest"]):
            return None
        return b"".join([piece async for piece in self._blobs.pieces(source["digest"], 0, source["size"])])


def file_name(given: str, media_type: str) -> str:
    """The name of a medium: what a client calls it, as far as that can be printed, or one made of its type."""
    name = "".join(character for character in given if character.isprintable())[-MOST_NAME:]
    family, _, kind = (media_type or UNKNOWN_TYPE).partition("/")
    return name or f"{family}.{kind.partition('+')[0]}"
