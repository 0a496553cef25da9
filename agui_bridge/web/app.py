"""The Starlette app: which path is answered by what. Routes, error handlers and guards are wired here and nowhere
else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agui_bridge.web.guard import OriginGuard, answered, json_response, on_bug, on_http_exception
from agui_bridge.web.host import Host
from agui_bridge.web.runs_api import RunsApi
from agui_bridge.web.stream import StreamAborted
from runtime.errors import StoreError

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_LOOPBACK_ORIGINS = r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?"
_EXPOSED = ["X-Run-Id", "Location"]


def build_app(bridge: Host, *, agent_path: str, loopback: bool) -> Starlette:
    """The app of a bridge. With `loopback` it is meant for this machine alone."""
    runs = RunsApi(bridge)

    async def run_first(request: Request) -> Response:
        return await bridge.handle(request)

    async def run_named(request: Request) -> Response:
        return await bridge.handle(request, agent=request.path_params["agent"])

    async def health(request: Request) -> Response:
        return json_response({"status": "ok"})

    async def ready(request: Request) -> Response:
        return await _ready(bridge)

    app = Starlette(
        routes=[
            Route("/", run_first, methods=["POST"]),
            Route(agent_path, run_named, methods=["POST"]),
            Route("/api/agent-runs/{run_id}", _endpoint(runs.run), methods=["GET"]),
            Route("/api/agent-runs/{run_id}/events", _endpoint(runs.events), methods=["GET"]),
            Route("/health", health, methods=["GET"]),
            Route("/ready", _endpoint(ready), methods=["GET"]),
        ],
        middleware=[
            Middleware(
                CORSMiddleware,
                allow_origins=bridge.settings.allowed_origins,
                allow_origin_regex=_LOOPBACK_ORIGINS if loopback else None,
                allow_methods=["GET", "POST", "PATCH", "DELETE"],
                allow_headers=["*"],
                expose_headers=_EXPOSED,
            ),
            Middleware(OriginGuard, allowed_origins=bridge.settings.allowed_origins, loopback=loopback),
        ],
        exception_handlers={HTTPException: on_http_exception, Exception: _outside_routes},
        lifespan=bridge.lifespan,
    )
    app.router.redirect_slashes = False  # a client of an API is told what is wrong, not sent around
    return app


def _endpoint(work: Endpoint) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await answered(request, work(request))

    return endpoint


async def _outside_routes(request: Request, error: Exception) -> Response:
    """An error that no route has answered; a stream that was cut off has told of itself, and is beyond answers."""
    return Response(status_code=500) if isinstance(error, StreamAborted) else await on_bug(request, error)


async def _ready(bridge: Host) -> Response:
    """Whether this process takes new runs: the store answers, and it is not draining."""
    if bridge.supervisor.draining:
        return json_response({"status": "draining"}, 503)
    try:
        await bridge.supervisor.journal.healthy()
    except StoreError as error:
        return json_response({"status": "store_unreachable", "message": error.message}, 503)
    return json_response({"status": "ready"})
