"""What a stream says, one short line an event: for streams that are written down in `test_golden_*.py`.

Ids that the server made are named by their order of appearance: `m1` a message, `r1` reasoning, `c1` a call, `o1` its
output. Nothing is left out silently: a member that a line has no place for stands behind it in braces.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.serving import JsonObject

MADE = ("msg_", "call_", "result-", "run_", "thr_", "int_")
CHANGING = ("content_checksum", "result_checksum", "base_state_digest", "started_at", "idempotency_key", "request")


class Names:
    """Short names for ids, by order of appearance; an id that the client gave stays as it is."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def of(self, kind: str, id_: str) -> str:
        if not id_.startswith(MADE):
            return id_
        if id_ not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[id_] = f"{kind}{self._counts[kind]}"
        return self._names[id_]

    def within(self, value: Any) -> Any:
        """The value with every id that has a name replaced by it."""
        if isinstance(value, dict):
            return {key: self.within(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.within(item) for item in value]
        return self._names.get(value, value) if isinstance(value, str) else value


def golden(*streams: Iterable[JsonObject]) -> str:
    """Streams of AG-UI events as text, a blank line between two."""
    names = Names()
    return "\n\n".join("\n".join(_line(dict(event), names) for event in events) for events in streams)


def _line(event: JsonObject, names: Names) -> str:
    kind = event.pop("type")
    words = [kind]
    for member, prefix in (("threadId", ""), ("runId", ""), ("toolCallId", "c"), ("messageId", _kind_of(kind))):
        if member in event:
            words.append(names.of(prefix, event.pop(member)))
    for member in ("protocolVersion", "role", "stepName", "toolCallName", "name", "code"):
        if member in event:
            words.append(event.pop(member))
    if "subagentRunId" in event:
        words.append("of " + names.of("s", event.pop("subagentRunId")))
    if "parentSubagentRunId" in event:
        words.append("below " + names.of("s", event.pop("parentSubagentRunId")))
    if "parentToolCallId" in event:
        words.append("for " + names.of("c", event.pop("parentToolCallId")))
    if "parentMessageId" in event:
        words.append("in " + names.of("m", event.pop("parentMessageId")))
    if kind == "CUSTOM":
        words += _round(event, names)
    for member in ("delta", "content", "message", "encryptedValue", "snapshot", "value"):
        if member in event:
            words.append(_json(names.within(event.pop(member))))
    if "messages" in event:
        words.append(" | ".join(_message(dict(message), names) for message in event.pop("messages")))
    if "outcome" in event:
        words += _outcome(dict(event.pop("outcome")), names)
    words += _metadata(event)
    return " ".join(words + ([_json(names.within(event))] if event else []))


def _kind_of(event_type: str) -> str:
    if event_type.startswith("REASONING"):
        return "r"
    return "o" if event_type == "TOOL_CALL_RESULT" else "m"


def _message(message: JsonObject, names: Names) -> str:
    role = message.pop("role")
    words = [role, names.of({"tool": "o", "reasoning": "r"}.get(role, "m"), message.pop("id"))]
    if "toolCallId" in message:
        words.append(names.of("c", message.pop("toolCallId")))
    if "content" in message:
        words.append(_json(message.pop("content")))
    for call in message.pop("toolCalls", []):
        words.append(f"{names.of('c', call['id'])}={call['function']['name']}{call['function']['arguments']}")
    words += _metadata(message)
    if "subagentRunId" in message:
        words.append("of " + names.of("s", message.pop("subagentRunId")))
    return " ".join(words + ([_json(message)] if message else []))


def _outcome(outcome: JsonObject, names: Names) -> list[str]:
    words = [outcome.pop("type")]
    if "pendingToolCallIds" in outcome:
        words.append("pending " + ",".join(names.of("c", id_) for id_ in outcome.pop("pendingToolCallIds")))
    if "interruptIds" in outcome:
        words.append(",".join(names.of("i", id_) for id_ in outcome.pop("interruptIds")))
    words += [_interrupt(dict(each), names) for each in outcome.pop("interrupts", [])]
    return words + ([_json(outcome)] if outcome else [])


def _interrupt(interrupt: JsonObject, names: Names) -> str:
    """`[i1 tool_call c1 "May it run?" schema]`; the schema of the answer is only said to be there."""
    words = [names.of("i", interrupt.pop("id")), interrupt.pop("reason"), names.of("c", interrupt.pop("toolCallId"))]
    words.append(_json(interrupt.pop("message", None)))
    if "subagentRunId" in interrupt:
        words.append("of " + names.of("s", interrupt.pop("subagentRunId")))
    if interrupt.pop("responseSchema", None) is not None:
        words.append("schema")
    return f"[{' '.join(words + ([_json(interrupt)] if interrupt else []))}]"


def _round(event: JsonObject, names: Names) -> list[str]:
    """`1 working_message m1` for the classification of a round whose messages all have its role."""
    value = event["value"]
    ids = [message["id"] for message in value.get("messages", [])]
    role = value.get("role")
    if value != {"round": value.get("round"), "role": role, "messages": [{"id": id_, "role": role} for id_ in ids]}:
        return []
    del event["value"]
    return [str(value["round"]), role, *(names.of("m", id_) for id_ in ids)]


def _metadata(event: JsonObject) -> list[str]:
    """`working_message/1` for what a text message is known to be."""
    metadata = event.get("metadata")
    if metadata is None or set(metadata) != {"agui-bridge:role", "agui-bridge:round"}:
        return []
    del event["metadata"]
    return [f"{metadata['agui-bridge:role']}/{metadata['agui-bridge:round']}"]


def golden_facts(documents: Iterable[JsonObject]) -> str:
    """A run's journal as text: seq, type, payload. Digests and times are left out."""
    names = Names()
    return "\n".join(_fact(document, names) for document in documents)


def _fact(document: JsonObject, names: Names) -> str:
    payload = {name: value for name, value in document["payload"].items() if name not in CHANGING}
    for member, prefix in (("message_id", "m"), ("tool_call_id", "c")):
        if member in payload:
            payload[member] = names.of(prefix, payload[member])
    return f"{document['seq']} {document['event_type']} {_json(names.within(payload))}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
