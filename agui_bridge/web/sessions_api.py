"""The routes of sessions: making, listing, renaming, deleting them, and talking in them."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from agui_bridge.links import linked_content
from agui_bridge.media_intake import MediaIntake
from agui_bridge.messages import messages_of
from agui_bridge.native_desk import NativeDesk, require_agent
from agui_bridge.native_intake import key_digest, new_message, new_session, session_change
from agui_bridge.run_input import is_id
from agui_bridge.times import iso
from agui_bridge.web.guard import json_response, prefix_of, read_json
from agui_bridge.web.host import Host
from agui_bridge.web.paging import cursor, limit_of, message_of, place_of
from runtime.canonical import Json, JsonObject
from runtime.errors import InvalidCursor, InvalidInput, NotFound
from runtime.journal import Session

SETTLE_S: Final = 10.0
"""How long the deletion of a session waits for the end of what is at work in it, in seconds."""


class SessionsApi:
    """The routes under `/api/sessions`."""

    def __init__(self, bridge: Host) -> None:
        self._bridge = bridge

    async def create(self, request: Request) -> Response:
        """`POST /api/sessions`."""
        principal = await self._bridge.principal(request)
        wanted = new_session(await self._body(request))
        supervisor = self._bridge.supervisor
        agent_id = wanted.agent_id or next(iter(supervisor.performers))
        require_agent(supervisor, agent_id)
        session = await supervisor.sessions.create(principal, agent_id, wanted.title)
        location = f"{prefix_of(request)}/api/sessions/{session.session_id}"
        return json_response(session_document(session), 201, {"location": location})

    async def list(self, request: Request) -> Response:
        """`GET /api/sessions`."""
        principal = await self._bridge.principal(request)
        limit = limit_of(request.query_params)
        found = await self._bridge.supervisor.sessions.page(principal, place_of(request.query_params), limit + 1)
        page = found[:limit]
        more = cursor(page[-1].created_at, page[-1].session_id) if len(found) > limit else None
        return json_response({"sessions": [session_document(session) for session in page], "next_cursor": more})

    async def show(self, request: Request) -> Response:
        """`GET /api/sessions/{session_id}`."""
        principal = await self._bridge.principal(request)
        session = await self._bridge.supervisor.sessions.find(principal, _session_id(request))
        return json_response(session_document(session))

    async def change(self, request: Request) -> Response:
        """`PATCH /api/sessions/{session_id}`."""
        principal = await self._bridge.principal(request)
        sessions = self._bridge.supervisor.sessions
        session_id = _session_id(request)
        await sessions.find(principal, session_id, "update")
        change = session_change(await self._body(request))
        if change.agent_id is not None:
            require_agent(self._bridge.supervisor, change.agent_id)
        return json_response(session_document(await sessions.change(principal, session_id, change)))

    async def delete(self, request: Request) -> Response:
        """`DELETE /api/sessions/{session_id}`: hides it; its facts stay. With `purge=1` nothing stays, not of one that
        was hidden before either; the answer is the receipt. Raises InvalidInput, NotFound, ThreadBusy."""
        principal = await self._bridge.principal(request)
        purge = request.query_params.get("purge", "0")
        if purge not in ("0", "1"):  # never hide where somebody wanted to erase
            raise InvalidInput("purge is 0 or 1.", details={"path": "purge"})
        if purge == "1":
            receipt = await self._bridge.supervisor.purge_session(principal, _session_id(request), SETTLE_S)
            return json_response(receipt.as_payload())
        await self._bridge.supervisor.delete_session(principal, _session_id(request), SETTLE_S)
        return Response(status_code=204)

    async def messages(self, request: Request) -> Response:
        """`GET /api/sessions/{session_id}/messages`: the last page of the transcript, its cursor leads back."""
        principal = await self._bridge.principal(request)
        supervisor = self._bridge.supervisor
        session = await supervisor.sessions.find(principal, _session_id(request))
        limit, before = limit_of(request.query_params), message_of(request.query_params)
        thread = await supervisor.committed_thread(session.thread_id)
        shown = messages_of(thread, supervisor.agent_name)
        end = len(shown) if before is None else _place_of(shown, before)
        page = shown[max(end - limit, 0) : end]
        more = cursor(page[0]["message_id"]) if end > limit else None
        link_of = self._bridge.link_of(request)
        page = [{**message, "content": linked_content(message["content"], link_of)} for message in page]
        return json_response({"messages": page, "next_cursor": more})

    async def say(self, request: Request) -> Response:
        """`POST /api/sessions/{session_id}/messages`: 202, and the run goes on whether anybody reads it or not."""
        principal = await self._bridge.principal(request)
        supervisor = self._bridge.supervisor
        session_id = _session_id(request)
        await supervisor.sessions.find(principal, session_id, "run")
        key = key_digest(request.headers.get("idempotency-key"))
        message = new_message(await self._body(request))
        media = MediaIntake(supervisor.media, self._bridge.link_of(request).id_in)
        desk = NativeDesk(supervisor, media, queue_limit=self._bridge.settings.queue_limit)
        taken = await desk.take(principal, session_id, message, key)
        run = taken.run
        here = f"{prefix_of(request)}/api/agent-runs/{run.run_id}"
        document: JsonObject = {
            "message_id": taken.message_id,
            "run_id": run.run_id,
            "events_url": f"{here}/events",
            "agent_id": run.agent_id,
            "agent_name": supervisor.agent_name(run.agent_id),
        }
        return json_response(document, 202, {"location": here})

    async def _body(self, request: Request) -> Json:
        return await read_json(request, int(self._bridge.settings.max_body_mib * 2**20))


def session_document(session: Session) -> JsonObject:
    """A session as the API shows it."""
    return {
        "session_id": session.session_id,
        "title": session.title,
        "default_title": session.default_title,
        "agent_id": session.agent_id,
        "owner_id": session.owner_id,
        "thread_id": session.thread_id,
        "created_at": iso(session.created_at),
        "archived_at": None if session.archived_at is None else iso(session.archived_at),
    }


def _session_id(request: Request) -> str:
    """Raises NotFound for what is no id at all: a store need not be asked, and may not be able to."""
    session_id = request.path_params["session_id"]
    if not is_id(session_id):
        raise NotFound
    return session_id


def _place_of(messages: list[JsonObject], message_id: str) -> int:
    for index, message in enumerate(messages):
        if message["message_id"] == message_id:
            return index
    raise InvalidCursor("The history was changed behind this cursor; begin again without one.")
