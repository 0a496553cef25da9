"""What the events of a run say, taken together: ids, state, snapshots, calls, outcome, usage, names. Pure.

These faults are ones that a client mostly does not see: it goes on with a wrong state, a lost message, a wrong total.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final, TypeAlias

import jsonpatch
import jsonpointer

from agui_check.findings import Finding, JsonObject, as_object, as_objects, shown

_VERSION = re.compile(r"\d+\.\d+")
_PREFIXED = re.compile(r"@?[A-Za-z0-9_-]+[./:].+")
PROGRESS: Final = "agui-bridge.progress"
"""The type of the activity that shows how far a call is; it is taken back when the call is over."""

_PATCH_ERRORS = (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError)


class Contents:
    """The rules of content over one stream, in answer to `asked` (a RunAgentInput) if that is known."""

    def __init__(self, asked: JsonObject | None = None) -> None:
        self._asked: JsonObject = asked or {}
        self._answers_a_request = asked is not None
        self._frontend = {_name(tool) for tool in as_objects(self._asked.get("tools"))}
        self._shown = {str(message.get("id")): message for message in as_objects(self._asked.get("messages"))}
        self._versions: set[str] = set()
        self.state: Any = self._asked.get("state")
        if self.state is None:
            self.state = {}
        self._activities: dict[str, Any] = {}
        self._progress: set[str] = set()
        self._begin_run({})

    def _begin_run(self, event: JsonObject) -> None:
        self._run = event.get("runId"), event.get("threadId")
        self._calls: dict[str, str] = {}
        self._arguments: dict[str, str] = {}
        self._answered: set[str] = set()
        self._in_the_place_of_the_page: list[str] = []
        self._taken_back: set[str] = set()
        self._said: dict[str, None] = {}
        self._snapshot: dict[str, None] | None = None

    def feed(self, event: JsonObject) -> Iterator[Finding]:
        """What is wrong with what this event says. The event has the members that its type requires."""
        rule = _RULES.get(event["type"])
        yield from self._metadata(event)
        if rule is not None:
            yield from rule(self, event)

    # --- a run --------------------------------------------------------------------------------------------------------

    def _started(self, event: JsonObject) -> Iterator[Finding]:
        self._begin_run(event)
        version = event.get("protocolVersion")
        if version is None:
            yield from (Finding(row, "RUN_STARTED declares no protocolVersion.") for row in ("R-066", "R-150"))
        elif _VERSION.fullmatch(version) is None:
            yield Finding("R-150", f"protocolVersion {shown(version)} is not MAJOR.MINOR.")
        else:
            self._versions.add(version)
            if len(self._versions) > 1:
                yield Finding("R-157", f"The stream declares the versions {', '.join(sorted(self._versions))}.")
        if event["threadId"] != self._asked.get("threadId", event["threadId"]):
            yield Finding("R-051", f"RUN_STARTED names the thread {shown(event['threadId'])}, another one was asked.")
        parent = event.get("parentRunId")
        if self._answers_a_request and parent is not None and parent != self._asked.get("parentRunId"):
            yield Finding("R-062", f"parentRunId {shown(parent)} is not that of the input.")

    def _finished(self, event: JsonObject) -> Iterator[Finding]:
        if self._run[0] is not None and (event["runId"], event["threadId"]) != self._run:
            yield Finding("R-051", "RUN_FINISHED names another run or thread than RUN_STARTED.")
        elif event["threadId"] != self._asked.get("threadId", event["threadId"]):
            yield Finding("R-051", f"RUN_FINISHED names the thread {shown(event['threadId'])}, another one was asked.")
        outcome = as_object(event.get("outcome")) or {"type": "success"}
        kind = outcome.get("type")
        if kind == "cancelled" and "result" in event:
            yield Finding("R-074", "A cancelled run has a result.")
        if kind == "success":
            yield from self._pending(outcome)
        elif kind == "interrupt":
            yield from self._interrupts(as_objects(outcome.get("interrupts")))
        yield from self._complete()
        yield from self._frontend_answers(broke_off=kind == "cancelled")
        yield from _usage(event)

    def _failed(self, event: JsonObject) -> Iterator[Finding]:
        yield from self._frontend_answers(broke_off=True)
        if not event["message"]:
            yield Finding("R-078", "The message of RUN_ERROR is empty.")
        yield from _usage(event)

    def _pending(self, outcome: JsonObject) -> Iterator[Finding]:
        left = [id_ for id_ in self._calls if id_ not in self._answered]
        kept = [id_ for id_ in left if id_ not in self._taken_back]
        ours = [id_ for id_ in kept if self._answers_a_request and self._calls[id_] not in self._frontend]
        if ours:
            yield Finding("R-108", f"The server's own call {ours[0]} ({self._calls[ours[0]]}) has no result.")
        listed = outcome.get("pendingToolCallIds")
        if listed is None and kept:
            yield Finding("R-107", f"The run leaves {', '.join(kept)} and lists no pendingToolCallIds.", remark=True)
        elif (listed or []) != left:
            message = f"pendingToolCallIds are {shown(listed)}, left without an answer are {shown(left)}."
            yield Finding("R-107", message, departure=(listed or []) == kept)

    def _interrupts(self, interrupts: list[JsonObject]) -> Iterator[Finding]:
        ids = [interrupt.get("id") for interrupt in interrupts]
        if len(set(ids)) < len(ids):
            yield Finding("R-161", "Two interrupts have one id.")
        for interrupt in interrupts:
            expires = interrupt.get("expiresAt")
            if expires is not None and not _is_time(expires):
                yield Finding("R-163", f"expiresAt {shown(expires)} is no ISO 8601 time in UTC.")

    def _complete(self) -> Iterator[Finding]:
        """R-126, of the last snapshot: what it left out, the client has dropped."""
        if self._snapshot is None:
            return
        owned = [id_ for id_, message in self._shown.items() if message.get("role") in ("user", "assistant")]
        lost = [id_ for id_ in (*owned, *self._said) if id_ not in self._snapshot]
        if lost:
            message = f"The last MESSAGES_SNAPSHOT leaves out {', '.join(lost[:3])}."
            yield Finding("R-126", message, departure=self._progress.issuperset(lost))

    # --- messages and calls -------------------------------------------------------------------------------------------

    def _text(self, event: JsonObject) -> Iterator[Finding]:
        id_ = event.get("messageId")
        if id_ is None:
            return
        if id_ in self._shown and id_ not in self._said:
            yield Finding("R-071", f"The message {id_} of the input is streamed again.")
        self._say(id_)

    def _say(self, id_: str) -> None:
        if self._snapshot is None or id_ not in self._snapshot:
            self._said[id_] = None
        if self._snapshot is not None:
            self._snapshot[id_] = None

    def _call(self, event: JsonObject) -> Iterator[Finding]:
        id_, name = event.get("toolCallId"), event.get("toolCallName")
        if id_ is None or name is None:
            return
        if self._calls.get(id_, name) != name:
            yield Finding("R-102", f"The id {id_} stands for calls of {self._calls[id_]} and of {name}.")
        self._calls[id_] = name

    def _call_arguments(self, event: JsonObject) -> Iterator[Finding]:
        id_ = event.get("toolCallId")
        if id_ is not None:
            self._arguments[id_] = self._arguments.get(id_, "") + event["delta"]
        yield from ()

    def _result(self, event: JsonObject) -> Iterator[Finding]:
        id_ = event["toolCallId"]
        if self._calls.get(id_) in self._frontend:
            self._in_the_place_of_the_page.append(id_)
        self._answered.add(id_)
        self._say(event["messageId"])
        yield from ()

    def _frontend_answers(self, *, broke_off: bool) -> Iterator[Finding]:
        """R-104: nothing but the page answers its calls, unless it was never to run them, or is not to any more."""
        for id_ in self._in_the_place_of_the_page:
            message = f"The server answers the call {id_} of the frontend tool {self._calls[id_]}."
            yield Finding("R-104", message, departure=broke_off or not _is_object(self._arguments.get(id_, "")))

    def _messages(self, event: JsonObject) -> Iterator[Finding]:
        ids = [message["id"] for message in event["messages"]]
        if len(set(ids)) < len(ids):
            yield Finding("R-086", "A messages snapshot has two messages of one id.")
        self._snapshot = dict.fromkeys(ids)
        held = {call.get("id") for message in event["messages"] for call in as_objects(message.get("toolCalls"))}
        self._taken_back |= {id_ for id_ in self._calls if id_ not in held}
        for message in event["messages"]:
            if message.get("role") == "activity":
                self._activities[message["id"]] = copy.deepcopy(message.get("content"))

    # --- state and activities -----------------------------------------------------------------------------------------

    def _state(self, event: JsonObject) -> Iterator[Finding]:
        self.state = copy.deepcopy(event["snapshot"])
        yield from ()

    def _state_delta(self, event: JsonObject) -> Iterator[Finding]:
        changed, problem = _patched(self.state, event["delta"])
        if problem:
            yield Finding("R-122", f"The delta does not apply: {problem}.")
        else:
            self.state = changed

    def _activity(self, event: JsonObject) -> Iterator[Finding]:
        if event.get("replace", True) or event["messageId"] not in self._activities:
            self._activities[event["messageId"]] = copy.deepcopy(event["content"])
        self._say(event["messageId"])
        if event["activityType"] == PROGRESS:
            self._progress.add(event["messageId"])
        yield from ()

    def _activity_delta(self, event: JsonObject) -> Iterator[Finding]:
        id_ = event["messageId"]
        if id_ not in self._activities:
            yield Finding("R-120", f"A delta for the activity {id_}, of which there was no snapshot.")
            return
        changed, problem = _patched(self._activities[id_], event["patch"])
        if problem:
            yield Finding("R-122", f"The delta of an activity does not apply: {problem}.")
        elif not isinstance(changed, dict):
            yield Finding("R-131", "A patch makes the content of an activity something else than an object.")
        else:
            self._activities[id_] = changed

    # --- names --------------------------------------------------------------------------------------------------------

    def _metadata(self, event: JsonObject) -> Iterator[Finding]:
        for key in as_object(event.get("metadata")):
            if key == "ag-ui":
                yield Finding("R-181", "The metadata has the key `ag-ui`, which is the protocol's.")
            elif _PREFIXED.fullmatch(key) is None:
                yield Finding("R-182", f"The metadata key {shown(key)} has no prefix.")

    def _custom(self, event: JsonObject) -> Iterator[Finding]:
        if _PREFIXED.fullmatch(event["name"]) is None:
            yield Finding("R-184", f"The CUSTOM name {shown(event['name'])} has no prefix.")


def _usage(event: JsonObject) -> Iterator[Finding]:
    entries = as_objects(event.get("usage"))
    names = [(entry.get("provider"), entry.get("model")) for entry in entries]
    if len(set(names)) < len(names):
        yield Finding("R-195", "Two usage entries are of one provider and model.")
    for entry in entries:
        count = {name: value for name, value in entry.items() if isinstance(value, int)}
        of_input = count.get("cachedInputTokens", 0) + count.get("cacheWriteInputTokens", 0)
        if "inputTokens" in count and of_input > count["inputTokens"]:
            yield Finding("R-196", "The cached parts are more than inputTokens.")
        if "outputTokens" in count and count.get("reasoningTokens", 0) > count["outputTokens"]:
            yield Finding("R-196", "reasoningTokens are more than outputTokens.")
        if {"inputTokens", "outputTokens", "totalTokens"} <= count.keys() and (
            count["totalTokens"] != count["inputTokens"] + count["outputTokens"]
        ):
            yield Finding("R-196", "totalTokens are not inputTokens and outputTokens together.")


def _patched(document: Any, patch: list[JsonObject]) -> tuple[Any, str]:
    """The document with the patch applied, or why it cannot be."""
    try:
        return jsonpatch.apply_patch(copy.deepcopy(document), patch), ""
    except _PATCH_ERRORS as error:
        return document, shown(str(error), 100)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    offset = moment.utcoffset()
    return offset is not None and not offset


def _name(tool: JsonObject) -> str:
    return str(tool.get("name"))


Rule: TypeAlias = Callable[[Contents, JsonObject], Iterator[Finding]]

_RULES: Final[dict[str, Rule]] = {
    "RUN_STARTED": Contents._started,
    "RUN_FINISHED": Contents._finished,
    "RUN_ERROR": Contents._failed,
    "TEXT_MESSAGE_START": Contents._text,
    "TEXT_MESSAGE_CHUNK": Contents._text,
    "TOOL_CALL_START": Contents._call,
    "TOOL_CALL_CHUNK": Contents._call,
    "TOOL_CALL_ARGS": Contents._call_arguments,
    "TOOL_CALL_RESULT": Contents._result,
    "MESSAGES_SNAPSHOT": Contents._messages,
    "STATE_SNAPSHOT": Contents._state,
    "STATE_DELTA": Contents._state_delta,
    "ACTIVITY_SNAPSHOT": Contents._activity,
    "ACTIVITY_DELTA": Contents._activity_delta,
    "CUSTOM": Contents._custom,
}
