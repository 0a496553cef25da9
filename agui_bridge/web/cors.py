"""CORS for an app that may be served on loopback or to a network, which only a request shows."""

from __future__ import annotations

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_bridge.web.guard import serves_this_machine

_LOOPBACK_ORIGINS = r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?"
_EXPOSED = ["X-Run-Id", "Location"]


class Cors:
    """Lets the pages of `allowed_origins` read answers, and on loopback those of every loopback origin.

    `loopback` as for `OriginGuard`.
    """

    def __init__(self, app: ASGIApp, allowed_origins: list[str], loopback: bool | None) -> None:
        self._loopback = loopback
        self._here = _cors(app, allowed_origins, _LOOPBACK_ORIGINS)
        self._elsewhere = _cors(app, allowed_origins, None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        here = scope["type"] == "http" and serves_this_machine(scope, self._loopback)
        await (self._here if here else self._elsewhere)(scope, receive, send)


def _cors(app: ASGIApp, origins: list[str], pattern: str | None) -> CORSMiddleware:
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_origin_regex=pattern,
        allow_methods=["GET", "POST", "PATCH", "DELETE"],
        allow_headers=["*"],
        expose_headers=_EXPOSED,
    )
