"""Blobs as files of a folder: `ab/abcdef…`, written beside and renamed, so that a name is never half a content."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from runtime.blobs import PIECE, Blob
from runtime.errors import InvalidInput, StoreError

_FULL = (errno.ENOSPC, errno.EDQUOT)


class FolderBlobs:
    """`Blobs` below `folder`, which is made when something is put. Files are streamed, never whole in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def put(self, source: bytes | Path) -> Blob:
        """See the port."""
        return await asyncio.to_thread(self._put, source)

    async def has(self, digest: str) -> bool:
        """See the port."""
        return await asyncio.to_thread(self._path(digest).is_file)

    async def pieces(self, digest: str, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """See the port."""
        file = await asyncio.to_thread(self._open, digest, start)
        try:
            while length > 0:
                piece = await asyncio.to_thread(file.read, min(PIECE, length))
                if not piece:
                    raise StoreError(f"The artifact's file {digest} is shorter than it was.", code="store_corrupt")
                length -= len(piece)
                yield piece
        finally:
            file.close()

    async def remove(self, digest: str, is_named: Callable[[str], Awaitable[bool]]) -> bool:
        """See the port. The file is put aside before anybody is asked: who names it from then on sees that it is
        gone, and puts it again."""
        path, aside = self._path(digest), self._path(digest).with_suffix(".gone")
        try:
            await asyncio.to_thread(os.replace, path, aside)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed(error) from error
        named = await is_named(digest)
        await asyncio.to_thread(_settle, aside, path if named else None)
        return not named

    def _put(self, source: bytes | Path) -> Blob:
        with _opened(source) as content:
            try:
                return self._write(content)
            except OSError as error:
                raise _failed(error) from error

    def _write(self, content: BinaryIO) -> Blob:
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".new-", dir=self.folder)
        try:
            digest, size = hashlib.sha256(), 0
            with os.fdopen(handle, "wb") as file:
                while piece := content.read(PIECE):
                    file.write(piece)
                    digest.update(piece)
                    size += len(piece)
                file.flush()
                os.fsync(file.fileno())
            path = self._path(digest.hexdigest())
            path.parent.mkdir(exist_ok=True)
            os.replace(name, path)
            _sync(path.parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        return Blob(digest.hexdigest(), size)

    def _open(self, digest: str, start: int) -> BinaryIO:
        try:
            file = self._path(digest).open("rb")
        except OSError as error:
            raise StoreError(f"The artifact's file {digest} cannot be read: {error.strerror}.") from error
        file.seek(start)
        return file

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest


def _opened(source: bytes | Path) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    try:
        return source.open("rb")
    except OSError as error:
        raise InvalidInput(f"The file {source} cannot be read: {error.strerror}.") from error


def _failed(error: OSError) -> StoreError:
    if error.errno in _FULL:
        return StoreError("The disk is full.", code="store_full")
    return StoreError(f"The folder of artifacts cannot be used: {error.strerror}.")


def _settle(aside: Path, path: Path | None) -> None:
    if path is None:
        aside.unlink()
    else:
        os.replace(aside, path)


def _sync(folder: Path) -> None:
    """Make a rename last over a power cut, where folders can be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
