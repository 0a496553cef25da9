"""The API's description, OpenAPI 3.1: what `/openapi.json` and docs/openapi.yaml say. Pure data.

It is written once, here. A test holds it against the routes of the app, and another asks a real server whether it
answers as is said here.
"""

from __future__ import annotations

import re
from typing import Final

from agui_bridge._version import __version__
from agui_bridge.native_intake import MAX_KEY
from agui_bridge.settings import COPILOTKIT_PREFIX
from agui_bridge.web.copilotkit_openapi import COPILOTKIT
from agui_bridge.web.openapi_pieces import (
    AGENT_NAME,
    CURSOR,
    LIMIT,
    LOCATION,
    agui,
    json_answer,
    operation,
    parameter,
    stream,
    under,
)
from agui_bridge.web.openapi_schemas import ID, SCHEMAS, STATUS, TEXT
from runtime.canonical import JsonObject

_CONVERTER: Final = re.compile(r"\{(\w+):\w+\}")


def openapi(agent_path: str, copilotkit_prefix: str = COPILOTKIT_PREFIX) -> JsonObject:
    """The whole document. `agent_path` is the route of named agents, as `create_app` was given it; below
    `copilotkit_prefix` are the routes of CopilotKit's protocol, if it is not empty."""
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
            agents: under(AGENT_NAME, post=_RUN_NAMED),
            f"{agents.rstrip('/')}/connect": under(AGENT_NAME, post=_CONNECT_NAMED),
            f"{agents.rstrip('/')}/capabilities": under(AGENT_NAME, get=_CAPABILITIES_NAMED),
            **_PATHS,
            **(_below(copilotkit_prefix, COPILOTKIT) if copilotkit_prefix else {}),
        },
        "components": {"schemas": SCHEMAS},
    }


def _below(prefix: str, paths: JsonObject) -> JsonObject:
    return {prefix + path: operations for path, operations in paths.items()}


def plain(path: str) -> str:
    """A route's path without the converters of the web framework."""
    return _CONVERTER.sub(r"{\1}", path)


# --- pieces -----------------------------------------------------------------------------------------------------------

_RUN_ID: Final = parameter("run_id", "path", ID, "The server's id of a run.", required=True)
_SESSION_ID: Final = parameter("session_id", "path", ID, "A session's id: AG-UI's threadId.", required=True)
_KEY: Final = parameter(
    "Idempotency-Key",
    "header",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": r"^[\x21-\x7e]+$"},
    "Chosen anew for each message, by its sender alone. The same key with the same request gets the same answer again, "
    "whatever has become of its run; with another request 409 `idempotency_conflict`.",
    required=True,
)
_FILE: Final[JsonObject] = {"type": "string", "minLength": 1}
_NAME: Final = parameter("name", "query", TEXT, "The file's name.")
_SEQ: Final[JsonObject] = {"type": "integer", "minimum": 0, "maximum": 2**53}
_EVENTS: Final = (
    parameter("after_seq", "query", _SEQ, "The cursor: everything up to it was seen."),
    parameter("Last-Event-ID", "header", _SEQ, "The same, as an EventSource says it. The larger one counts."),
    parameter(
        "format",
        "query",
        {"type": "string", "enum": ["canonical", "agui"], "default": "canonical"},
        "The journal's own events, or those of AG-UI.",
    ),
    parameter(
        "full",
        "query",
        {"type": "string", "enum": ["0", "1"], "default": "0"},
        "With 1 and `canonical` the whole envelope, for operators.",
    ),
)
_FILTER: Final = (
    parameter("session_id", "query", ID, "Runs of this session alone."),
    parameter("status", "query", {"type": "array", "items": STATUS}, "Runs with one of these statuses."),
)
_ARTIFACT_ID: Final = parameter("artifact_id", "path", ID, "An artifact's id.", required=True)
_LINK: Final = (
    parameter("expires", "query", {"type": "string"}, "Of a link: until when it is good."),
    parameter("signature", "query", {"type": "string"}, "Of a link: what makes it good. Nobody is asked who they are."),
    parameter("Range", "header", {"type": "string"}, "Which bytes are wanted, `bytes=0-99`."),
)
_PURGE: Final = parameter(
    "purge",
    "query",
    {"type": "string", "enum": ["0", "1"], "default": "0"},
    "With 1 nothing is left of it, not of one that was deleted before either; the answer is a receipt.",
)
_WAIT: Final = parameter(
    "wait",
    "query",
    {"type": "number", "minimum": 0, "maximum": 60, "multipleOf": 0.001},
    "How many seconds the answer may wait for the end.",
)

_RUN_FIRST: Final = agui("run_first_agent", "Runs the first agent. The answer is a stream of server-sent events.")
_RUN_NAMED: Final = agui(
    "run_agent", "The same for a named agent. Names may contain slashes. `create_app(…, agent_path=…)` moves the route."
)
_CONNECT_FIRST: Final = agui(
    "connect_first_agent",
    "For a page that comes back: tells it where its thread stands, and follows a run that is at work.",
)
_CONNECT_NAMED: Final = agui("connect_agent", "The same for a named agent.")

_CAPABLE: Final = json_answer(200, "The capabilities.", "AgentCapabilities")
_CAPABILITIES_NAMED: Final = operation(
    "get_capabilities", "What a named agent can do, as AG-UI's AgentCapabilities.", _CAPABLE, 404
)

_PATHS: Final[JsonObject] = {
    "/agents": {
        "get": operation(
            "list_agents",
            "The agents that are served, and where. The first one is also at `/`.",
            json_answer(200, "All of them.", "Agents"),
        )
    },
    "/capabilities": {"get": operation("get_first_capabilities", "What the first agent can do.", _CAPABLE)},
    "/api/sessions": {
        "get": operation(
            "list_sessions",
            "Your sessions, the newest first by their time of creation.",
            json_answer(200, "A page.", "SessionPage"),
            422,
            parameters=(LIMIT, CURSOR),
        ),
        "post": operation(
            "create_session",
            "A new session with nothing in it. Without an agent the first one is its own.",
            json_answer(201, "The session.", "Session", LOCATION),
            404,
            body="NewSession",
        ),
    },
    "/api/sessions/{session_id}": under(
        _SESSION_ID,
        get=operation("get_session", "A session.", json_answer(200, "The session.", "Session"), 404),
        patch=operation(
            "change_session",
            "Another title, or another default agent. What is absent stays; a title of null is taken away.",
            json_answer(200, "The session as it is now.", "Session"),
            404,
            body="SessionChange",
        ),
        delete=operation(
            "delete_session",
            "Hide a session and cancel what is at work in it. From then on it is as if it had never been.",
            {"204": {"description": "It is gone."}} | json_answer(200, "What was erased.", "Receipt"),
            404,
            409,
            422,
            parameters=(_PURGE,),
        ),
    ),
    "/api/sessions/{session_id}/messages": under(
        _SESSION_ID,
        get=operation(
            "list_messages",
            "What was said, oldest first: the last page, and behind its cursor the pages before it.",
            json_answer(200, "A page.", "MessagePage"),
            404,
            422,
            parameters=(LIMIT, CURSOR),
        ),
        post=operation(
            "send_message",
            "Say something. The run that answers goes on whether anybody reads it or not.",
            json_answer(202, "The message was taken in, and its run has begun.", "Taken", LOCATION),
            404,
            409,
            429,
            body="NewMessage",
            parameters=(_KEY,),
        ),
    ),
    "/api/agent-runs": {
        "get": operation(
            "list_runs",
            "Your runs, the newest first by their time of creation.",
            json_answer(200, "A page.", "RunPage"),
            422,
            parameters=(*_FILTER, LIMIT, CURSOR),
        )
    },
    "/api/agent-runs/{run_id}": under(
        _RUN_ID, get=operation("get_run", "A run's record.", json_answer(200, "The run.", "Run"), 404)
    ),
    "/api/agent-runs/{run_id}/events": under(
        _RUN_ID,
        get=operation(
            "follow_run",
            "A run's events behind a cursor, then live. Closed behind the terminal event.",
            stream("Server-sent events.") | {"204": {"description": "The run is over, and everything was seen."}},
            404,
            410,
            422,
            parameters=_EVENTS,
        ),
    ),
    "/api/interrupts": {
        "get": operation(
            "list_interrupts",
            "What is asked of you, the newest first: by your own runs, and by those of others whose tools let you "
            "answer.",
            json_answer(200, "A page.", "InterruptPage"),
            422,
            parameters=(LIMIT, CURSOR),
        )
    },
    "/api/interrupts/{interrupt_id}/answer": under(
        parameter("interrupt_id", "path", ID, "The id of an interrupt.", required=True),
        post=operation(
            "answer_interrupt",
            "Answer what is asked. The run that goes on with it goes on whether anybody reads it or not; the same "
            "answer again gives the same run.",
            json_answer(202, "The answer was taken in.", "AnswerTaken", LOCATION),
            403,
            404,
            409,
            body="InterruptAnswer",
        ),
    ),
    "/api/artifacts/{artifact_id}": under(
        _ARTIFACT_ID,
        get=operation(
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
        "post": operation(
            "upload",
            "Give a file to be used in messages; the body is the file itself, with its own content type. `part` of the "
            "answer is the content part that refers to it.",
            json_answer(201, "It is kept.", "Upload", LOCATION),
            413,
            415,
            422,
            parameters=(_NAME,),
        )
        | {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": _FILE}}}},
    },
    "/api/agent-runs/{run_id}/tree": under(
        _RUN_ID, get=operation("get_tree", "The run and all below it.", json_answer(200, "The run.", "RunNode"), 404)
    ),
    "/api/agent-runs/{run_id}/rounds": under(
        _RUN_ID,
        get=operation(
            "list_rounds",
            "What was asked and answered, round by round. For operators.",
            json_answer(200, "The rounds.", "Rounds"),
            404,
        ),
    ),
    "/api/agent-runs/{run_id}/cancel": under(
        _RUN_ID,
        post=operation(
            "cancel_run",
            "Stop a run. A run that is over stays as it is.",
            json_answer(200, "The run is over.", "Run") | json_answer(202, "The run was asked to stop.", "Run"),
            404,
            422,
            parameters=(_WAIT,),
        ),
    ),
    "/health": {
        "get": {
            "operationId": "health",
            "summary": "200 while the process answers.",
            "responses": json_answer(200, "The process is alive.", "Health"),
        }
    },
    "/ready": {
        "get": {
            "operationId": "ready",
            "summary": "200 when it takes new runs; 503 while it drains or its store does not answer.",
            "responses": json_answer(200, "It takes new runs.", "Readiness")
            | json_answer(503, "It is draining, or its store does not answer.", "Readiness"),
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
