"""The Starlette app: which path is answered by what. Routes, error handlers and guards are wired here and nowhere
else."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agui_bridge.web.agents_api import AgentsApi
from agui_bridge.web.artifacts_api import ArtifactsApi
from agui_bridge.web.copilotkit import copilotkit_routes
from agui_bridge.web.cors import Cors
from agui_bridge.web.guard import OriginGuard, answered, json_response, on_bug, on_http_exception
from agui_bridge.web.host import Host
from agui_bridge.web.interrupts_api import InterruptsApi
from agui_bridge.web.methods import Endpoint, Methods
from agui_bridge.web.openapi import openapi, plain
from agui_bridge.web.page import Page
from agui_bridge.web.runs_api import RunsApi
from agui_bridge.web.sessions_api import SessionsApi
from agui_bridge.web.stream import StreamAborted
from agui_bridge.web.uploads_api import UploadsApi
from runtime.errors import StoreError


def build_app(bridge: Host, *, agent_path: str, loopback: bool | None, page: Page | None = None) -> Starlette:
    """The app of a bridge. With `loopback` it is meant for this machine alone; None: where it listens there. `page` is
    what a browser finds at `/`."""

    async def run_first(request: Request) -> Response:
        return await bridge.handle(request)

    async def run_named(request: Request) -> Response:
        return await bridge.handle(request, agent=request.path_params["agent"])

    async def connect_first(request: Request) -> Response:
        return await bridge.handle(request, connect=True)

    async def connect_named(request: Request) -> Response:
        return await bridge.handle(request, agent=request.path_params["agent"], connect=True)

    async def health(request: Request) -> Response:
        return json_response({"status": "ok"})

    async def ready(request: Request) -> Response:
        return await _ready(bridge)

    description = openapi(agent_path, bridge.settings.copilotkit_prefix)
    agents = AgentsApi(bridge, plain(agent_path))

    async def describe(request: Request) -> Response:
        return json_response(description)

    app = Starlette(
        routes=[
            *([Route("/", run_first, methods=["POST"])] if page is None else _with_page(page, run_first)),
            Route("/connect", connect_first, methods=["POST"]),
            Route(f"{agent_path.rstrip('/')}/connect", connect_named, methods=["POST"]),  # a name may hold slashes
            Route(f"{agent_path.rstrip('/')}/capabilities", Methods({"GET": agents.of_named})),
            Route(agent_path, run_named, methods=["POST"]),
            Route("/agents", Methods({"GET": agents.list})),
            Route("/capabilities", Methods({"GET": agents.of_first})),
            *_api_routes(bridge),
            *copilotkit_routes(bridge, bridge.settings.copilotkit_prefix),
            Route("/openapi.json", describe, methods=["GET"]),
            Route("/health", health, methods=["GET"]),
            Route("/ready", _endpoint(ready), methods=["GET"]),
        ],
        middleware=[
            Middleware(Cors, allowed_origins=bridge.settings.allowed_origins, loopback=loopback),
            Middleware(OriginGuard, allowed_origins=bridge.settings.allowed_origins, loopback=loopback),
        ],
        exception_handlers={HTTPException: on_http_exception, Exception: _outside_routes},
        lifespan=bridge.lifespan,
    )
    app.router.redirect_slashes = False  # a client of an API is told what is wrong, not sent around
    return app


def _with_page(page: Page, run_first: Endpoint) -> list[Route]:
    return [Route("/", Methods({"GET": page.index, "POST": run_first})), page.assets]


def _api_routes(bridge: Host) -> list[Route]:
    """The native API. A session's id may hold slashes: what stands behind it is looked for first."""
    runs, sessions, artifacts = RunsApi(bridge), SessionsApi(bridge), ArtifactsApi(bridge)
    interrupts = InterruptsApi(bridge)
    paths: dict[str, dict[str, Endpoint]] = {
        "/api/agent-runs": {"GET": runs.list},
        "/api/agent-runs/{run_id}": {"GET": runs.run},
        "/api/agent-runs/{run_id}/events": {"GET": runs.events},
        "/api/agent-runs/{run_id}/tree": {"GET": runs.tree},
        "/api/agent-runs/{run_id}/rounds": {"GET": runs.rounds},
        "/api/agent-runs/{run_id}/cancel": {"POST": runs.cancel},
        "/api/artifacts/{artifact_id}": {"GET": artifacts.read},
        "/api/interrupts": {"GET": interrupts.list},
        "/api/interrupts/{interrupt_id}/answer": {"POST": interrupts.answer},
        "/api/uploads": {"POST": UploadsApi(bridge).create},
        "/api/sessions": {"GET": sessions.list, "POST": sessions.create},
        "/api/sessions/{session_id:path}/messages": {"GET": sessions.messages, "POST": sessions.say},
        "/api/sessions/{session_id:path}": {"GET": sessions.show, "PATCH": sessions.change, "DELETE": sessions.delete},
    }
    return [Route(path, Methods(endpoints)) for path, endpoints in paths.items()]


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
