"""AG-UI as clients before 1.0 read it: those that send no `protocolVersion`, up to 0.0.59.

Pure. They refuse a whole run for an outcome `cancelled`, for `pendingToolCallIds`, for a tool's result in parts and for
a source `file`. The older ones of them, up to 0.0.57, know no subagents, and a request does not show which it is.
What is left out here is left out without a substitute; `warn` is told of content that is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from agui_bridge.shapes import NO_ACTIVITY
from agui_bridge.wire import events as agui
from agui_bridge.wire.events import AguiEvent
from runtime.canonical import Json, JsonObject

RUN_CANCELLED: Final = "run_cancelled"
"""The code of RUN_ERROR for a run that was stopped on purpose: these clients have no other word for it."""

_TAG: Final = "subagentRunId"


@dataclass(frozen=True, slots=True)
class Before10:
    """The shape for one stream.

    With `subagents` child runs are told as such, which 0.0.57 refuses; else their text and calls stand among the
    run's own. `resumes`: the request answers interrupts, which the page holds for open until a run is finished.
    `stops_quietly`: a stopped run is finished for the page, with no word of why, as CopilotKit's own runtime tells it.
    """

    warn: Callable[[str], None]
    subagents: bool = False
    resumes: bool = False
    stops_quietly: bool = False

    def __call__(self, events: Sequence[AguiEvent]) -> Sequence[AguiEvent]:
        """The events as these clients read them."""
        return [told for event in events for told in self._told(event)]

    def _told(self, event: AguiEvent) -> Sequence[AguiEvent]:
        kind = event["type"]
        if not self.subagents and (kind in _SUBAGENTS or _TAG in event):
            if kind in _SUBAGENTS or kind in _STEPS:  # steps of two children may have one name
                return ()
            event = _without(event, _TAG)
        handler = _HANDLERS.get(kind)
        return (event,) if handler is None else handler(self, event)

    def _finished(self, event: AguiEvent) -> Sequence[AguiEvent]:
        outcome: JsonObject | None = event.get("outcome")
        if outcome is None:
            return (event,)
        if outcome["type"] == "cancelled":
            return self._cancelled(event)
        told = _without(outcome, "pendingToolCallIds")
        if not self.subagents and "interrupts" in told:
            told["interrupts"] = [_without(each, _TAG) for each in told["interrupts"]]
        return ({**event, "outcome": told},)

    def _cancelled(self, event: AguiEvent) -> Sequence[AguiEvent]:
        if self.stops_quietly:
            return (_without(event, "outcome"),)
        error = agui.run_error("The run was stopped.", RUN_CANCELLED, event.get("usage"))
        if not self.resumes:
            return (error,)
        return (agui.run_finished(event["threadId"], event["runId"]), error)  # else the page stays locked

    def _result(self, event: AguiEvent) -> Sequence[AguiEvent]:
        content = event["content"]
        return (event if isinstance(content, str) else {**event, "content": self._text(content, event["toolCallId"])},)

    def _snapshot(self, event: AguiEvent) -> Sequence[AguiEvent]:
        told = (self._message(message) for message in event["messages"])
        return ({**event, "messages": [message for message in told if message is not None]},)

    def _message(self, message: JsonObject) -> JsonObject | None:
        if message.get("activityType") == NO_ACTIVITY:
            return None  # the older ones never let go of an activity, so a stand-in would stay
        content = message.get("content")
        if isinstance(content, list):
            parts = cast("list[JsonObject]", content)
            readable = self._text(parts, message["id"]) if message["role"] == "tool" else self._parts(parts, message)
            message = {**message, "content": readable}
        return message if self.subagents or _TAG not in message else _without(message, _TAG)

    def _text(self, parts: list[JsonObject], where: str) -> str:
        for part in parts:
            if part["type"] != "text":
                self.warn(f"the result {where} has a part of type {part['type']} that an older client cannot be told")
        return "".join(part["text"] for part in parts if part["type"] == "text")

    def _parts(self, parts: list[JsonObject], message: JsonObject) -> list[JsonObject]:
        kept = [part for part in parts if not _is_file(part)]
        if len(kept) < len(parts):
            self.warn(f"message {message['id']} has a source of type file that an older client cannot be told")
        return kept


def _is_file(part: JsonObject) -> bool:
    source: Json = part.get("source")
    return source is not None and source["type"] == "file"


def _without(members: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in members.items() if key != name}


_SUBAGENTS: Final = frozenset({"SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"})
_STEPS: Final = frozenset({"STEP_STARTED", "STEP_FINISHED"})

_HANDLERS: Final[dict[str, Callable[[Any, AguiEvent], Sequence[AguiEvent]]]] = {
    "RUN_FINISHED": Before10._finished,
    "TOOL_CALL_RESULT": Before10._result,
    "MESSAGES_SNAPSHOT": Before10._snapshot,
}
