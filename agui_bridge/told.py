"""A shown message as the runtime is told of it: as a fact of its own, or as one of a seeded history. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agui_bridge.content import content_in
from runtime import events as e
from runtime.canonical import JsonObject, digest
from runtime.ending import OUTPUT_TEXTS
from runtime.entries import said_key
from runtime.open_round import is_object


def user_fact(message: JsonObject) -> e.MessageCompleted:
    """A new user message."""
    content = content_in(message["content"])
    return e.MessageCompleted(
        message_id=message["id"],
        role="user",
        content=content,
        content_checksum=digest(content),
        attributes=_attributes(message),
    )


def key_of(message: JsonObject) -> str:
    """The key that the message has as an entry of the thread."""
    return said_key(message["id"], content_in(message.get("content", "")))


def _attributes(message: JsonObject) -> JsonObject | None:
    """What a client said of a message beyond who said what."""
    own = ("id", "role", "content", "toolCalls", "toolCallId", "error")
    return {name: value for name, value in message.items() if name not in own} or None


def seed_of(message: JsonObject, *, visible: bool) -> JsonObject:
    """A message taken over from a client, as `history.seeded` stores it; `visible` says whether the model sees it."""
    seeded: JsonObject = {"id": message["id"], "role": message["role"], "model_visible": visible}
    if "content" in message:
        seeded["content"] = content_in(message["content"])
    if attributes := _attributes(message):
        seeded["attributes"] = attributes
    if message["role"] == "tool":
        seeded["tool_call_id"] = message["toolCallId"]
        if message.get("error") is not None:
            seeded["error"] = message["error"]
    calls: Sequence[JsonObject] = message.get("toolCalls") or []
    if calls:
        seeded["tool_calls"] = [
            {
                "id": call["id"],
                "name": call["function"]["name"],
                "arguments": call["function"]["arguments"] or "{}",
                "malformed": not is_object(call["function"]["arguments"] or "{}"),
            }
            for call in calls
        ]
    return seeded


def unanswered(call_id: str, name: str) -> e.ToolCallCompleted:
    """The output of a seeded call that has none: it is never executed."""
    return e.output_of(call_id, name, OUTPUT_TEXTS["unanswered"], "unanswered")
