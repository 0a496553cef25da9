"""One path with several methods: whatever method comes, this path answers it, and names those that it has.

A route of Starlette's knows one endpoint; of two routes for one path the first would name its own methods alone, and a
more general path behind it could answer in its place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agui_bridge.web.guard import answered

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


class Methods:
    """An ASGI app that answers each method with its own endpoint. HEAD is answered as GET is."""

    def __init__(self, endpoints: Mapping[str, Endpoint]) -> None:
        self._endpoints = dict(endpoints)
        if "GET" in endpoints:
            self._endpoints["HEAD"] = endpoints["GET"]

    @property
    def names(self) -> list[str]:
        """The methods that there are."""
        return sorted(self._endpoints)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is None:
            raise HTTPException(405, headers={"Allow": ", ".join(self.names)})
        request = Request(scope, receive, send)
        response = await answered(request, endpoint(request))
        await response(scope, receive, send)
