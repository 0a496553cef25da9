"""The routes of an app, whichever way they are made."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.routing import Route

from agui_bridge.web.methods import Methods
from agui_bridge.web.openapi import plain


def routes(app: Starlette) -> dict[str, set[str]]:
    """The methods of each path, converters left out; HEAD comes with GET and is not named."""
    found: dict[str, set[str]] = {}
    for route in app.routes:
        assert isinstance(route, Route)
        methods = route.endpoint.names if isinstance(route.endpoint, Methods) else route.methods or []
        found.setdefault(plain(route.path), set()).update(methods)
    return {path: methods - {"HEAD"} for path, methods in found.items()}
