"""Reading runs: their record, and their events from any cursor, live."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from agui_bridge.encoders import agui_encoder, canonical_encoder
from agui_bridge.prelude import Prelude, state_prelude
from agui_bridge.projection import Echo, Projector
from agui_bridge.times import iso, iso_or_none
from agui_bridge.transcript import transcript
from agui_bridge.web.guard import json_response
from agui_bridge.web.host import Host
from agui_bridge.web.stream import EventStream
from agui_bridge.wire.sse import parse_cursor
from runtime.authority import Principal
from runtime.canonical import JsonObject
from runtime.errors import InvalidCursor, InvalidInput, NotFound
from runtime.run import RunRecord
from runtime.supervisor import Supervisor

FORMATS = ("canonical", "agui")


class RunsApi:
    """The reading routes under `/api/agent-runs/{run_id}`."""

    def __init__(self, bridge: Host) -> None:
        self._bridge = bridge

    async def run(self, request: Request) -> Response:
        """`GET /api/agent-runs/{run_id}`."""
        principal = await self._bridge.principal(request)
        record = await self._bridge.supervisor.run(principal, request.path_params["run_id"])
        return json_response(run_document(record))

    async def events(self, request: Request) -> Response:
        """`GET /api/agent-runs/{run_id}/events`: replay behind the cursor, then live, closed after the terminal event.

        204 for a cursor at the end of a finished run. Raises InvalidCursor, InvalidInput, NotFound.
        """
        principal = await self._bridge.principal(request)
        supervisor = self._bridge.supervisor
        run = await supervisor.run(principal, request.path_params["run_id"])
        after = parse_cursor(request.headers.get("last-event-id"), request.query_params.get("after_seq"))
        wanted = request.query_params.get("format", "canonical")
        if wanted not in FORMATS:
            raise InvalidInput(f"format is one of {', '.join(FORMATS)}.", details={"path": "format"})
        full = request.query_params.get("full") == "1"
        if full and not principal.operator:
            raise NotFound
        if after > run.last_seq:
            raise InvalidCursor(details={"last_event_seq": run.last_seq})
        if run.is_over and after == run.last_seq:
            return Response(status_code=204)
        return await self._follow(supervisor, run, principal, after, wanted, full=full)

    async def _follow(
        self, supervisor: Supervisor, run: RunRecord, principal: Principal, after: int, wanted: str, *, full: bool
    ) -> EventStream:
        keep_alive_s = self._bridge.settings.keep_alive_s
        if wanted == "canonical":
            encode = canonical_encoder(run, full=full)
            return EventStream(supervisor.follow(run.run_id, after), encode, keep_alive_s=keep_alive_s)
        thread = await supervisor.thread_as_of(run)
        base = [line.message for line in transcript(thread, without_run=run.run_id)]
        opening = Prelude(state_prelude(thread.state, None), base)
        echo = Echo(run.session_id or run.thread_id, run.client_run_id, run.parent_run_id)
        encode = agui_encoder(Projector(echo, opening), after)
        return EventStream(supervisor.follow(run.run_id, 0), encode, keep_alive_s=keep_alive_s)


def run_document(run: RunRecord) -> JsonObject:
    """A run as the API shows it."""
    return {
        "run_id": run.run_id,
        "client_run_id": run.client_run_id,
        "thread_id": run.thread_id,
        "session_id": run.session_id,
        "owner_id": run.owner_id,
        "agent_id": run.agent_id,
        "status": run.status,
        "last_event_seq": run.last_seq,
        "executor_instance_id": run.executor_instance_id,
        "lease_expires_at": iso_or_none(run.lease_expires_at),
        "final_message_id": run.final_message_id,
        "error": run.error,
        "root_run_id": run.root_run_id,
        "parent_run_id": run.parent_run_id,
        "agent_snapshot_checksum": run.agent_snapshot_checksum,
        "context_snapshot_checksum": run.context_snapshot_checksum,
        "trace_id": run.trace_id,
        "usage": run.usage,
        "created_at": iso(run.created_at),
        "started_at": iso_or_none(run.started_at),
        "finished_at": iso_or_none(run.finished_at),
    }
