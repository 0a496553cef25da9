"""The routes of agents: which there are, and what each can do."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from agui_bridge.capabilities import capabilities
from agui_bridge.web.guard import json_response, prefix_of
from agui_bridge.web.host import Host
from runtime.canonical import JsonObject
from runtime.errors import NotFound
from runtime.live_runs import Performer


class AgentsApi:
    """The routes of the agents that are served; `agent_path` is where each is, with its name as `{agent}`."""

    def __init__(self, bridge: Host, agent_path: str) -> None:
        self._bridge = bridge
        self._agent_path = agent_path

    async def list(self, request: Request) -> Response:
        """`GET /agents`: all of them, the first one first."""
        await self._bridge.principal(request)
        performers = self._bridge.supervisor.performers
        return json_response({"agents": [self._document(request, *each) for each in performers.items()]})

    async def of_first(self, request: Request) -> Response:
        """`GET /capabilities`: what the first agent can do."""
        return await self._capabilities(request, next(iter(self._bridge.supervisor.performers)))

    async def of_named(self, request: Request) -> Response:
        """`GET /agents/{agent}/capabilities`. Raises NotFound."""
        return await self._capabilities(request, request.path_params["agent"])

    async def _capabilities(self, request: Request, agent_id: str) -> Response:
        await self._bridge.principal(request)
        performer = self._bridge.supervisor.performers.get(agent_id)
        if performer is None:
            raise NotFound(f"There is no agent {agent_id!r}.")
        return json_response(capabilities(performer.agent, performer.model, self._bridge.settings))

    def _document(self, request: Request, agent_id: str, performer: Performer) -> JsonObject:
        run_url = prefix_of(request) + self._agent_path.replace("{agent}", quote(agent_id))
        here = run_url.rstrip("/")
        return {
            "agent_id": agent_id,
            "agent_name": performer.agent.name,
            "description": performer.agent.description,
            "run_url": run_url,
            "connect_url": f"{here}/connect",
            "capabilities_url": f"{here}/capabilities",
            "state_schema": None if (state := performer.agent.shared_state) is None else state.schema,
        }
