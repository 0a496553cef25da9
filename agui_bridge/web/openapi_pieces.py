"""The pieces of which the API's description is made. Pure data."""

from __future__ import annotations

from typing import Final

from agui_bridge.web.openapi_schemas import ID, ref
from agui_bridge.web.paging import MOST, USUAL
from agui_bridge.wire import PROTO_MEDIA_TYPE, SSE_MEDIA_TYPE
from runtime.canonical import JsonObject

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


def operation(
    name: str,
    summary: str,
    answers: JsonObject,
    *refusals: int,
    body: str | None = None,
    parameters: tuple[JsonObject, ...] = (),
) -> JsonObject:
    """An operation with these answers and refusals; one with a body also refuses bodies that are none."""
    known = [*refusals, *(_OF_A_BODY if body else ())]
    responses = answers | {str(status): _refusal(_REFUSALS[status]) for status in sorted({*known, 403, 503})}
    made: JsonObject = {"operationId": name, "summary": summary}
    if parameters:
        made["parameters"] = list(parameters)
    if body:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(body)}}}
    return made | {"responses": responses}


def json_answer(status: int, description: str, schema: str, headers: JsonObject | None = None) -> JsonObject:
    """An answer in JSON, of a schema."""
    answer: JsonObject = {"description": description, "content": {"application/json": {"schema": ref(schema)}}}
    return {str(status): answer | ({"headers": headers} if headers else {})}


def _refusal(description: str) -> JsonObject:
    return {"description": description, "content": {"application/json": {"schema": ref("Error")}}}


def stream(description: str, headers: JsonObject | None = None) -> JsonObject:
    """An answer of server-sent events."""
    content: JsonObject = {SSE_MEDIA_TYPE: {"schema": ref("ServerSentEvent")}}
    return {"200": {"description": description, "content": content} | ({"headers": headers} if headers else {})}


def parameter(name: str, where: str, schema: JsonObject, description: str, *, required: bool = False) -> JsonObject:
    """A parameter in the path, the query or a header."""
    return {"name": name, "in": where, "required": required, "schema": schema, "description": description}


def under(*parameters: JsonObject, **operations: JsonObject) -> JsonObject:
    """A path with these parameters, and what its methods do."""
    return {"parameters": [*parameters], **operations}


AGENT_NAME: Final = parameter("agent", "path", ID, "The agent's name; it may contain slashes.", required=True)
LIMIT: Final = parameter(
    "limit",
    "query",
    {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL},
    "How many entries the page has at most.",
)
CURSOR: Final = parameter("cursor", "query", {"type": "string"}, "The `next_cursor` of the page before.")

_TEXT_HEADER: Final[JsonObject] = {"schema": {"type": "string"}}
RUN_HEADERS: Final[JsonObject] = {"X-Run-Id": _TEXT_HEADER, "Location": _TEXT_HEADER}
LOCATION: Final[JsonObject] = {"Location": _TEXT_HEADER}


def agui(name: str, summary: str) -> JsonObject:
    """A run that is asked for with a RunAgentInput."""
    answer = stream("The run as events of AG-UI 1.0, server-sent or in the form that `Accept` names.", RUN_HEADERS)
    answer["200"]["content"][PROTO_MEDIA_TYPE] = {"schema": {"type": "string", "format": "binary"}}
    return operation(name, summary, answer, 404, 409, 429, body="RunAgentInput")
