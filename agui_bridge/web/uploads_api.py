"""`POST /api/uploads`: media that a page gives before it speaks of them, so that no message has to hold megabytes.

The body is the file itself; it is streamed to disk, and the answer has the content part that refers to it. An upload
is its owner's alone.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from agui_bridge.media_intake import PROVIDER
from agui_bridge.web.guard import UnsupportedMediaType, json_response, prefix_of
from agui_bridge.web.host import Host
from runtime.blobs import PIECE
from runtime.canonical import JsonObject
from runtime.errors import CallerError, InvalidInput, StoreError
from runtime.journal.media import Medium
from runtime.media import kind_of, media_type_of
from runtime.media_shelf import UNKNOWN_TYPE

_MOST_DIGITS: Final = 18
_FORMS: Final = ("multipart/", "application/x-www-form-urlencoded")


class UploadTooLarge(CallerError):
    """The upload is too large."""

    code = "upload_too_large"
    status = 413


class UploadsApi:
    """The route of uploads."""

    def __init__(self, bridge: Host) -> None:
        self._bridge = bridge

    async def create(self, request: Request) -> Response:
        """`POST /api/uploads?name=…`: 201. Raises UploadTooLarge, UnsupportedMediaType, InvalidInput, StoreError."""
        principal = await self._bridge.principal(request)
        said = request.headers.get("content-type", "").strip()
        if said.lower().startswith(_FORMS):
            raise UnsupportedMediaType("Send the file itself as the body, with its own content-type; no form.")
        if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise UnsupportedMediaType("The body must not be compressed: send it without content-encoding.")
        async with _received(request, self._bridge.settings.most_upload_bytes) as (path, beginning):
            media_type = media_type_of(said, beginning) or UNKNOWN_TYPE
            name = request.query_params.get("name", "")
            medium = await self._bridge.supervisor.media.upload(principal, name, media_type, path)
        location = f"{prefix_of(request)}/api/artifacts/{medium.media_id}"
        document = upload_document(medium, self._bridge.link_of(request)(medium.media_id))
        return json_response(document, 201, {"location": location})


def upload_document(medium: Medium, url: str) -> JsonObject:
    """An upload as the API shows it; `part` is the content part that refers to it."""
    source = {"type": "file", "value": medium.media_id, "provider": PROVIDER, "mimeType": medium.media_type}
    return {
        "upload_id": medium.media_id,
        "name": medium.name,
        "media_type": medium.media_type,
        "size": medium.size,
        "digest": medium.digest,
        "url": url,
        "part": {"type": kind_of(medium.media_type), "source": source, "metadata": {"filename": medium.name}},
    }


@asynccontextmanager
async def _received(request: Request, most: int) -> AsyncGenerator[tuple[Path, bytes], None]:
    """The body as a file, and its first bytes. Raises UploadTooLarge, InvalidInput for none, StoreError."""
    too_large = UploadTooLarge(f"The upload is larger than {most / 2**20:g} MiB.", details={"most": most})
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > _MOST_DIGITS or int(declared) > most):
        raise too_large
    handle, name = tempfile.mkstemp(prefix="agui-bridge-upload-")
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            beginning, size = b"", 0
            async for piece in _pieces(request):
                size += len(piece)
                if size > most:
                    raise too_large
                beginning = beginning or piece[:16]
                await asyncio.to_thread(_write, file, piece)
        if not size:
            raise InvalidInput("The body is empty: send the file itself.", details={"path": "body"})
        yield path, beginning
    finally:
        await asyncio.to_thread(path.unlink)


async def _pieces(request: Request) -> AsyncGenerator[bytes, None]:
    """The body in pieces that are worth a thread's time."""
    gathered = bytearray()
    try:
        async for piece in request.stream():
            gathered += piece
            if len(gathered) >= PIECE:
                yield bytes(gathered)
                gathered.clear()
    except ClientDisconnect as gone:
        raise InvalidInput("The client went away before its upload was complete.") from gone
    if gathered:
        yield bytes(gathered)


def _write(file: BinaryIO, piece: bytes) -> None:
    try:
        file.write(piece)
        file.flush()
    except OSError as error:
        raise StoreError(f"The upload could not be written: {error.strerror}.", code="store_full") from error
