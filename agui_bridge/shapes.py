"""The objects of AG-UI 1.0 as tables: which members each has, in the order in which the official models write them.

Pure data, and one function that puts an object into that order. It knows neither how a member is checked (`run_input`)
nor which events there are (`wire.events`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from runtime.canonical import Json, JsonObject

PROTOCOL_VERSION: Final = "1.0"
"""The version that this release speaks: what RUN_STARTED declares, never an echo of the client's."""


NO_ACTIVITY: Final = "agui-bridge.none"
"""The type of an activity that stands for none."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object. `kind` names its type (see `EXPECTED`); `null_is_absent` marks a retired null."""

    name: str
    kind: str
    required: bool = False
    null_is_absent: bool = False


Shape: TypeAlias = tuple[Member, ...]

EXPECTED: dict[str, str] = {
    "tag": "a string",
    "text": "a string",
    "id": "a string of 1 to 256 characters without control characters",
    "object": "an object",
    "opaque": "any JSON value except null",
    "count": "an integer from 0 to 2^53 - 1",
    "status": '"resolved" or "cancelled"',
    "function_type": '"function"',
    "content": "a string or a list of content parts",
    "source": "an object",
    "function": "an object",
    "tool_calls": "a list of tool calls",
    "messages": "a list of messages",
    "tools": "a list of tools",
    "context": "a list of context entries",
    "resume": "a list of resume entries",
}
"""What a member of each kind is, in words for people."""

_ATTRIBUTION = Member("subagentRunId", "text")
_ENCRYPTED = Member("encryptedValue", "text")
_METADATA = Member("metadata", "object")
_SPEAKER: Shape = (
    _ATTRIBUTION,
    Member("id", "id", required=True),
    Member("role", "tag", required=True),
    Member("name", "text"),
    _ENCRYPTED,
    _METADATA,
)
_RECORD: Shape = _SPEAKER[:3]
_TEXT_CONTENT = Member("content", "text", required=True)
_PARTS_CONTENT = Member("content", "content", required=True)

MESSAGES: dict[str, Shape] = {
    "developer": (*_SPEAKER, _TEXT_CONTENT),
    "system": (*_SPEAKER, _TEXT_CONTENT),
    "assistant": (*_SPEAKER, Member("content", "text"), Member("toolCalls", "tool_calls")),
    "user": (*_SPEAKER, _PARTS_CONTENT),
    "tool": (
        *_RECORD,
        _PARTS_CONTENT,
        Member("toolCallId", "id", required=True),
        Member("error", "text"),
        _ENCRYPTED,
        _METADATA,
    ),
    "activity": (
        *_RECORD,
        Member("activityType", "text", required=True),
        Member("content", "object", required=True),
        _METADATA,
    ),
    "reasoning": (*_RECORD, _TEXT_CONTENT, _ENCRYPTED, _METADATA),
}
"""Messages by `role`."""

_MEDIA: Shape = (
    Member("type", "tag", required=True),
    Member("id", "text"),
    Member("source", "source", required=True),
    Member("metadata", "opaque", null_is_absent=True),
)

PARTS: dict[str, Shape] = {
    "text": (
        Member("type", "tag", required=True),
        Member("id", "text"),
        Member("text", "text", required=True),
        Member("metadata", "opaque"),
    ),
    "image": _MEDIA,
    "audio": _MEDIA,
    "video": _MEDIA,
    "document": _MEDIA,
}
"""Content parts by `type`."""

_PLACE: Shape = (Member("type", "tag", required=True), Member("value", "text", required=True))

SOURCES: dict[str, Shape] = {
    "data": (*_PLACE, Member("mimeType", "text", required=True)),
    "url": (*_PLACE, Member("mimeType", "text")),
    "file": (*_PLACE, Member("provider", "text"), Member("mimeType", "text")),
}
"""Sources of media parts by `type`."""

KEPT: Shape = (
    Member("type", "tag", required=True),
    Member("id", "id", required=True),
    Member("digest", "text", required=True),
    Member("mimeType", "text", required=True),
    Member("size", "count", required=True),
)
"""The source of media whose bytes are kept: ours alone, taken from no client and told to none (see `links`)."""

FUNCTION: Shape = (Member("name", "text", required=True), Member("arguments", "text", required=True))

TOOL_CALL: Shape = (
    Member("id", "id", required=True),
    Member("type", "function_type"),
    Member("function", "function", required=True),
    _ENCRYPTED,
    _METADATA,
)
"""`type` is required by the schema; older clients leave it out, and it has only one value."""

TOOL: Shape = (
    Member("name", "text", required=True),
    Member("description", "text", required=True),
    Member("parameters", "opaque", null_is_absent=True),
    _METADATA,
)

CONTEXT: Shape = (Member("description", "text", required=True), Member("value", "text", required=True))

RESUME_ENTRY: Shape = (
    Member("interruptId", "id", required=True),
    Member("status", "status", required=True),
    Member("payload", "opaque", null_is_absent=True),
    _METADATA,
)

RUN_INPUT: Shape = (
    Member("threadId", "id", required=True),
    Member("runId", "id", required=True),
    Member("protocolVersion", "text"),
    Member("parentRunId", "text"),
    Member("state", "opaque", null_is_absent=True),
    Member("messages", "messages", required=True),
    Member("tools", "tools"),
    Member("context", "context"),
    Member("forwardedProps", "opaque", null_is_absent=True),
    Member("resume", "resume"),
)

INTERRUPT: Shape = (
    _ATTRIBUTION,
    Member("id", "id", required=True),
    Member("reason", "text", required=True),
    Member("message", "text"),
    Member("toolCallId", "id"),
    Member("responseSchema", "object"),
    Member("expiresAt", "text"),
    _METADATA,
)

TOKEN_USAGE: Shape = (
    Member("provider", "text"),
    Member("model", "text"),
    Member("inputTokens", "count"),
    Member("outputTokens", "count"),
    Member("totalTokens", "count"),
    Member("reasoningTokens", "count"),
    Member("cachedInputTokens", "count"),
    Member("cacheWriteInputTokens", "count"),
)


def in_order(value: JsonObject, shape: Shape) -> JsonObject:
    """The object as the official models write it, nested ones too: in order, without nulls and unknown members."""
    ordered: JsonObject = {}
    for member in shape:
        item = value.get(member.name)
        if item is not None:
            nested = _NESTED.get(member.kind)
            ordered[member.name] = item if nested is None else nested(item)
    return ordered


def message_in_order(message: JsonObject) -> JsonObject:
    """`in_order` for a message of a known role."""
    return in_order(message, MESSAGES[message["role"]])


def content_in_order(content: Json) -> Json:
    """`in_order` for text or a list of content parts."""
    if isinstance(content, str):
        return content
    return [in_order(part, PARTS[part["type"]]) for part in cast("list[JsonObject]", content)]


_NESTED: dict[str, Callable[[Json], Json]] = {
    "content": content_in_order,
    "source": lambda source: in_order(source, SOURCES.get(source["type"], KEPT)),
    "function": lambda function: in_order(function, FUNCTION),
    "tool_calls": lambda calls: [in_order(call, TOOL_CALL) for call in calls],
}
