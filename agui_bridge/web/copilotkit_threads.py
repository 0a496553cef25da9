"""The thread routes of CopilotKit's runtime protocol: what its `useThreads` hook and its inspector ask for.

Each operation is a function of who asks, of which thread, with which query and body, so that the routes and the single
endpoint lead to the same one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from agui_bridge.copilotkit_threads import thread_change, thread_messages, thread_record, wanted_threads
from agui_bridge.links import linked
from agui_bridge.projection import Echo
from agui_bridge.reopening import at_rest
from agui_bridge.run_input import is_id
from agui_bridge.web.guard import json_response
from agui_bridge.web.host import Host
from agui_bridge.web.paging import cursor, limit_of, place_of
from agui_bridge.wire.events import AguiEvent
from agui_bridge.wire.versions.before_1_0 import Before10
from runtime.authority import Principal
from runtime.canonical import Json
from runtime.errors import CallerError, NotFound
from runtime.journal.catalogue import SessionChange, UsedSession

log = logging.getLogger("agui_bridge.web")

SETTLE_S: Final = 10.0
"""How long the deletion of a thread waits for the end of what is at work in it, in seconds."""


class NoRealtime(CallerError):
    """Lists of threads are not told of changes here: ask for the list again."""

    code = "no_realtime"
    status = 422


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for threads. `thread_id` is "" where the path names none; `document` is the body, None without one."""

    request: Request
    principal: Principal
    thread_id: str
    query: Mapping[str, str]
    document: Json = None


class ThreadsApi:
    """What the thread routes do."""

    def __init__(self, bridge: Host) -> None:
        self._bridge = bridge

    async def list(self, asked: Asked) -> Response:
        """`GET /threads`: the last used first. Raises InvalidInput, InvalidCursor."""
        limit, wanted, before = limit_of(asked.query), wanted_threads(asked.query), place_of(asked.query)
        found = await self._bridge.supervisor.sessions.used(asked.principal, wanted, before, limit + 1)
        page = found[:limit]
        more = cursor(*page[-1].place) if len(found) > limit else None
        return json_response({"threads": [thread_record(used) for used in page], "nextCursor": more})

    async def change(self, asked: Asked) -> Response:
        """`PATCH /threads/{thread}`: another name, or taken back from where it was put away. Raises NotFound,
        MalformedInput."""
        return json_response(await self._changed(asked, thread_change(asked.document)))

    async def archive(self, asked: Asked) -> Response:
        """`POST /threads/{thread}/archive`: put it away. Raises NotFound."""
        await self._changed(asked, SessionChange(archived=True))
        return json_response({"threadId": asked.thread_id, "archived": True})

    async def delete(self, asked: Asked) -> Response:
        """`DELETE /threads/{thread}`: as if it had never been. Raises NotFound."""
        await self._bridge.supervisor.delete_session(asked.principal, _thread_id(asked), SETTLE_S)
        return json_response({"threadId": asked.thread_id, "deleted": True})

    async def messages(self, asked: Asked) -> Response:
        """`GET /threads/{thread}/messages`: all that the page would show. Raises NotFound."""
        return json_response({"messages": thread_messages(await self._events(asked))})

    async def events(self, asked: Asked) -> Response:
        """`GET /threads/{thread}/events`: as short a stream as builds what the page would show. Raises NotFound."""
        return json_response({"events": await self._events(asked)})

    async def state(self, asked: Asked) -> Response:
        """`GET /threads/{thread}/state`: the shared state. Raises NotFound."""
        session = await self._bridge.supervisor.sessions.find(asked.principal, _thread_id(asked))
        thread = await self._bridge.supervisor.committed_thread(session.thread_id)
        return json_response({"state": thread.state})

    async def subscribe(self, asked: Asked) -> Response:
        """`POST /threads/subscribe`, which info says is not to be had. Raises NoRealtime."""
        raise NoRealtime

    async def _changed(self, asked: Asked, change: SessionChange) -> Json:
        session = await self._bridge.supervisor.sessions.change(asked.principal, _thread_id(asked), change)
        return thread_record(UsedSession(session, None))

    async def _events(self, asked: Asked) -> list[AguiEvent]:
        supervisor = self._bridge.supervisor
        session = await supervisor.sessions.find(asked.principal, _thread_id(asked))
        thread = await supervisor.committed_thread(session.thread_id)
        last = thread.last_run
        told = at_rest(thread, Echo(session.session_id, "" if last is None else last.client_run_id), [])
        shape = Before10(partial(log.warning, "thread %s: %s", session.session_id))
        return [*shape(linked(told, self._bridge.link_of(asked.request)))]


def _thread_id(asked: Asked) -> str:
    """Raises NotFound for what is no id at all: a store need not be asked, and may not be able to."""
    if not is_id(asked.thread_id):
        raise NotFound
    return asked.thread_id


Operation = Callable[[ThreadsApi, Asked], Awaitable[Response]]

THREADS: Final[dict[str, dict[str, Operation]]] = {
    "/threads": {"GET": ThreadsApi.list},
    "/threads/subscribe": {"POST": ThreadsApi.subscribe},
    "/threads/{thread:path}/messages": {"GET": ThreadsApi.messages},
    "/threads/{thread:path}/events": {"GET": ThreadsApi.events},
    "/threads/{thread:path}/state": {"GET": ThreadsApi.state},
    "/threads/{thread:path}/archive": {"POST": ThreadsApi.archive},
    "/threads/{thread:path}": {"PATCH": ThreadsApi.change, "DELETE": ThreadsApi.delete},
}
"""The operations by path and method. A thread's id may hold slashes: what stands behind it is looked for first."""

_COMPILED: Final = [(compile_path(path)[0], operations) for path, operations in THREADS.items()]


def operation_of(path: str, method: str) -> tuple[Operation, str]:
    """What this path and method mean below the prefix, and the thread that the path names. Raises NotFound."""
    for pattern, operations in _COMPILED:
        if (match := pattern.match(path)) is not None:
            if (operation := operations.get(method)) is None:
                break
            return operation, match.groupdict().get("thread", "")
    raise NotFound(f"There is no {method[:10]} {path[:80]!r}.")


def query_of(text: str) -> Mapping[str, str]:
    """The members of a query as the web framework reads them."""
    return QueryParams(text)
