"""The AG-UI events that this server sends, one constructor each.

Pure. An event is a plain dict whose members stand in the order of the official models; optional members without a
value are left out. The three that stream text are bare literals, because a run is mostly made of them. Which event
may follow which is not known here.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from agui_bridge.shapes import INTERRUPT, TOKEN_USAGE, content_in_order, in_order, message_in_order
from runtime.canonical import Json, JsonObject

AguiEvent: TypeAlias = dict[str, Any]


class Envelope(TypedDict, total=False):
    """What every event may carry. `timestamp` is ms since the epoch; `metadata` is open, vendor keys are prefixed."""

    timestamp: int | None
    raw_event: Json
    metadata: JsonObject | None


class Attributed(Envelope, total=False):
    """What an event that can belong to a subagent's work may carry."""

    subagent_run_id: str | None


# --- the run ------------------------------------------------------------------------------------------------------


def run_started(
    thread_id: str,
    run_id: str,
    *,
    protocol_version: str | None = None,
    parent_run_id: str | None = None,
    **envelope: Unpack[Envelope],
) -> AguiEvent:
    """RUN_STARTED."""
    own = {"threadId": thread_id, "runId": run_id}
    return _event("RUN_STARTED", envelope, own, protocolVersion=protocol_version, parentRunId=parent_run_id)


def run_finished(
    thread_id: str,
    run_id: str,
    *,
    result: Json = None,
    outcome: JsonObject | None = None,
    usage: list[JsonObject] | None = None,
    **envelope: Unpack[Envelope],
) -> AguiEvent:
    """RUN_FINISHED; `outcome` is one of the three below, none means success."""
    own = {"threadId": thread_id, "runId": run_id}
    return _event("RUN_FINISHED", envelope, own, result=result, outcome=outcome, usage=_usage(usage))


def success(pending_tool_call_ids: list[str] | None = None) -> JsonObject:
    """The outcome of a run that did its work; it names the frontend calls that wait for the client."""
    if pending_tool_call_ids is None:
        return {"type": "success"}
    return {"type": "success", "pendingToolCallIds": pending_tool_call_ids}


def interrupt(interrupts: list[JsonObject]) -> JsonObject:
    """The outcome of a run that waits for answers, at least one."""
    return {"type": "interrupt", "interrupts": [in_order(each, INTERRUPT) for each in interrupts]}


def cancelled() -> JsonObject:
    """The outcome of a run that was stopped on purpose."""
    return {"type": "cancelled"}


def run_error(
    message: str,
    code: str | None = None,
    usage: list[JsonObject] | None = None,
    **envelope: Unpack[Envelope],
) -> AguiEvent:
    """RUN_ERROR; the message is shown to people, the code is for machines."""
    return _event("RUN_ERROR", envelope, {"message": message}, code=code, usage=_usage(usage))


def step_started(step_name: str, **envelope: Unpack[Attributed]) -> AguiEvent:
    """STEP_STARTED."""
    return _event("STEP_STARTED", envelope, {"stepName": step_name})


def step_finished(step_name: str, **envelope: Unpack[Attributed]) -> AguiEvent:
    """STEP_FINISHED."""
    return _event("STEP_FINISHED", envelope, {"stepName": step_name})


def subagent_started(
    subagent_run_id: str,
    name: str,
    *,
    description: str | None = None,
    parent_subagent_run_id: str | None = None,
    parent_tool_call_id: str | None = None,
    **envelope: Unpack[Envelope],
) -> AguiEvent:
    """SUBAGENT_STARTED; the id names one invocation, the parent is the run itself if no other is named."""
    return _event(
        "SUBAGENT_STARTED",
        envelope,
        {"subagentRunId": subagent_run_id, "name": name},
        description=description,
        parentSubagentRunId=parent_subagent_run_id,
        parentToolCallId=parent_tool_call_id,
    )


def subagent_finished(
    subagent_run_id: str, *, result: Json = None, outcome: JsonObject | None = None, **envelope: Unpack[Envelope]
) -> AguiEvent:
    """SUBAGENT_FINISHED, with success if no other `outcome` is given."""
    own = {"subagentRunId": subagent_run_id}
    return _event("SUBAGENT_FINISHED", envelope, own, result=result, outcome=outcome or {"type": "success"})


def suspended(interrupt_ids: list[str]) -> JsonObject:
    """The outcome of a subagent that waits for answers."""
    return {"type": "suspended", "interruptIds": interrupt_ids}


def subagent_error(
    subagent_run_id: str, message: str, code: str | None = None, **envelope: Unpack[Envelope]
) -> AguiEvent:
    """SUBAGENT_ERROR: the invocation is over, the run goes on."""
    return _event("SUBAGENT_ERROR", envelope, {"subagentRunId": subagent_run_id, "message": message}, code=code)


def attributed(event: AguiEvent, subagent_run_id: str) -> AguiEvent:
    """The event as one of a subagent's work."""
    head = {name: event[name] for name in _HEAD if name in event}
    return head | {"subagentRunId": subagent_run_id} | event


# --- text ---------------------------------------------------------------------------------------------------------


def text_message_start(
    message_id: str,
    *,
    role: Literal["developer", "system", "assistant", "user"] | None = None,
    name: str | None = None,
    **envelope: Unpack[Attributed],
) -> AguiEvent:
    """TEXT_MESSAGE_START; no role means assistant."""
    return _event("TEXT_MESSAGE_START", envelope, {"messageId": message_id}, role=role, name=name)


def text_message_content(message_id: str, delta: str) -> AguiEvent:
    """TEXT_MESSAGE_CONTENT."""
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": delta}


def text_message_end(message_id: str, **envelope: Unpack[Attributed]) -> AguiEvent:
    """TEXT_MESSAGE_END."""
    return _event("TEXT_MESSAGE_END", envelope, {"messageId": message_id})


# --- tool calls ---------------------------------------------------------------------------------------------------


def tool_call_start(
    tool_call_id: str,
    tool_call_name: str,
    parent_message_id: str | None = None,
    **envelope: Unpack[Attributed],
) -> AguiEvent:
    """TOOL_CALL_START."""
    own = {"toolCallId": tool_call_id, "toolCallName": tool_call_name}
    return _event("TOOL_CALL_START", envelope, own, parentMessageId=parent_message_id)


def tool_call_args(tool_call_id: str, delta: str) -> AguiEvent:
    """TOOL_CALL_ARGS."""
    return {"type": "TOOL_CALL_ARGS", "toolCallId": tool_call_id, "delta": delta}


def tool_call_end(tool_call_id: str, **envelope: Unpack[Attributed]) -> AguiEvent:
    """TOOL_CALL_END."""
    return _event("TOOL_CALL_END", envelope, {"toolCallId": tool_call_id})


def tool_call_result(
    message_id: str,
    tool_call_id: str,
    content: Json,
    *,
    role: Literal["tool"] | None = None,
    **envelope: Unpack[Attributed],
) -> AguiEvent:
    """TOOL_CALL_RESULT; `content` is text or a list of AG-UI parts, `message_id` that of the tool message it makes."""
    own = {"messageId": message_id, "toolCallId": tool_call_id, "content": content_in_order(content)}
    return _event("TOOL_CALL_RESULT", envelope, own, role=role)


# --- reasoning ----------------------------------------------------------------------------------------------------


def reasoning_start(message_id: str, **envelope: Unpack[Attributed]) -> AguiEvent:
    """REASONING_START; `message_id` names the span."""
    return _event("REASONING_START", envelope, {"messageId": message_id})


def reasoning_message_start(message_id: str, **envelope: Unpack[Attributed]) -> AguiEvent:
    """REASONING_MESSAGE_START, always with its one role: clients refuse it without."""
    return _event("REASONING_MESSAGE_START", envelope, {"messageId": message_id, "role": "reasoning"})


def reasoning_message_content(message_id: str, delta: str) -> AguiEvent:
    """REASONING_MESSAGE_CONTENT."""
    return {"type": "REASONING_MESSAGE_CONTENT", "messageId": message_id, "delta": delta}


def reasoning_message_end(message_id: str, **envelope: Unpack[Attributed]) -> AguiEvent:
    """REASONING_MESSAGE_END."""
    return _event("REASONING_MESSAGE_END", envelope, {"messageId": message_id})


def reasoning_end(message_id: str, **envelope: Unpack[Attributed]) -> AguiEvent:
    """REASONING_END; `message_id` names the span."""
    return _event("REASONING_END", envelope, {"messageId": message_id})


def reasoning_encrypted_value(
    subtype: Literal["message", "tool-call"],
    entity_id: str,
    encrypted_value: str,
    **envelope: Unpack[Attributed],
) -> AguiEvent:
    """REASONING_ENCRYPTED_VALUE for a message or a tool call."""
    own = {"subtype": subtype, "entityId": entity_id, "encryptedValue": encrypted_value}
    return _event("REASONING_ENCRYPTED_VALUE", envelope, own)


# --- state, conversation, everything else ---------------------------------------------------------------------------


def state_snapshot(snapshot: Json, **envelope: Unpack[Attributed]) -> AguiEvent:
    """STATE_SNAPSHOT; null is a state."""
    return _event("STATE_SNAPSHOT", envelope, {"snapshot": snapshot})


def state_delta(delta: list[JsonObject], **envelope: Unpack[Attributed]) -> AguiEvent:
    """STATE_DELTA; RFC 6902 operations as `runtime.state_delta` makes them."""
    return _event("STATE_DELTA", envelope, {"delta": delta})


def messages_snapshot(messages: list[JsonObject], **envelope: Unpack[Envelope]) -> AguiEvent:
    """MESSAGES_SNAPSHOT; members that AG-UI does not know are left out of the messages."""
    return _event("MESSAGES_SNAPSHOT", envelope, {"messages": [message_in_order(each) for each in messages]})


def activity_snapshot(
    message_id: str, activity_type: str, content: JsonObject, **envelope: Unpack[Attributed]
) -> AguiEvent:
    """ACTIVITY_SNAPSHOT; it replaces what the page has under this id."""
    own = {"messageId": message_id, "activityType": activity_type, "content": content}
    return _event("ACTIVITY_SNAPSHOT", envelope, own)


def activity_delta(
    message_id: str, activity_type: str, patch: list[JsonObject], **envelope: Unpack[Attributed]
) -> AguiEvent:
    """ACTIVITY_DELTA; RFC 6902 operations on the activity's content."""
    own = {"messageId": message_id, "activityType": activity_type, "patch": patch}
    return _event("ACTIVITY_DELTA", envelope, own)


def custom(name: str, value: Json, **envelope: Unpack[Attributed]) -> AguiEvent:
    """CUSTOM; null is a value, names of ours are prefixed."""
    return _event("CUSTOM", envelope, {"name": name, "value": value})


_ENVELOPE: tuple[tuple[str, str], ...] = (
    ("timestamp", "timestamp"),
    ("raw_event", "rawEvent"),
    ("metadata", "metadata"),
    ("subagent_run_id", "subagentRunId"),
)


_HEAD = ("type", "timestamp", "rawEvent", "metadata")


def _event(event_type: str, envelope: Envelope, own: JsonObject, **optional: Json) -> AguiEvent:
    event: AguiEvent = {"type": event_type}
    if envelope:
        for name, member in _ENVELOPE:
            if (value := envelope.get(name)) is not None:
                event[member] = value
    event.update(own)
    for name, value in optional.items():
        if value is not None:
            event[name] = value
    return event


def _usage(entries: list[JsonObject] | None) -> list[JsonObject] | None:
    return None if entries is None else [in_order(entry, TOKEN_USAGE) for entry in entries]
