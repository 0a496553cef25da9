"""`GET /api/artifacts/{id}`: what a tool made or a user gave, whole or a range of it, for its owner or for who has a
good link.

A browser is told never to show it as a page of this server: it is saved, taken for nothing else than its media type
says, and whatever opens it all the same opens it in a sandbox.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Callable
from typing import Final, NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agui_bridge.web.host import Host
from runtime.authority import authorize
from runtime.errors import CallerError, NotFound
from runtime.journal.artifacts import Artifact
from runtime.journal.media import Medium

SAFE: Final = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "cross-origin-resource-policy": "cross-origin",  # a page of another origin shows it by its link
    "referrer-policy": "no-referrer",
    "cache-control": "private, no-cache",
    "accept-ranges": "bytes",
}

_RANGE: Final = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))")
_PLAIN: Final = re.compile(r"[^A-Za-z0-9._ -]")


class Span(NamedTuple):
    """`length` bytes from `start` on."""

    start: int
    length: int


class RangeNotSatisfiable(CallerError):
    """No byte of this range is there; `details.size` says how many there are."""

    code = "range_not_satisfiable"
    status = 416


class ArtifactsApi:
    """The route of artifacts."""

    def __init__(self, bridge: Host, *, now_s: Callable[[], float] = time.time) -> None:
        self._bridge = bridge
        self._now_s = now_s

    async def read(self, request: Request) -> Response:
        """`GET /api/artifacts/{artifact_id}`. Raises NotFound, RangeNotSatisfiable."""
        artifact = await self._find(request)
        etag = f'"{artifact.digest}"'
        headers = {**SAFE, "etag": etag, "content-disposition": disposition(artifact.name)}
        if _names(request.headers.get("if-none-match"), etag):
            return Response(status_code=304, headers=headers)
        fresh = request.headers.get("if-range", etag) == etag
        span = span_of(request.headers.get("range") if fresh else None, artifact.size)
        whole = Span(0, artifact.size)
        if span is not None:
            last = span.start + span.length - 1
            headers["content-range"] = f"bytes {span.start}-{last}/{artifact.size}"
        wanted = span or whole
        headers |= {"content-type": artifact.media_type, "content-length": str(wanted.length)}
        status = 200 if span is None else 206
        if request.method == "HEAD":
            return Response(status_code=status, headers=headers)
        pieces = await _begun(self._bridge.supervisor.artifacts.pieces(artifact, *wanted))
        return StreamingResponse(pieces, status, headers)

    async def _find(self, request: Request) -> Artifact | Medium:
        artifact_id, query = request.path_params["artifact_id"], request.query_params
        by_link = "signature" in query
        principal = None if by_link else await self._bridge.principal(request)
        supervisor = self._bridge.supervisor
        artifact = await supervisor.artifacts.find(artifact_id) or await supervisor.media.find(artifact_id)
        if principal is not None:
            authorize(principal, "read", artifact)
        else:
            expires, signature = query.get("expires", ""), query["signature"]
            if not self._bridge.signer.accepts(artifact_id, expires, signature, self._now_s()):
                raise NotFound
        if artifact is None:
            raise NotFound
        return artifact


async def _begun(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The pieces, the first of which is there: what cannot be read is refused before an answer has begun."""
    first = await anext(pieces, b"")

    async def rest() -> AsyncGenerator[bytes, None]:
        try:
            yield first
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()

    return rest()


def span_of(header: str | None, size: int) -> Span | None:
    """The one range that a Range header asks for (RFC 9110, 14.2); None for none, for several, and for what is no
    range of bytes: the whole is a legal answer then. Raises RangeNotSatisfiable."""
    match = None if header is None else _RANGE.fullmatch(header.strip())
    if match is None:
        return None
    first, last, final = match.groups()
    if final is not None:
        start, end = max(size - int(final), 0), size if int(final) else 0
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    if start >= end:
        raise RangeNotSatisfiable(details={"size": size})
    return Span(start, end - start)


def disposition(name: str) -> str:
    """Content-Disposition by which a browser saves the file under its name (RFC 6266)."""
    return f"attachment; filename=\"{_PLAIN.sub('_', name)}\"; filename*=UTF-8''{quote(name, safe='')}"


def _names(header: str | None, etag: str) -> bool:
    if header is None:
        return False
    named = {each.strip().removeprefix("W/") for each in header.split(",")}
    return etag in named or "*" in named
