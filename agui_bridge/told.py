"""A shown message as the runtime is told of it: as a fact of its own, or as one of a seeded history. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from agui_bridge.content import content_in
from runtime import events as e
from runtime.canonical import JsonObject, digest
from runtime.ending import OUTPUT_TEXTS
from runtime.entries import LATE_ANSWER, said_key
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


def answer_fact(message: JsonObject, tool_name: str) -> e.ToolCallCompleted:
    """A client's answer to an open call."""
    content, error = content_in(message["content"]), message.get("error")
    return e.ToolCallCompleted(
        tool_call_id=message["toolCallId"],
        tool_name=tool_name,
        result=content,
        result_checksum=digest(content),
        is_error=error is not None,
        kind="client",
        message_id=message["id"],
        error=error,
    )


def late_fact(message: JsonObject) -> e.MessageCompleted:
    """A client's answer to a call that was closed without one."""
    content, error = content_in(message["content"]), message.get("error")
    return e.MessageCompleted(
        message_id=message["id"],
        role="user",
        content=content,
        content_checksum=digest(content),
        runtime_role=LATE_ANSWER,
        attributes={"tool_call_id": message["toolCallId"], **({} if error is None else {"error": error})},
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


def adopted(messages: Iterable[JsonObject], may_be_visible: Callable[[JsonObject], bool]) -> list[e.Event]:
    """A history taken over whole, with what the model may see of it.

    A call is never executed: one without an output gets "not answered by the client". An output without its call
    before it is shown to nobody but the page.
    """
    facts: list[e.Event] = []
    seeds: list[JsonObject] = []
    called: set[str] = set()
    waiting: dict[str, str] = {}
    for message in messages:
        seeded = seed_of(message, visible=may_be_visible(message))
        calls = {call["id"]: call["name"] for call in seeded.get("tool_calls", ())}
        if again := waiting.keys() & calls:  # an id is used once more: what was called first has no output now
            facts += [e.HistorySeeded(seeds), *(_unanswered(id_, waiting.pop(id_)) for id_ in calls if id_ in again)]
            seeds = []
        called |= calls.keys()
        waiting |= calls
        if seeded["role"] == "tool":
            seeded["model_visible"] = seeded["tool_call_id"] in called
            waiting.pop(seeded["tool_call_id"], None)
        seeds.append(seeded)
    if seeds:
        facts.append(e.HistorySeeded(seeds))
    return [*facts, *(_unanswered(id_, name) for id_, name in waiting.items())]


def _unanswered(call_id: str, name: str) -> e.ToolCallCompleted:
    return e.output_of(call_id, name, OUTPUT_TEXTS["unanswered"], "unanswered")
