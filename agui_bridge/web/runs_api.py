"""The routes of runs: their records, trees and rounds, their events from any cursor, live; and stopping them."""

from __future__ import annotations

import re
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

import orjson
from starlette.requests import Request
from starlette.responses import Response

from agui_bridge.encoders import (
    Encoder,
    Late,
    Rendering,
    SharedEncoder,
    SharedProjection,
    canonical_encoder,
    in_run,
    in_tree,
)
from agui_bridge.links import LinkOf
from agui_bridge.prelude import Prelude, state_prelude
from agui_bridge.projection import Echo, Projector
from agui_bridge.run_documents import rounds_document, run_document, tree_document
from agui_bridge.run_input import is_id
from agui_bridge.transcript import transcript
from agui_bridge.web.guard import json_response, prefix_of
from agui_bridge.web.host import Host
from agui_bridge.web.paging import cursor, limit_of, place_of
from agui_bridge.web.stream import EventStream
from agui_bridge.wire.sse import parse_cursor
from runtime.authority import Principal
from runtime.canonical import Json
from runtime.errors import EventsExpired, InvalidCursor, InvalidInput, NotFound
from runtime.events import Record
from runtime.journal.catalogue import RunFilter
from runtime.run import QUEUED, TRANSITIONS, RunRecord
from runtime.supervisor import Supervisor

FORMATS: Final = ("canonical", "agui")

MOST_WAIT_S: Final = 60
"""How long a request to cancel may wait for the end, in seconds."""

_PAGE: Final = 512
_SECONDS: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3})?")


class RunsApi:
    """The routes under `/api/agent-runs`."""

    def __init__(self, bridge: Host) -> None:
        self._bridge = bridge
        self._shared: WeakValueDictionary[tuple[str, bool], SharedEncoder] = WeakValueDictionary()
        """The canonical encoders that are in use, by run and by whether the envelope is wanted."""
        self._projections: WeakValueDictionary[tuple[str, str], SharedProjection] = WeakValueDictionary()
        """The projections that are in use, by run and by what its artifacts' links begin with."""

    async def list(self, request: Request) -> Response:
        """`GET /api/agent-runs`. Raises InvalidInput, InvalidCursor."""
        principal = await self._bridge.principal(request)
        limit, before, wanted = limit_of(request.query_params), place_of(request.query_params), _filter(request)
        found = await self._bridge.supervisor.runs(principal, wanted, before, limit + 1)
        page = found[:limit]
        more = cursor(page[-1].created_at, page[-1].run_id) if len(found) > limit else None
        return json_response({"runs": [run_document(run) for run in page], "next_cursor": more})

    async def run(self, request: Request) -> Response:
        """`GET /api/agent-runs/{run_id}`."""
        _, run = await self._run(request)
        return json_response(run_document(run))

    async def tree(self, request: Request) -> Response:
        """`GET /api/agent-runs/{run_id}/tree`: the run and all below it."""
        _, run = await self._run(request)
        supervisor = self._bridge.supervisor
        runs = await supervisor.tree(run)
        return json_response(tree_document(run.run_id, runs, supervisor.agent_name, prefix_of(request)))

    async def rounds(self, request: Request) -> Response:
        """`GET /api/agent-runs/{run_id}/rounds`, for operators."""
        principal, run = await self._run(request)
        if not principal.operator:
            raise NotFound
        await self._require_kept(run, 0)
        supervisor = self._bridge.supervisor
        thread = await supervisor.thread_as_of(run)
        records = await self._records(supervisor, run)
        agent = await self._snapshot(supervisor, run.agent_snapshot_checksum)
        context = await self._snapshot(supervisor, run.context_snapshot_checksum)
        return json_response(rounds_document(run, thread, records, agent=agent, context=context))

    async def cancel(self, request: Request) -> Response:
        """`POST /api/agent-runs/{run_id}/cancel`: 200 when the run is over, else 202. Raises InvalidInput."""
        wait_s = _wait_s(request)
        _, run = await self._run(request, "cancel")
        supervisor = self._bridge.supervisor
        await supervisor.cancel(run.run_id, "user", wait_s)
        _, run = await self._run(request, "cancel")
        return json_response(run_document(run), 200 if run.is_over else 202)

    async def events(self, request: Request) -> Response:
        """`GET /api/agent-runs/{run_id}/events`: replay behind the cursor, then live, closed after the terminal event.

        204 for a cursor at the end of a finished run. Raises InvalidCursor, InvalidInput, NotFound.
        """
        principal, run = await self._run(request)
        after = parse_cursor(request.headers.get("last-event-id"), request.query_params.get("after_seq"))
        wanted = request.query_params.get("format", "canonical")
        if wanted not in FORMATS:
            raise InvalidInput(f"format is one of {', '.join(FORMATS)}.", details={"path": "format"})
        full = request.query_params.get("full", "0")
        if full not in ("0", "1"):
            raise InvalidInput("full is 0 or 1.", details={"path": "full"})
        if full == "1" and not principal.operator:
            raise NotFound
        of_tree = wanted == "agui" and run.run_id == run.root_run_id
        end = await self._bridge.supervisor.tree_end(run) if of_tree and after else run.last_seq
        if after > end:
            raise InvalidCursor(details={"last_event_seq": end})
        if run.is_over and after == end and after:
            return Response(status_code=204)
        if of_tree and end != run.last_seq:
            await self._require_kept(run, 0)
            await self._require_place(run, after, end)
        else:
            await self._require_kept(run, after)
        link_of = self._bridge.link_of(request)
        return await self._follow(self._bridge.supervisor, run, after, wanted, link_of, full=full == "1")

    async def _follow(
        self, supervisor: Supervisor, run: RunRecord, after: int, wanted: str, link_of: LinkOf, *, full: bool
    ) -> EventStream:
        keep_alive_s = self._bridge.settings.keep_alive_s
        if wanted == "canonical":
            shared = self._shared.get((run.run_id, full))
            if shared is None:
                shared = self._shared[run.run_id, full] = SharedEncoder(canonical_encoder(run, full=full))
            return EventStream(supervisor.follow(run.run_id, after), shared, keep_alive_s=keep_alive_s)
        is_root = run.run_id == run.root_run_id
        cursor = supervisor.follow_tree(run.run_id) if is_root else supervisor.follow(run.run_id, 0)
        if run.status == QUEUED:
            return EventStream(cursor, Late(partial(self._late, run.run_id, after, link_of)), keep_alive_s=keep_alive_s)
        return EventStream(cursor, await self._agui(run, after, link_of), keep_alive_s=keep_alive_s)

    async def _late(self, run_id: str, after: int, link_of: LinkOf) -> Encoder:
        run = await self._bridge.supervisor.journal.find_run(run_id)
        if run is None:
            raise NotFound
        return await self._agui(run, after, link_of)

    async def _agui(self, run: RunRecord, after: int, link_of: LinkOf) -> Encoder:
        place = in_tree if run.run_id == run.root_run_id else in_run
        key = (run.run_id, link_of(""))
        shared = self._projections.get(key)
        if shared is not None and shared.has_all:
            return shared.reader(after)
        thread = await self._bridge.supervisor.thread_as_of(run)
        base = [line.message for line in transcript(thread, without_run=run.run_id)]
        opening = Prelude(state_prelude(thread.state, None), base)
        echo = Echo(run.session_id or run.thread_id, run.client_run_id, run.parent_run_id)
        projection = SharedProjection(Projector(echo, opening), Rendering(link_of=link_of), place)
        if (begun := self._projections.get(key)) is not None and begun.has_all:
            return begun.reader(after)
        self._projections[key] = projection
        return projection.reader(after)

    async def _require_kept(self, run: RunRecord, after: int) -> None:
        """Return if `after` is a place from which the run can be read. Raises EventsExpired."""
        if run.expired_at is not None:
            raise EventsExpired(details={"last_event_seq": run.last_seq})
        if run.is_over and after:
            following = await self._bridge.supervisor.journal.read(run.run_id, after, 1)
            if following and following[0].first_seq <= after:
                nearest = {"before": following[0].first_seq - 1, "behind": following[0].seq}
                raise EventsExpired(details={"last_event_seq": run.last_seq, **nearest})

    async def _require_place(self, run: RunRecord, after: int, end: int) -> None:
        """Return if `after` is a place in the root's tree from which it can be read. Raises EventsExpired."""
        cursor = self._bridge.supervisor.follow_tree(run.run_id)
        place = 0
        try:
            while run.is_over and place < after:
                for record in await cursor.next():
                    if place < after < record.root_seq:
                        nearest = {"before": place, "behind": record.root_seq}
                        raise EventsExpired(details={"last_event_seq": end, **nearest})
                    place = record.root_seq
        finally:
            cursor.close()

    async def _run(self, request: Request, action: str = "read") -> tuple[Principal, RunRecord]:
        principal = await self._bridge.principal(request)
        run_id = request.path_params["run_id"]
        if not is_id(run_id):  # a store need not be asked for what is no id at all, and may not be able to
            raise NotFound
        return principal, await self._bridge.supervisor.run(principal, run_id, action)

    async def _records(self, supervisor: Supervisor, run: RunRecord) -> list[Record]:
        records: list[Record] = []
        while page := await supervisor.journal.read(run.run_id, records[-1].seq if records else 0, _PAGE):
            records += page
        return records

    async def _snapshot(self, supervisor: Supervisor, checksum: str | None) -> Json:
        data = None if checksum is None else await supervisor.journal.content(checksum)
        return None if data is None else orjson.loads(data)


def _filter(request: Request) -> RunFilter:
    query = request.query_params
    session_id = query.get("session_id")
    if session_id is not None and not is_id(session_id):
        raise InvalidInput("session_id is no id.", details={"path": "session_id"})
    statuses = frozenset(query.getlist("status"))
    if unknown := statuses - TRANSITIONS.keys():
        known = ", ".join(TRANSITIONS)
        raise InvalidInput(f"status is one of {known}.", details={"path": "status", "unknown": sorted(unknown)})
    return RunFilter(session_id, statuses or None)


def _wait_s(request: Request) -> float | None:
    """How long to wait for the end; None if not at all."""
    given = request.query_params.get("wait")
    if given is None:
        return None
    if _SECONDS.fullmatch(given) is None or float(given) > MOST_WAIT_S:
        raise InvalidInput(f"wait is a number of seconds from 0 to {MOST_WAIT_S}.", details={"path": "wait"})
    return float(given)
