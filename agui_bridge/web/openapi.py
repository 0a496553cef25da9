"""The API's description, OpenAPI 3.1: what `/openapi.json` and docs/openapi.yaml say. Pure data.

It is written once, here. A test holds it against the routes of the app, and another asks a real server whether it
answers as is said here.
"""

from __future__ import annotations

import re
from typing import Final

from agui_bridge._version import __version__
from agui_bridge.native_intake import MAX_KEY
from agui_bridge.web.openapi_schemas import ID, SCHEMAS, STATUS, TEXT, ref
from agui_bridge.web.paging import MOST, USUAL
from agui_bridge.wire import PROTO_MEDIA_TYPE, SSE_MEDIA_TYPE
from runtime.canonical import JsonObject

_CONVERTER: Final = re.compile(r"\{(\w+):\w+\}")

_REFUSALS: Final[dict[int, str]] = {
    400: "The body is not JSON.",
    403: "A page of this origin may not call.",
    404: "It is not there, or not yours.",
    405: "The path has other methods; `Allow` names them.",
    409: "Another run is at work on the thread, or the same key or runId was used for something else.",
    410: "The events behind this cursor are gone: compacted, or removed when their time was over.",
    413: "The body is larger than `max_body_mib`, or an upload than `max_upload_mib`.",
    415: "The body is not sent as application/json (an upload: as the file itself), or is compressed.",
    429: "As many messages wait for the thread as may; try again when one of them was answered.",
    416: "No byte of this range is there.",
    422: "Something in the request does not have the shape described here; `details.path` says where.",
    503: "The store does not answer, or the server is shutting down; try again in a moment.",
}

_OF_A_BODY: Final = (400, 413, 415, 422)


def openapi(agent_path: str) -> JsonObject:
    """The whole document. `agent_path` is the route of named agents, as `create_app` was given it."""
    agents = plain(agent_path)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agui-bridge",
            "version": __version__,
            "description": "Agents behind AG-UI, and the sessions and runs that they leave. Every refusal before a "
            "stream starts is `{code, message, details}`; docs/http.md lists the codes. What belongs to somebody else "
            "is answered as if it did not exist.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/": {"post": _RUN_FIRST},
            "/connect": {"post": _CONNECT_FIRST},
            agents: _under(_AGENT, post=_RUN_NAMED),
            f"{agents.rstrip('/')}/connect": _under(_AGENT, post=_CONNECT_NAMED),
            f"{agents.rstrip('/')}/capabilities": _under(_AGENT, get=_CAPABILITIES_NAMED),
            **_PATHS,
        },
        "components": {"schemas": SCHEMAS},
    }


def plain(path: str) -> str:
    """A route's path without the converters of the web framework."""
    return _CONVERTER.sub(r"{\1}", path)


# --- pieces -------------------------------------------------------------------------------------------------------


def _operation(
    name: str,
    summary: str,
    answers: JsonObject,
    *refusals: int,
    body: str | None = None,
    parameters: tuple[JsonObject, ...] = (),
) -> JsonObject:
    known = [*refusals, *(_OF_A_BODY if body else ())]
    responses = answers | {str(status): _refusal(_REFUSALS[status]) for status in sorted({*known, 403, 503})}
    operation: JsonObject = {"operationId": name, "summary": summary}
    if parameters:
        operation["parameters"] = list(parameters)
    if body:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(body)}}}
    return operation | {"responses": responses}


def _json(status: int, description: str, schema: str, headers: JsonObject | None = None) -> JsonObject:
    answer: JsonObject = {"description": description, "content": {"application/json": {"schema": ref(schema)}}}
    return {str(status): answer | ({"headers": headers} if headers else {})}


def _refusal(description: str) -> JsonObject:
    return {"description": description, "content": {"application/json": {"schema": ref("Error")}}}


def _stream(description: str, headers: JsonObject | None = None) -> JsonObject:
    content: JsonObject = {SSE_MEDIA_TYPE: {"schema": ref("ServerSentEvent")}}
    return {"200": {"description": description, "content": content} | ({"headers": headers} if headers else {})}


def _parameter(name: str, where: str, schema: JsonObject, description: str, *, required: bool = False) -> JsonObject:
    return {"name": name, "in": where, "required": required, "schema": schema, "description": description}


def _under(parameter: JsonObject, **operations: JsonObject) -> JsonObject:
    return {"parameters": [parameter], **operations}


_AGENT: Final = _parameter("agent", "path", ID, "The agent's name; it may contain slashes.", required=True)
_RUN_ID: Final = _parameter("run_id", "path", ID, "The server's id of a run.", required=True)
_SESSION_ID: Final = _parameter("session_id", "path", ID, "A session's id: AG-UI's threadId.", required=True)
_LIMIT: Final = _parameter(
    "limit",
    "query",
    {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL},
    "How many entries the page has at most.",
)
_CURSOR: Final = _parameter("cursor", "query", {"type": "string"}, "The `next_cursor` of the page before.")
_KEY: Final = _parameter(
    "Idempotency-Key",
    "header",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": r"^[\x21-\x7e]+$"},
    "Chosen anew for each message, by its sender alone. The same key with the same request gets the same answer again, "
    "whatever has become of its run; with another request 409 `idempotency_conflict`.",
    required=True,
)
_FILE: Final[JsonObject] = {"type": "string", "minLength": 1}
_NAME: Final = _parameter("name", "query", TEXT, "The file's name.")
_SEQ: Final[JsonObject] = {"type": "integer", "minimum": 0, "maximum": 2**53}
_EVENTS: Final = (
    _parameter("after_seq", "query", _SEQ, "The cursor: everything up to it was seen."),
    _parameter("Last-Event-ID", "header", _SEQ, "The same, as an EventSource says it. The larger one counts."),
    _parameter(
        "format",
        "query",
        {"type": "string", "enum": ["canonical", "agui"], "default": "canonical"},
        "The journal's own events, or those of AG-UI.",
    ),
    _parameter(
        "full",
        "query",
        {"type": "string", "enum": ["0", "1"], "default": "0"},
        "With 1 and `canonical` the whole envelope, for operators.",
    ),
)
_FILTER: Final = (
    _parameter("session_id", "query", ID, "Runs of this session alone."),
    _parameter("status", "query", {"type": "array", "items": STATUS}, "Runs with one of these statuses."),
)
_ARTIFACT_ID: Final = _parameter("artifact_id", "path", ID, "An artifact's id.", required=True)
_LINK: Final = (
    _parameter("expires", "query", {"type": "string"}, "Of a link: until when it is good."),
    _parameter(
        "signature", "query", {"type": "string"}, "Of a link: what makes it good. Nobody is asked who they are."
    ),
    _parameter("Range", "header", {"type": "string"}, "Which bytes are wanted, `bytes=0-99`."),
)
_PURGE: Final = _parameter(
    "purge",
    "query",
    {"type": "string", "enum": ["0", "1"], "default": "0"},
    "With 1 nothing is left of it, not of one that was deleted before either; the answer is a receipt.",
)
_WAIT: Final = _parameter(
    "wait",
    "query",
    {"type": "number", "minimum": 0, "maximum": 60, "multipleOf": 0.001},
    "How many seconds the answer may wait for the end.",
)

_TEXT_HEADER: Final[JsonObject] = {"schema": {"type": "string"}}
_RUN_HEADERS: Final[JsonObject] = {"X-Run-Id": _TEXT_HEADER, "Location": _TEXT_HEADER}
_LOCATION: Final[JsonObject] = {"Location": _TEXT_HEADER}


def _agui(name: str, summary: str) -> JsonObject:
    stream = _stream("The run as events of AG-UI 1.0, server-sent or in the form that `Accept` names.", _RUN_HEADERS)
    stream["200"]["content"][PROTO_MEDIA_TYPE] = {"schema": {"type": "string", "format": "binary"}}
    return _operation(name, summary, stream, 404, 409, 429, body="RunAgentInput")


_RUN_FIRST: Final = _agui("run_first_agent", "Runs the first agent. The answer is a stream of server-sent events.")
_RUN_NAMED: Final = _agui(
    "run_agent", "The same for a named agent. Names may contain slashes. `create_app(…, agent_path=…)` moves the route."
)
_CONNECT_FIRST: Final = _agui(
    "connect_first_agent",
    "For a page that comes back: tells it where its thread stands, and follows a run that is at work.",
)
_CONNECT_NAMED: Final = _agui("connect_agent", "The same for a named agent.")

_CAPABLE: Final = _json(200, "The capabilities.", "AgentCapabilities")
_CAPABILITIES_NAMED: Final = _operation(
    "get_capabilities", "What a named agent can do, as AG-UI's AgentCapabilities.", _CAPABLE, 404
)

_PATHS: Final[JsonObject] = {
    "/agents": {
        "get": _operation(
            "list_agents",
            "The agents that are served, and where. The first one is also at `/`.",
            _json(200, "All of them.", "Agents"),
        )
    },
    "/capabilities": {"get": _operation("get_first_capabilities", "What the first agent can do.", _CAPABLE)},
    "/api/sessions": {
        "get": _operation(
            "list_sessions",
            "Your sessions, the newest first by their time of creation.",
            _json(200, "A page.", "SessionPage"),
            422,
            parameters=(_LIMIT, _CURSOR),
        ),
        "post": _operation(
            "create_session",
            "A new session with nothing in it. Without an agent the first one is its own.",
            _json(201, "The session.", "Session", _LOCATION),
            404,
            body="NewSession",
        ),
    },
    "/api/sessions/{session_id}": _under(
        _SESSION_ID,
        get=_operation("get_session", "A session.", _json(200, "The session.", "Session"), 404),
        patch=_operation(
            "change_session",
            "Another title, or another default agent. What is absent stays; a title of null is taken away.",
            _json(200, "The session as it is now.", "Session"),
            404,
            body="SessionChange",
        ),
        delete=_operation(
            "delete_session",
            "Hide a session and cancel what is at work in it. From then on it is as if it had never been.",
            {"204": {"description": "It is gone."}} | _json(200, "What was erased.", "Receipt"),
            404,
            409,
            422,
            parameters=(_PURGE,),
        ),
    ),
    "/api/sessions/{session_id}/messages": _under(
        _SESSION_ID,
        get=_operation(
            "list_messages",
            "What was said, oldest first: the last page, and behind its cursor the pages before it.",
            _json(200, "A page.", "MessagePage"),
            404,
            422,
            parameters=(_LIMIT, _CURSOR),
        ),
        post=_operation(
            "send_message",
            "Say something. The run that answers goes on whether anybody reads it or not.",
            _json(202, "The message was taken in, and its run has begun.", "Taken", _LOCATION),
            404,
            409,
            429,
            body="NewMessage",
            parameters=(_KEY,),
        ),
    ),
    "/api/agent-runs": {
        "get": _operation(
            "list_runs",
            "Your runs, the newest first by their time of creation.",
            _json(200, "A page.", "RunPage"),
            422,
            parameters=(*_FILTER, _LIMIT, _CURSOR),
        )
    },
    "/api/agent-runs/{run_id}": _under(
        _RUN_ID, get=_operation("get_run", "A run's record.", _json(200, "The run.", "Run"), 404)
    ),
    "/api/agent-runs/{run_id}/events": _under(
        _RUN_ID,
        get=_operation(
            "follow_run",
            "A run's events behind a cursor, then live. Closed behind the terminal event.",
            _stream("Server-sent events.") | {"204": {"description": "The run is over, and everything was seen."}},
            404,
            410,
            422,
            parameters=_EVENTS,
        ),
    ),
    "/api/interrupts": {
        "get": _operation(
            "list_interrupts",
            "What is asked of you, the newest first: by your own runs, and by those of others whose tools let you "
            "answer.",
            _json(200, "A page.", "InterruptPage"),
            422,
            parameters=(_LIMIT, _CURSOR),
        )
    },
    "/api/interrupts/{interrupt_id}/answer": _under(
        _parameter("interrupt_id", "path", ID, "The id of an interrupt.", required=True),
        post=_operation(
            "answer_interrupt",
            "Answer what is asked. The run that goes on with it goes on whether anybody reads it or not; the same "
            "answer again gives the same run.",
            _json(202, "The answer was taken in.", "AnswerTaken", _LOCATION),
            403,
            404,
            409,
            body="InterruptAnswer",
        ),
    ),
    "/api/artifacts/{artifact_id}": _under(
        _ARTIFACT_ID,
        get=_operation(
            "get_artifact",
            "What a tool made or a user gave: for its owner, or by a link that a page was told.",
            {
                "200": {"description": "All of it.", "content": {"*/*": {}}},
                "206": {"description": "A range of it.", "content": {"*/*": {}}},
                "304": {"description": "What the client has is all of it."},
            },
            404,
            416,
            parameters=_LINK,
        ),
    ),
    "/api/uploads": {
        "post": _operation(
            "upload",
            "Give a file to be used in messages; the body is the file itself, with its own content type. `part` of the "
            "answer is the content part that refers to it.",
            _json(201, "It is kept.", "Upload", _LOCATION),
            413,
            415,
            422,
            parameters=(_NAME,),
        )
        | {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": _FILE}}}},
    },
    "/api/agent-runs/{run_id}/tree": _under(
        _RUN_ID, get=_operation("get_tree", "The run and all below it.", _json(200, "The run.", "RunNode"), 404)
    ),
    "/api/agent-runs/{run_id}/rounds": _under(
        _RUN_ID,
        get=_operation(
            "list_rounds",
            "What was asked and answered, round by round. For operators.",
            _json(200, "The rounds.", "Rounds"),
            404,
        ),
    ),
    "/api/agent-runs/{run_id}/cancel": _under(
        _RUN_ID,
        post=_operation(
            "cancel_run",
            "Stop a run. A run that is over stays as it is.",
            _json(200, "The run is over.", "Run") | _json(202, "The run was asked to stop.", "Run"),
            404,
            422,
            parameters=(_WAIT,),
        ),
    ),
    "/health": {
        "get": {
            "operationId": "health",
            "summary": "200 while the process answers.",
            "responses": _json(200, "The process is alive.", "Health"),
        }
    },
    "/ready": {
        "get": {
            "operationId": "ready",
            "summary": "200 when it takes new runs; 503 while it drains or its store does not answer.",
            "responses": _json(200, "It takes new runs.", "Readiness")
            | _json(503, "It is draining, or its store does not answer.", "Readiness"),
        }
    },
    "/openapi.json": {
        "get": {
            "operationId": "describe",
            "summary": "This API as OpenAPI 3.1.",
            "responses": {
                "200": {
                    "description": "This document.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                }
            },
        }
    },
}
