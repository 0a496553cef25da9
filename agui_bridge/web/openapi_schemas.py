"""The schemas of the API's description: what requests hold and what answers say. Pure data.

RunAgentInput is made from the tables by which it is checked (`shapes`), so that the two cannot differ.
"""

from __future__ import annotations

from typing import Final

from agui_bridge import shapes
from agui_bridge.native_intake import BUSY_POLICIES, MAX_TITLE
from agui_bridge.shapes import Shape
from runtime.canonical import JsonObject
from runtime.run import TRANSITIONS


def ref(name: str) -> JsonObject:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: JsonObject, *optional: str, closed: bool = True) -> JsonObject:
    """An object; every member is required but those named."""
    required = [name for name in properties if name not in optional]
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema | ({"additionalProperties": False} if closed else {})


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


def _or_null(schema: JsonObject) -> JsonObject:
    return {"anyOf": [schema, {"type": "null"}]}


TEXT: Final[JsonObject] = {"type": "string"}
COUNT: Final[JsonObject] = {"type": "integer", "minimum": 0}
YES_NO: Final[JsonObject] = {"type": "boolean"}
TIME: Final[JsonObject] = {"type": "string", "format": "date-time"}
ANYTHING: Final[JsonObject] = {}
OPAQUE: Final[JsonObject] = {"type": ["object", "array", "string", "number", "boolean"]}
ANY_OBJECT: Final[JsonObject] = {"type": "object"}
ID: Final[JsonObject] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 256,
    "pattern": r"^[^\x00-\x1f\x7f-\x9f]+$",
}
TITLE: Final[JsonObject] = {
    "type": ["string", "null"],
    "maxLength": MAX_TITLE,
    "pattern": r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
    r"[^\x00-\x1f\x7f-\x9f]*$",
    "description": f"One line of 1 to {MAX_TITLE} characters, not only spaces.",
}
STATUS: Final[JsonObject] = {"type": "string", "enum": list(TRANSITIONS)}
AGENT: Final[JsonObject] = ID | {"description": "The id of an agent that this server has."}
CURSOR: Final[JsonObject] = {
    "type": ["string", "null"],
    "description": "Give it back as `cursor` for the next page; null on the last one. What is in it may change.",
}

_KINDS: Final[dict[str, JsonObject]] = {
    "tag": TEXT,
    "text": TEXT,
    "id": ID,
    "object": ANY_OBJECT,
    "opaque": OPAQUE,
    "count": COUNT,
    "status": {"type": "string", "enum": ["resolved", "cancelled"]},
    "function_type": {"type": "string", "enum": ["function"]},
    "content": ref("Content"),
    "source": ref("Source"),
    "function": ref("Function"),
    "tool_calls": _list(ref("ToolCall")),
    "messages": _list(ref("Message")),
    "tools": _list(ref("Tool")),
    "context": _list(ref("Context")),
    "resume": _list(ref("ResumeEntry")),
}

_CLOSED: Final = _KINDS | {"source": ref("NewSource")}


def _of_shape(shape: Shape, *, closed: bool = False, **tags: str) -> JsonObject:
    """The schema of an object of AG-UI; `tags` fix members that say which object it is."""
    properties: JsonObject = {}
    for member in shape:
        kind = ANYTHING if member.null_is_absent else (_CLOSED if closed else _KINDS)[member.kind]
        properties[member.name] = {"type": "string", "enum": [tags[member.name]]} if member.name in tags else kind
    return _object(properties, *(member.name for member in shape if not member.required), closed=closed)


def _one_of(table: dict[str, Shape], tag: str, *, closed: bool = False) -> JsonObject:
    known = [_of_shape(shape, closed=closed, **{tag: name}) for name, shape in table.items()]
    if closed:
        return {"anyOf": known}
    another = _object({tag: {"type": "string", "not": {"enum": list(table)}}}, closed=False)
    return {"anyOf": [*known, another | {"description": f"Another {tag}: left out, with a warning in the log."}]}


_RUN: Final = _object(
    {
        "run_id": TEXT,
        "client_run_id": TEXT,
        "thread_id": TEXT,
        "session_id": _or_null(TEXT),
        "owner_id": TEXT,
        "agent_id": TEXT,
        "status": STATUS,
        "last_event_seq": COUNT,
        "executor_instance_id": _or_null(TEXT),
        "lease_expires_at": _or_null(TIME),
        "final_message_id": _or_null(TEXT),
        "error": _or_null(ref("RunError")),
        "root_run_id": TEXT,
        "parent_run_id": _or_null(TEXT),
        "agent_snapshot_checksum": _or_null(TEXT),
        "context_snapshot_checksum": _or_null(TEXT),
        "trace_id": _or_null(TEXT),
        "usage": _or_null(_list(ANY_OBJECT)),
        "created_at": TIME,
        "started_at": _or_null(TIME),
        "finished_at": _or_null(TIME),
    }
)

_NODE: Final = _object(
    {
        "run_id": TEXT,
        "parent_run_id": _or_null(TEXT),
        "agent_id": TEXT,
        "agent_name": TEXT,
        "status": STATUS,
        "last_event_seq": COUNT,
        "events_url": TEXT,
        "cancel_url": TEXT,
        "children": _list(ref("RunNode")),
    }
)

_ROUND: Final = _object(
    {
        "round": COUNT,
        "model": TEXT,
        "provider": TEXT,
        "request": _object({"digest": TEXT, "items": COUNT}, closed=False)
        | {"description": "The request as sent, by the digest of its canonical JSON, and how many items it held."},
        "asked": _list(ANY_OBJECT) | {"description": "What the history held behind the model's own last word."},
        "answered": _or_null(
            _object(
                {
                    "committed": YES_NO,
                    "runtime_role": _or_null(TEXT),
                    "finish": _or_null(TEXT),
                    "usage": _or_null(ANY_OBJECT),
                    "attempts": _or_null(COUNT),
                    "provider_response_id": _or_null(TEXT),
                    "provider_phase": _or_null(TEXT),
                    "parts": _list(ref("Part")),
                    "tool_calls": _list(ANY_OBJECT),
                }
            )
        ),
    }
)

_PART: Final = _object(
    {
        "kind": TEXT,
        "part_id": TEXT,
        "round": COUNT,
        "committed": YES_NO,
        "text": TEXT,
        "tool_call_id": _or_null(TEXT),
        "tool_name": TEXT,
        "arguments_json": TEXT,
    },
    *("part_id", "round", "committed", "text", "tool_call_id", "tool_name", "arguments_json"),
)

_SHOWN_MESSAGE: Final = _object(
    {
        "message_id": TEXT,
        "role": {"type": "string", "enum": ["user", "assistant", "tool", "system", "developer", "reasoning"]},
        "run_id": TEXT,
        "agent_id": TEXT,
        "agent_name": TEXT,
        "content": ref("ShownContent"),
        "model_visible": YES_NO,
        "parts": _list(ref("Part")),
        "tool_call_id": TEXT,
        "tool_name": TEXT,
        "is_error": YES_NO,
        "kind": _or_null(TEXT),
    },
    *("parts", "tool_call_id", "tool_name", "is_error", "kind"),
)

_AGENT: Final = _object(
    {
        "agent_id": TEXT,
        "agent_name": TEXT,
        "description": TEXT,
        "run_url": TEXT,
        "connect_url": TEXT,
        "capabilities_url": TEXT,
        "state_schema": _or_null(ANY_OBJECT),
    }
)


def _known(properties: JsonObject) -> JsonObject:
    """An object that lacks what is not known."""
    return _object(properties, *properties)


def _flags(*names: str) -> JsonObject:
    return dict.fromkeys(names, YES_NO)


_ITEM: Final = _object({"name": TEXT, "description": TEXT, "parameters": ANY_OBJECT})
_SUBAGENT: Final = _object({"name": TEXT, "description": TEXT}, "description")
_CAPABILITIES: Final = _known(
    {
        "identity": _known({"name": TEXT, "type": TEXT, "description": TEXT}),
        "transport": _known(_flags("streaming", "websocket", "httpBinary", "pushNotifications", "resumable")),
        "tools": _known(_flags("supported", "parallelCalls", "clientProvided") | {"items": _list(_ITEM)}),
        "output": _known(_flags("structuredOutput")),
        "state": _known(_flags("snapshots", "deltas", "persistentState")),
        "multiAgent": _known(_flags("supported", "delegation", "handoffs") | {"subagents": _list(_SUBAGENT)}),
        "multimodal": _known({"input": _known(_flags("image", "audio", "video", "pdf", "file"))}),
        "reasoning": _known(_flags("supported", "streaming")),
        "execution": _known({"maxIterations": COUNT}),
        "humanInTheLoop": _known(
            _flags("supported", "approvals", "interventions", "interrupts", "approveWithEdits"),
        ),
    }
) | {"description": "True is what holds, false what cannot be; what is not known is left out."}

_THREAD_ENDPOINTS: Final = _object(_flags("list", "inspect", "mutations", "realtimeMetadata"))
_THREAD: Final = _object(
    {
        "id": TEXT,
        "name": _or_null(TEXT),
        "agentId": TEXT,
        "organizationId": TEXT,
        "createdById": TEXT,
        "archived": YES_NO,
        "createdAt": TIME,
        "updatedAt": TIME,
        "lastRunAt": TIME,
    },
    "lastRunAt",
)

SCHEMAS: Final[JsonObject] = {
    "Agents": _object({"agents": _list(_AGENT)}),
    "AgentCapabilities": _CAPABILITIES,
    "Error": _object({"code": TEXT, "message": TEXT, "details": ANY_OBJECT}),
    "Session": _object(
        {
            "session_id": TEXT,
            "title": {"type": ["string", "null"]},
            "default_title": _or_null(TEXT) | {"description": "The first words that were said in it."},
            "agent_id": TEXT,
            "owner_id": TEXT,
            "thread_id": TEXT,
            "created_at": TIME,
            "archived_at": _or_null(TIME),
        }
    ),
    "Interrupt": _object(
        {
            "interrupt_id": TEXT,
            "run_id": TEXT,
            "root_run_id": TEXT,
            "session_id": _or_null(TEXT),
            "owner_id": TEXT,
            "agent_id": TEXT,
            "agent_name": TEXT,
            "tool_call_id": _or_null(TEXT),
            "tool_name": _or_null(TEXT),
            "reason": TEXT,
            "message": _or_null(TEXT),
            "response_schema": _or_null(ANY_OBJECT),
            "metadata": _or_null(ANY_OBJECT),
            "raised_at": TIME,
            "expires_at": _or_null(TIME),
            "expired": {"type": "boolean"},
        }
    ),
    "InterruptPage": _object({"interrupts": _list(ref("Interrupt")), "next_cursor": CURSOR}),
    "InterruptAnswer": _object(
        {
            "status": {"type": "string", "enum": ["resolved", "cancelled"]},
            "payload": {"description": "What is answered; it fits the interrupt's `response_schema`."},
        },
        "payload",
    ),
    "AnswerTaken": _object({"interrupt_id": TEXT, "run_id": TEXT, "events_url": TEXT}),
    "Upload": _object(
        {
            "upload_id": TEXT,
            "name": TEXT,
            "media_type": TEXT,
            "size": COUNT,
            "digest": TEXT,
            "url": TEXT,
            "part": _one_of({kind: shapes.PARTS[kind] for kind in ("image", "audio", "video", "document")}, "type"),
        }
    ),
    "Receipt": _object({"database": {"type": "object", "additionalProperties": COUNT}, "artifact_files": COUNT}),
    "SessionPage": _object({"sessions": _list(ref("Session")), "next_cursor": CURSOR}),
    "NewSession": _object({"title": TITLE, "agent_id": _or_null(AGENT)}, "title", "agent_id"),
    "SessionChange": _object({"title": TITLE, "agent_id": AGENT}, "title", "agent_id"),
    "NewMessage": _object(
        {
            "content": ref("NewContent"),
            "agent_id": _or_null(AGENT) | {"description": "Another agent for this message alone."},
            "busy": {
                "type": "string",
                "enum": list(BUSY_POLICIES),
                "description": "What becomes of the message while a run is at work: `reject` answers 409; else it "
                "waits, stops that run, or is taken in by it.",
            },
        },
        *("agent_id", "busy"),
    ),
    "Taken": _object({"message_id": TEXT, "run_id": TEXT, "events_url": TEXT, "agent_id": TEXT, "agent_name": TEXT}),
    "ShownMessage": _SHOWN_MESSAGE,
    "MessagePage": _object({"messages": _list(ref("ShownMessage")), "next_cursor": CURSOR}),
    "ShownContent": {"anyOf": [TEXT, _list(ANY_OBJECT)]},
    "Part": _PART,
    "Run": _RUN,
    "RunError": _object({"code": TEXT, "message": TEXT, "retryable": YES_NO}),
    "RunPage": _object({"runs": _list(ref("Run")), "next_cursor": CURSOR}),
    "RunNode": _NODE,
    "Rounds": _object({"run_id": TEXT, "agent": {}, "context": {}, "rounds": _list(_ROUND)}),
    "ServerSentEvent": _object({"id": TEXT, "event": TEXT, "data": TEXT}, "id", "event")
    | {"description": "One event of the stream; `data` is a JSON document."},
    "Health": _object({"status": {"type": "string", "enum": ["ok"]}}),
    "Readiness": _object({"status": TEXT, "message": TEXT}, "message"),
    "NewContent": {
        "anyOf": [TEXT | {"minLength": 1}, _list(_one_of(shapes.PARTS, "type", closed=True)) | {"minItems": 1}]
    },
    "CopilotKitInfo": _object(
        {
            "version": TEXT,
            "mode": {"type": "string", "enum": ["sse"]},
            "agents": {
                "type": "object",
                "additionalProperties": _object(
                    {
                        "name": TEXT,
                        "description": TEXT,
                        "className": TEXT,
                        "capabilities": ref("AgentCapabilities"),
                    }
                ),
            },
            "audioFileTranscriptionEnabled": YES_NO,
            "threadEndpoints": _THREAD_ENDPOINTS,
            "singleRoute": _object({"resourceOperations": YES_NO, "threadEndpoints": _THREAD_ENDPOINTS}),
            "suggestions": YES_NO,
            "a2uiEnabled": YES_NO,
            "openGenerativeUIEnabled": YES_NO,
            "telemetryDisabled": YES_NO,
        }
    ),
    "CopilotKitThread": _THREAD,
    "CopilotKitThreads": _object({"threads": _list(ref("CopilotKitThread")), "nextCursor": CURSOR}),
    "CopilotKitThreadChange": _object(
        {"agentId": TEXT, "name": TITLE, "archived": YES_NO}, "agentId", "name", "archived", closed=False
    ),
    "CopilotKitArchived": _object({"threadId": TEXT, "archived": YES_NO}),
    "CopilotKitDeleted": _object({"threadId": TEXT, "deleted": YES_NO}),
    "CopilotKitMessages": _object({"messages": _list(ANY_OBJECT)}),
    "CopilotKitEvents": _object({"events": _list(ANY_OBJECT)}),
    "CopilotKitState": _object({"state": ANYTHING}),
    "CopilotKitEnvelope": _object(
        {"method": TEXT, "params": ANY_OBJECT, "body": ANYTHING}, "params", "body", closed=False
    ),
    "CopilotKitStop": _object({"runId": ID}, "runId", closed=False),
    "CopilotKitStopped": _object({"stopped": YES_NO, "message": TEXT}, "message"),
    "RunAgentInput": _of_shape(shapes.RUN_INPUT),
    "Message": _one_of(shapes.MESSAGES, "role"),
    "Content": {"anyOf": [TEXT, _list(_one_of(shapes.PARTS, "type"))]},
    "Source": _one_of(shapes.SOURCES, "type"),
    "NewSource": _one_of(shapes.SOURCES, "type", closed=True),
    "Function": _of_shape(shapes.FUNCTION),
    "ToolCall": _of_shape(shapes.TOOL_CALL),
    "Tool": _of_shape(shapes.TOOL),
    "Context": _of_shape(shapes.CONTEXT),
    "ResumeEntry": _of_shape(shapes.RESUME_ENTRY),
}
"""Every schema, by its name."""
