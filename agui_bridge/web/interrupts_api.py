"""The routes of the inbox: what is asked, and answering it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from agui_bridge.inbox import Inbox, answer_in
from agui_bridge.run_input import is_id
from agui_bridge.web.guard import json_response, prefix_of, read_json
from agui_bridge.web.host import Host
from agui_bridge.web.paging import cursor, limit_of, place_of
from runtime.errors import NotFound


class InterruptsApi:
    """The routes under `/api/interrupts`."""

    def __init__(self, bridge: Host) -> None:
        self._bridge = bridge

    async def list(self, request: Request) -> Response:
        """`GET /api/interrupts`: the open ones. Raises InvalidInput, InvalidCursor."""
        principal = await self._bridge.principal(request)
        limit, inbox = limit_of(request.query_params), Inbox(self._bridge.supervisor)
        found = await inbox.open(principal, place_of(request.query_params), limit + 1)
        page = found[:limit]
        more = cursor(page[-1].raised_at, page[-1].interrupt_id) if len(found) > limit else None
        return json_response({"interrupts": [inbox.document(each) for each in page], "next_cursor": more})

    async def answer(self, request: Request) -> Response:
        """`POST /api/interrupts/{interrupt_id}/answer`: 202, and the run that goes on."""
        principal = await self._bridge.principal(request)
        interrupt_id = request.path_params["interrupt_id"]
        if not is_id(interrupt_id):
            raise NotFound
        given = answer_in(await read_json(request, int(self._bridge.settings.max_body_mib * 2**20)))
        run = await Inbox(self._bridge.supervisor).answer(principal, interrupt_id, given)
        here = f"{prefix_of(request)}/api/agent-runs/{run.run_id}"
        document = {"interrupt_id": interrupt_id, "run_id": run.run_id, "events_url": f"{here}/events"}
        return json_response(document, 202, {"location": here})
