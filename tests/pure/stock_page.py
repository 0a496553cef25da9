"""What a page on the stock AG-UI client holds after a stream: a small model of how that client applies events.

It appends where it knows an id, replaces in place where a snapshot names one, and never reorders. Held against the
recorded messages of tests/conformance/streams, as the rules are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import jsonpatch

JsonObject = dict[str, Any]


class Page:
    """The messages and the state of a page, and what it was told was still open."""

    def __init__(self, messages: Iterable[JsonObject] = (), state: Any = None) -> None:
        self.messages: list[JsonObject] = [copy.deepcopy(message) for message in messages]
        self.state: Any = {} if state is None else copy.deepcopy(state)
        self.surprises: list[str] = []
        """What the client would have written to its console."""

    def apply(self, events: Iterable[JsonObject]) -> None:
        """Apply a stream."""
        for event in events:
            act = _ACTS.get(event["type"])
            if act is not None:
                act(self, copy.deepcopy(event))

    def without_ids(self) -> list[JsonObject]:
        """The messages as they can be compared when their ids do not matter."""
        return [{name: value for name, value in message.items() if name != "id"} for message in self.messages]

    def _find(self, id_: str) -> JsonObject | None:
        return next((message for message in self.messages if message["id"] == id_), None)

    def _call(self, id_: str) -> JsonObject | None:
        return next((c for message in self.messages for c in message.get("toolCalls", ()) if c["id"] == id_), None)

    # --- text and reasoning ---------------------------------------------------------------------------------------

    def _open(self, event: JsonObject) -> None:
        message = self._find(event["messageId"])
        if message is None:
            role = event.get("role", "assistant")
            message = {"id": event["messageId"], "role": role, "content": "", **_owner(event)}
            self.messages.append(message)
        _learn(message, event)

    def _write(self, event: JsonObject) -> None:
        message = self._find(event["messageId"])
        if message is None:
            self.surprises.append(f"content for {event['messageId']}, which is not there")
            return
        message["content"] = (message.get("content") or "") + event["delta"]
        _learn(message, event)

    def _close(self, event: JsonObject) -> None:
        message = self._find(event["messageId"])
        if message is None:
            self.surprises.append(f"an end of {event['messageId']}, which is not there")
        else:
            _learn(message, event)

    def _encrypted(self, event: JsonObject) -> None:
        find = self._find if event["subtype"] == "message" else self._call
        entity = find(event["entityId"])
        if entity is not None:
            entity["encryptedValue"] = event["encryptedValue"]

    # --- calls ----------------------------------------------------------------------------------------------------

    def _call_start(self, event: JsonObject) -> None:
        call = self._call(event["toolCallId"]) or self._new_call(event)
        call["function"]["name"] = event["toolCallName"]
        _learn(call, event)

    def _new_call(self, event: JsonObject) -> JsonObject:
        call: JsonObject = {"id": event["toolCallId"], "type": "function", "function": {"name": "", "arguments": ""}}
        parent = event.get("parentMessageId", event["toolCallId"])
        message: JsonObject | None = self._find(parent)
        if message is None:
            message = {"id": parent, "role": "assistant", **_owner(event)}
            self.messages.append(message)
        calls: list[JsonObject] = message.setdefault("toolCalls", [])
        calls.append(call)
        return call

    def _call_args(self, event: JsonObject) -> None:
        call = self._call(event["toolCallId"])
        if call is None:
            self.surprises.append(f"arguments for {event['toolCallId']}, which is not there")
            return
        call["function"]["arguments"] += event["delta"]
        _learn(call, event)

    def _call_result(self, event: JsonObject) -> None:
        if self._find(event["messageId"]) is not None:
            self.surprises.append(f"a second message {event['messageId']}")
        result = {
            "id": event["messageId"],
            "role": "tool",
            "toolCallId": event["toolCallId"],
            "content": event["content"],
            **_owner(event),
        }
        _learn(result, event)
        self.put_result(result)

    def put_result(self, result: JsonObject) -> None:
        """Put a tool message behind the message that made its call, and behind the results that are there."""
        self.messages.insert(self._behind_call(result["toolCallId"]), result)

    def _behind_call(self, call_id: str) -> int:
        for index, message in enumerate(self.messages):
            ids = {call["id"] for call in message.get("toolCalls", ())}
            if call_id in ids:
                index += 1
                while index < len(self.messages) and self.messages[index].get("toolCallId") in ids:
                    index += 1
                return index
        return len(self.messages)

    # --- snapshots and state --------------------------------------------------------------------------------------

    def _messages(self, event: JsonObject) -> None:
        given: dict[str, JsonObject] = {message["id"]: message for message in event["messages"]}
        owned = {message["role"] for message in given.values()}
        owned_types = event.get("metadata", {}).get("@ag-ui/client", {}).get("authoritativeActivityTypes", ())
        kept: list[JsonObject] = []
        for message in self.messages:
            if message["id"] in given:
                kept.append(given.pop(message["id"]))
            elif (
                message["role"] in ("activity", "reasoning")
                and message["role"] not in owned
                and message.get("activityType") not in owned_types
            ):
                kept.append(message)
        self.messages = kept + list(given.values())

    def _snapshot(self, event: JsonObject) -> None:
        self.state = event["snapshot"]

    def _delta(self, event: JsonObject) -> None:
        try:
            self.state = jsonpatch.apply_patch(self.state, event["delta"])
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            self.surprises.append(f"a change of state that does not apply: {error}")

    def _activity(self, event: JsonObject) -> None:
        activity = {
            "id": event["messageId"],
            "role": "activity",
            "activityType": event["activityType"],
            "content": event["content"],
            **_owner(event),
        }
        known = self._find(event["messageId"])
        if known is None:
            self.messages.append(activity)
        else:
            self.messages[self.messages.index(known)] = activity

    def _activity_change(self, event: JsonObject) -> None:
        known = self._find(event["messageId"])
        if known is None or known["role"] != "activity":
            return
        try:
            known["content"] = jsonpatch.apply_patch(known["content"], event["patch"])
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
            return

    def _restated_input(self, event: JsonObject) -> None:
        for message in (event.get("input") or {}).get("messages", ()):
            if self._find(message["id"]) is None:
                self.messages.append(message)


def _owner(event: JsonObject) -> JsonObject:
    return {"subagentRunId": event["subagentRunId"]} if "subagentRunId" in event else {}


def _learn(holder: JsonObject, event: JsonObject) -> None:
    if event.get("metadata"):
        holder["metadata"] = {**holder.get("metadata", {}), **event["metadata"]}


_ACTS: dict[str, Callable[[Page, JsonObject], None]] = {
    "RUN_STARTED": Page._restated_input,
    "TEXT_MESSAGE_START": Page._open,
    "TEXT_MESSAGE_CONTENT": Page._write,
    "TEXT_MESSAGE_END": Page._close,
    "REASONING_MESSAGE_START": Page._open,
    "REASONING_MESSAGE_CONTENT": Page._write,
    "REASONING_MESSAGE_END": Page._close,
    "REASONING_ENCRYPTED_VALUE": Page._encrypted,
    "TOOL_CALL_START": Page._call_start,
    "TOOL_CALL_ARGS": Page._call_args,
    "TOOL_CALL_RESULT": Page._call_result,
    "MESSAGES_SNAPSHOT": Page._messages,
    "STATE_SNAPSHOT": Page._snapshot,
    "STATE_DELTA": Page._delta,
    "ACTIVITY_SNAPSHOT": Page._activity,
    "ACTIVITY_DELTA": Page._activity_change,
}
