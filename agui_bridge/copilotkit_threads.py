"""Sessions as CopilotKit's pages know them: threads, with their records, messages, events and state. Pure.

The shapes are those that the `useThreads` hook of `@copilotkit/react-core` 1.74 and its inspector read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from agui_bridge.native_intake import title_of
from agui_bridge.run_input import MalformedInput
from agui_bridge.times import iso
from agui_bridge.wire.events import AguiEvent
from runtime.canonical import Json, JsonObject
from runtime.errors import InvalidInput
from runtime.journal.catalogue import SessionChange, SessionFilter, UsedSession

_TRUTHS: Final = {"true": True, "false": False}


def thread_record(used: UsedSession) -> JsonObject:
    """A thread of a list: `{id, name, agentId, archived, createdAt, updatedAt, lastRunAt?, …}`."""
    session = used.session
    record: JsonObject = {
        "id": session.session_id,
        "name": session.name,
        "agentId": session.agent_id,
        "organizationId": session.tenant_id,
        "createdById": session.owner_id,
        "archived": session.archived_at is not None,
        "createdAt": iso(session.created_at),
        "updatedAt": iso(max(session.changed_at or 0, used.last_run_at or 0, session.created_at)),
    }
    return record if used.last_run_at is None else {**record, "lastRunAt": iso(used.last_run_at)}


def wanted_threads(query: Mapping[str, str]) -> SessionFilter:
    """Which threads a list is asked for: `agentId` and `includeArchived`, both optional. Raises InvalidInput."""
    archived = _TRUTHS.get(query.get("includeArchived", "false"))
    if archived is None:
        raise InvalidInput("includeArchived is true or false.", details={"path": "includeArchived"})
    return SessionFilter(query.get("agentId"), archived)


def thread_change(document: Json) -> SessionChange:
    """What is to become of a thread: `name` (null takes it away) and `archived`; both optional. Raises
    MalformedInput."""
    if not isinstance(document, dict):
        raise MalformedInput("The body must be an object.", details={"path": "", "expected": "an object"})
    members = cast("JsonObject", document)
    archived: Any = members.get("archived")
    if archived is not None and not isinstance(archived, bool):
        raise MalformedInput("/archived must be true or false.", details={"path": "/archived", "expected": "a boolean"})
    return SessionChange(title=title_of(members, "name"), retitle="name" in members, archived=archived)


def thread_messages(events: Sequence[AguiEvent]) -> list[JsonObject]:
    """The messages that these events leave on a page, with calls as CopilotKit writes them in its lists."""
    snapshots = [event["messages"] for event in events if event["type"] == "MESSAGES_SNAPSHOT"]
    return [_message(message) for message in snapshots[-1]] if snapshots else []


def _message(message: JsonObject) -> JsonObject:
    told = {name: value for name, value in message.items() if name in _TOLD}
    if (made := message.get("toolCalls")) is not None:
        told["toolCalls"] = [
            {"id": call["id"], "name": call["function"]["name"], "args": call["function"]["arguments"]} for call in made
        ]
    return told


_TOLD: Final = frozenset({"id", "role", "content", "toolCallId", "activityType"})
