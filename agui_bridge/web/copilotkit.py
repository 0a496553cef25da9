"""CopilotKit's runtime protocol: a page sets `runtimeUrl` to this server, and needs no Node server between.

Runs and pages that come back are answered by the desk, as on every other route; what is CopilotKit's own is how a stop
is asked for, and that a stopped run is simply finished for the page. Everything can also be had through one path, in an
envelope.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agui_bridge.copilotkit_info import Envelope, envelope, runtime_info, stop_scope
from agui_bridge.run_input import is_id
from agui_bridge.web.copilotkit_threads import THREADS, Asked, Operation, ThreadsApi, operation_of, query_of
from agui_bridge.web.guard import json_response, parse_json, read_body, read_json
from agui_bridge.web.host import Host
from agui_bridge.web.methods import Endpoint, Methods
from runtime.authority import Principal
from runtime.canonical import Json
from runtime.errors import NotFound
from runtime.journal.catalogue import RunFilter
from runtime.run import ACTIVE, RunRecord

SETTLE_S: Final = 10.0
"""How long a stop waits for the end of the run, in seconds."""

_AT_ONCE: Final = 100
"""How many runs a stop looks for at once: a thread has one at work, and `queue_limit` that wait."""


class CopilotKitApi:
    """The routes below `copilotkit_prefix`."""

    def __init__(self, bridge: Host) -> None:
        self._bridge = bridge
        self._threads = ThreadsApi(bridge)

    # --- routes ---------------------------------------------------------------------------------------------------

    async def info(self, request: Request) -> Response:
        """`GET /info`: the agents, and what this server can do."""
        await self._bridge.principal(request)
        return self._info()

    async def run(self, request: Request) -> Response:
        """`POST /agent/{agent}/run`: a RunAgentInput, answered with a run. Raises what the desk raises."""
        principal = await self._bridge.principal(request)
        return await self._run(request, principal, request.path_params["agent"], await self._document(request))

    async def connect(self, request: Request) -> Response:
        """`POST /agent/{agent}/connect`: for a page that comes back. Raises what the desk raises."""
        principal = await self._bridge.principal(request)
        return await self._connect(request, principal, request.path_params["agent"], await self._document(request))

    async def suggest(self, request: Request) -> Response:
        """`POST /agent/{agent}/suggest`: a run that leaves nothing behind. Raises what the desk raises."""
        principal = await self._bridge.principal(request)
        return await self._suggest(request, principal, request.path_params["agent"], await self._document(request))

    async def stop(self, request: Request) -> Response:
        """`POST /agent/{agent}/stop/{thread}`, `{runId}` or nothing at all. Raises NotFound, MalformedInput."""
        principal = await self._bridge.principal(request)
        document = await self._document_or_none(request)
        return await self._stop(principal, request.path_params["agent"], request.path_params["thread"], document)

    async def threads(self, operation: Operation, request: Request) -> Response:
        """What `THREADS` says. A body is read where there is one: a deletion has one, too."""
        principal = await self._bridge.principal(request)
        document = await self._document_or_none(request)
        thread_id = request.path_params.get("thread", "")
        return await operation(self._threads, Asked(request, principal, thread_id, request.query_params, document))

    async def single(self, request: Request) -> Response:
        """`POST /`: any of the others, in an envelope `{method, params, body}`. Raises NotFound for no known method."""
        principal = await self._bridge.principal(request)
        asked = envelope(await self._document(request))
        answer = _SINGLE.get(asked.method)
        if answer is None:
            raise NotFound(f"There is no method {asked.method[:80]!r}; known are {', '.join(_SINGLE)}.")
        return await answer(self, request, principal, asked)

    # --- what they do ---------------------------------------------------------------------------------------------

    def _info(self) -> Response:
        return json_response(runtime_info(self._bridge.supervisor.performers, self._bridge.settings))

    async def _run(self, request: Request, principal: Principal, agent_id: str, document: Json) -> Response:
        return await self._bridge.answer(request, document, principal, agent_id, stops_quietly=True)

    async def _connect(self, request: Request, principal: Principal, agent_id: str, document: Json) -> Response:
        return await self._bridge.answer(request, document, principal, agent_id, connect=True, stops_quietly=True)

    async def _suggest(self, request: Request, principal: Principal, agent_id: str, document: Json) -> Response:
        return await self._bridge.answer(request, document, principal, agent_id, suggest=True, stops_quietly=True)

    async def _stop(self, principal: Principal, agent_id: str, thread_id: str, document: Json) -> Response:
        supervisor = self._bridge.supervisor
        if agent_id not in supervisor.performers:
            raise NotFound(f"There is no agent {agent_id!r}.")
        if not is_id(thread_id):
            raise NotFound
        run_id = stop_scope(document)
        if await self._bridge.stop_suggestions(principal, thread_id):
            return json_response({"stopped": True})
        session = await supervisor.sessions.find(principal, thread_id, "cancel")
        if run_id is None:
            runs = await supervisor.runs(principal, RunFilter(session.session_id, ACTIVE), None, _AT_ONCE)
        else:
            named = await supervisor.journal.find_named_run(session.thread_id, run_id)
            runs = [named] if named is not None and not named.is_over else []
        if not runs:
            what = "Nothing runs on this thread." if run_id is None else "This run is not at work on the thread."
            return json_response({"stopped": False, "message": what})
        for run in _waiting_first(runs):
            await supervisor.cancel(run.run_id, "user", SETTLE_S)
        return json_response({"stopped": True})

    async def _resource(self, request: Request, principal: Principal, asked: Envelope) -> Response:
        path, _, query = asked.text("path").partition("?")
        operation, thread_id = operation_of(unquote(path), asked.text("httpMethod").upper())
        return await operation(self._threads, Asked(request, principal, thread_id, query_of(query), asked.body))

    async def _document_or_none(self, request: Request) -> Json:
        """The body, whatever its type is said to be: who sends none says no type either."""
        body = await read_body(request, self._most_bytes)
        return parse_json(body) if body.strip() else None

    @property
    def _most_bytes(self) -> int:
        return int(self._bridge.settings.max_body_mib * 2**20)

    async def _document(self, request: Request) -> Json:
        return await read_json(request, self._most_bytes)


def _waiting_first(runs: list[RunRecord]) -> list[RunRecord]:
    """The runs in the order in which they are to be stopped: one that waits would begin when the one before it ends."""
    return sorted(runs, key=lambda run: run.has_place)


# --- the single endpoint ------------------------------------------------------------------------------------------

_Single = Callable[[CopilotKitApi, Request, Principal, Envelope], Awaitable[Response]]


async def _single_info(api: CopilotKitApi, request: Request, principal: Principal, asked: Envelope) -> Response:
    return api._info()


async def _single_run(api: CopilotKitApi, request: Request, principal: Principal, asked: Envelope) -> Response:
    return await api._run(request, principal, asked.agent_id, asked.body)


async def _single_connect(api: CopilotKitApi, request: Request, principal: Principal, asked: Envelope) -> Response:
    return await api._connect(request, principal, asked.agent_id, asked.body)


async def _single_suggest(api: CopilotKitApi, request: Request, principal: Principal, asked: Envelope) -> Response:
    return await api._suggest(request, principal, asked.agent_id, asked.body)


async def _single_stop(api: CopilotKitApi, request: Request, principal: Principal, asked: Envelope) -> Response:
    return await api._stop(principal, asked.agent_id, asked.thread_id, asked.body)


async def _single_resource(api: CopilotKitApi, request: Request, principal: Principal, asked: Envelope) -> Response:
    return await api._resource(request, principal, asked)


_SINGLE: Final[dict[str, _Single]] = {
    "info": _single_info,
    "agent/run": _single_run,
    "agent/connect": _single_connect,
    "agent/suggest": _single_suggest,
    "agent/stop": _single_stop,
    "resource/request": _single_resource,
}


def copilotkit_routes(bridge: Host, prefix: str) -> list[Route]:
    """The routes below `prefix`; none if it is empty. Agents' names and threads' ids may hold slashes."""
    if not prefix:
        return []
    api = CopilotKitApi(bridge)
    paths: dict[str, dict[str, Endpoint]] = {
        "": {"POST": api.single},
        "/info": {"GET": api.info},
        "/agent/{agent:path}/run": {"POST": api.run},
        "/agent/{agent:path}/connect": {"POST": api.connect},
        "/agent/{agent:path}/suggest": {"POST": api.suggest},
        "/agent/{agent:path}/stop/{thread:path}": {"POST": api.stop},
    }
    for path, operations in THREADS.items():
        paths[path] = {method: partial(api.threads, operation) for method, operation in operations.items()}
    return [Route(prefix + path, Methods(endpoints)) for path, endpoints in paths.items()]
