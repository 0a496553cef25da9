"""What a request must be before anybody looks at what it says: size, type, JSON; and how a refusal looks.

Nothing is recorded of a request that is refused here. Every refusal of ours is made in this module, whether it is met
in our own app or in a host's route.
"""

from __future__ import annotations

import codecs
import json
import logging
import re
from collections.abc import Awaitable
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

import orjson
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from runtime.canonical import Json, JsonObject, clean
from runtime.errors import AguiBridgeError, CallerError, InvalidInput
from runtime.system import mint_uuid7

log = logging.getLogger("agui_bridge.web")

_CODES = {404: "not_found", 405: "method_not_allowed"}
_MOST_DIGITS = 18
_NOT_IN_A_HOST = re.compile(r"[/?#@\\\s]")


class NotJson(CallerError):
    """The body is not JSON."""

    code = "not_json"
    status = 400


class BodyTooLarge(CallerError):
    """The body is too large."""

    code = "body_too_large"
    status = 413


class UnsupportedMediaType(CallerError):
    """The body must be JSON: send it with content-type application/json."""

    code = "unsupported_media_type"
    status = 415


class ForeignOrigin(CallerError):
    """Pages of this origin may not call this server; `allowed_origins` lists those that may."""

    code = "foreign_origin"
    status = 403


async def read_json(request: Request, max_bytes: int) -> Json:
    """The request's JSON document. Raises UnsupportedMediaType, BodyTooLarge (chunked bodies too), NotJson."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType
    return parse_json(await read_body(request, max_bytes))


async def read_body(request: Request, max_bytes: int) -> bytes:
    """The request's body, of whatever type. Raises UnsupportedMediaType (of one that is compressed), BodyTooLarge
    (chunked bodies too), NotJson (of one that is not complete)."""
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must not be compressed: send it without content-encoding.")
    too_large = BodyTooLarge(f"The body is larger than {max_bytes / 2**20:g} MiB.")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > _MOST_DIGITS or int(declared) > max_bytes):
        raise too_large
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > max_bytes:
                raise too_large
            pieces.append(piece)
    except ClientDisconnect as gone:
        raise NotJson("The client went away before its body was complete.") from gone
    return b"".join(pieces)


def parse_json(body: bytes) -> Json:
    """The document in a body, which is UTF-8; a byte order mark before it is no harm.

    Raises NotJson, InvalidInput (`too_deep`). Lone surrogates that JSON can write come back as such.
    """
    body = body.removeprefix(codecs.BOM_UTF8)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        return _parse_slowly(body, problem)


def _parse_slowly(body: bytes, problem: orjson.JSONDecodeError) -> Json:
    """orjson refuses escaped lone surrogates, and nesting that is too deep for it; the standard library tells which."""
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant)  # of bytes it would guess the encoding
    except RecursionError:
        raise InvalidInput("The body nests too deep.", code="too_deep") from problem
    except ValueError:
        raise NotJson(
            f"The body is not JSON: {problem.msg} (line {problem.lineno}, column {problem.colno})."
        ) from problem


def _no_constant(name: str) -> Json:
    raise ValueError(name)


def json_response(document: Json, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(orjson.dumps(document), status, headers, media_type="application/json")


def prefix_of(request: Request) -> str:
    """Where a host has mounted this app."""
    return quote(request.scope.get("root_path", ""))


def error_response(error: AguiBridgeError) -> Response:
    """`{code, message, details}` with the error's status."""
    headers = {"retry-after": "1"} if error.status == 503 else None
    document: JsonObject = {"code": error.code, "message": error.message, "details": clean(error.details)}
    return json_response(document, error.status, headers)


async def answered(request: Request, work: Awaitable[Response]) -> Response:
    """What `work` answers, or what its error says. An HTTPException passes: it is the web framework's own word."""
    try:
        return await work
    except HTTPException:
        raise
    except AguiBridgeError as error:
        if error.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            log.exception("%s %s: %s (%s)", request.method, request.url.path, error.message, error.code)
        return error_response(error)
    except Exception:
        bug = mint_uuid7("bug")
        log.exception("%s %s failed (%s)", request.method, request.url.path, bug)
        return _bug_response(bug)


async def on_http_exception(request: Request, error: Exception) -> Response:
    """What Starlette refuses by itself (unknown paths and methods), and what an authenticate hook raises so."""
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "http_error")
    detail: Json = error.detail  # a host's framework allows more than text
    document: JsonObject = {
        "code": code,
        "message": detail if isinstance(detail, str) else HTTPStatus(error.status_code).phrase,
        "details": {} if isinstance(detail, str) else {"detail": clean(detail)},
    }
    return json_response(document, error.status_code, dict(error.headers or {}))


async def on_bug(request: Request, error: Exception) -> Response:
    """An error outside of every route."""
    bug = mint_uuid7("bug")
    log.error("%s %s failed (%s)", request.method, request.url.path, bug, exc_info=error)
    return _bug_response(bug)


def _bug_response(bug: str) -> Response:
    """Any other error is ours: the log has it under the id that the client is told."""
    document: JsonObject = {
        "code": "internal_error",
        "message": "The server failed; its log says why.",
        "details": {"id": bug},
    }
    return json_response(document, 500)


class OriginGuard:
    """Refuses what a browser sends for a page that has no business here.

    A request that is not a GET and has a foreign Origin is refused. With `loopback` the server is meant for this
    machine alone: the Host must be a loopback name (a rebound DNS name is not) or that of an allowed origin (a proxy
    on this machine hands it on), and every loopback origin may call. None: so it is for what comes in on a loopback
    address. A request without Host is no browser's, and passes.
    """

    def __init__(self, app: ASGIApp, allowed_origins: list[str], loopback: bool | None) -> None:
        self._app = app
        self._allowed = frozenset(allowed_origins)
        self._hosts = frozenset(origin.partition("://")[2] for origin in allowed_origins)
        self._loopback = loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host, here = headers.get("host", ""), serves_this_machine(scope, self._loopback)
            if here and host and not is_loopback(host) and host not in self._hosts:
                refusal = ForeignOrigin(
                    "This server listens on a loopback address and answers to its names alone, "
                    "and to the hosts of `allowed_origins`."
                )
                return await error_response(refusal)(scope, receive, send)
            origin = headers.get("origin")
            if (
                origin is not None
                and scope["method"] not in ("GET", "HEAD", "OPTIONS")
                and self._is_foreign(origin, host, here=here)
            ):
                return await error_response(ForeignOrigin())(scope, receive, send)
        return await self._app(scope, receive, send)

    def _is_foreign(self, origin: str, host: str, *, here: bool) -> bool:
        if origin in self._allowed or "*" in self._allowed:
            return False
        netloc = origin.partition("://")[2]  # an Origin has nothing behind it; "null" has nothing at all
        return not netloc or (netloc != host and not (here and is_loopback(netloc)))


def serves_this_machine(scope: Scope, loopback: bool | None) -> bool:
    """Whether a request came to a server that is meant for this machine alone: as was said, or, where nothing was
    said, by the address at which it came in. Who it is that may reach an app below a path is its host's business, or
    its proxy's."""
    if loopback is not None:
        return loopback
    if scope.get("root_path"):
        return False
    server = scope.get("server")  # of a Unix socket it is a path, and some servers do not know it
    return bool(server) and is_loopback(server[0])


def is_loopback(host: str) -> bool:
    """Whether a host, with or without a port, is reached from this machine alone."""
    if _NOT_IN_A_HOST.search(host):
        return False
    try:
        name = host if host.count(":") > 1 and host[0] != "[" else urlsplit(f"//{host}").hostname or ""
        if name == "localhost":
            return True
        address = ip_address(name)
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        return False
