"""The ordering rules of AG-UI 1.0 as a linter: what a client must refuse of a stream, whatever the events hold.

Kept apart from the product on purpose: it reads events as they are on the wire and knows nothing of how they came
about. Its judgement is itself judged by tests/conformance/streams, whose verdicts come from the official client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

JsonObject = dict[str, Any]
Owner = str | None


class Illegal(Exception):
    """The event may not stand here."""


class _Opened:
    """Items of one kind: which are open, and whose. Ownership outlives the item until the next run."""

    def __init__(self, kind: str, owners: dict[str, Owner]) -> None:
        self.kind = kind
        self.open: dict[str, None] = {}
        self.owners = owners

    def start(self, id_: str, owner: Owner) -> None:
        if id_ in self.open:
            raise Illegal(f"{self.kind} {id_} is open already")
        if id_ in self.owners and owner != self.owners[id_]:
            raise Illegal(f"{self.kind} {id_} belongs to somebody else")
        self.open[id_] = None
        self.owners[id_] = owner

    def go_on(self, id_: str, owner: Owner) -> None:
        if id_ not in self.open:
            raise Illegal(f"{self.kind} {id_} is not open")
        if owner is not None and owner != self.owners[id_]:
            raise Illegal(f"{self.kind} {id_} belongs to somebody else")

    def end(self, id_: str, owner: Owner) -> None:
        self.go_on(id_, owner)
        del self.open[id_]


class Rules:
    """One stream, event by event. `ended` tells whether its last run has its terminal event."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._reset()

    def _reset(self) -> None:
        messages: dict[str, Owner] = {}
        reasoning: dict[str, Owner] = {}
        self._messages = messages
        self._texts = _Opened("text", messages)
        self._calls = _Opened("call", {})
        self._spans = _Opened("reasoning span", reasoning)
        self._thoughts = _Opened("reasoning message", reasoning)
        self._steps: set[tuple[Owner, str]] = set()
        self._agents: set[str] = set()
        self._agents_over: set[str] = set()

    @property
    def ended(self) -> bool:
        """Whether the stream may end here."""
        return self._last in ("RUN_FINISHED", "RUN_ERROR")

    def check(self, events: Iterable[JsonObject]) -> None:
        """Raise Illegal at the first event that may not stand where it stands."""
        for number, event in enumerate(events, 1):
            try:
                self.feed(event)
            except Illegal as illegal:
                raise Illegal(f"event {number}, {event['type']}: {illegal}") from None

    def feed(self, event: JsonObject) -> None:
        """The next event. Raises Illegal."""
        kind = event["type"]
        self._place_in_run(kind)
        if "subagentRunId" in event and event["subagentRunId"] is None:
            raise Illegal("an absent owner is left out")
        if kind == "RUN_STARTED":
            self._reset()
        elif kind == "RUN_FINISHED":
            self._nothing_open()
        elif (rule := _RULES.get(kind)) is not None:
            rule(self, event, event.get("subagentRunId"))
        self._last = kind if kind in ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR") else self._last

    def _place_in_run(self, kind: str) -> None:
        if self._last is None and kind not in ("RUN_STARTED", "RUN_ERROR"):
            raise Illegal("no run has started")
        if self._last == "RUN_STARTED" and kind == "RUN_STARTED":
            raise Illegal("a run is at work")
        if self._last == "RUN_ERROR" and kind != "RUN_STARTED":
            raise Illegal("the run has failed")
        if self._last == "RUN_FINISHED" and kind not in ("RUN_STARTED", "RUN_ERROR"):
            raise Illegal("the run is over")

    def _nothing_open(self) -> None:
        for opened in (self._texts, self._thoughts, self._spans, self._calls):
            if opened.open:
                raise Illegal(f"{opened.kind} {', '.join(opened.open)} is still open")
        if self._steps or self._agents:
            raise Illegal(f"still open: {sorted(name for _, name in self._steps) or sorted(self._agents)}")

    # --- one kind each --------------------------------------------------------------------------------------------

    def _call_start(self, event: JsonObject, owner: Owner) -> None:
        parent = event.get("parentMessageId")
        if parent in self._messages and self._messages[parent] != owner:
            raise Illegal(f"its message {parent} belongs to somebody else")
        self._calls.start(event["toolCallId"], owner)

    def _call_result(self, event: JsonObject, owner: Owner) -> None:
        self._messages[event["messageId"]] = owner

    def _step_start(self, event: JsonObject, owner: Owner) -> None:
        if (owner, event["stepName"]) in self._steps:
            raise Illegal("the step is open already")
        self._steps.add((owner, event["stepName"]))

    def _step_end(self, event: JsonObject, owner: Owner) -> None:
        if (owner, event["stepName"]) not in self._steps:
            raise Illegal("the step is not open")
        self._steps.remove((owner, event["stepName"]))

    def _agent_start(self, event: JsonObject, owner: Owner) -> None:
        id_, parent = event["subagentRunId"], event.get("parentSubagentRunId")
        if id_ in self._agents or id_ in self._agents_over:
            raise Illegal(f"subagent {id_} was there before")
        if parent is not None and parent not in self._agents | self._agents_over:
            raise Illegal(f"its parent {parent} was never there")
        self._agents.add(id_)

    def _agent_end(self, event: JsonObject, owner: Owner) -> None:
        if event["subagentRunId"] not in self._agents:
            raise Illegal("the subagent is not at work")
        self._agents.remove(event["subagentRunId"])
        self._agents_over.add(event["subagentRunId"])

    def _snapshot(self, event: JsonObject, owner: Owner) -> None:
        for message in event["messages"]:
            self._messages[message["id"]] = message.get("subagentRunId")


Rule = Callable[[Rules, JsonObject, Owner], None]


def _on(items: Callable[[Rules], _Opened], act: Callable[[_Opened, str, Owner], None], id_: str = "messageId") -> Rule:
    return lambda rules, event, owner: act(items(rules), event[id_], owner)


_RULES: dict[str, Rule] = {
    "TEXT_MESSAGE_START": _on(lambda r: r._texts, _Opened.start),
    "TEXT_MESSAGE_CONTENT": _on(lambda r: r._texts, _Opened.go_on),
    "TEXT_MESSAGE_END": _on(lambda r: r._texts, _Opened.end),
    "TOOL_CALL_START": Rules._call_start,
    "TOOL_CALL_ARGS": _on(lambda r: r._calls, _Opened.go_on, "toolCallId"),
    "TOOL_CALL_END": _on(lambda r: r._calls, _Opened.end, "toolCallId"),
    "TOOL_CALL_RESULT": Rules._call_result,
    "STEP_STARTED": Rules._step_start,
    "STEP_FINISHED": Rules._step_end,
    "REASONING_START": _on(lambda r: r._spans, _Opened.start),
    "REASONING_END": _on(lambda r: r._spans, _Opened.end),
    "REASONING_MESSAGE_START": _on(lambda r: r._thoughts, _Opened.start),
    "REASONING_MESSAGE_CONTENT": _on(lambda r: r._thoughts, _Opened.go_on),
    "REASONING_MESSAGE_END": _on(lambda r: r._thoughts, _Opened.end),
    "SUBAGENT_STARTED": Rules._agent_start,
    "SUBAGENT_FINISHED": Rules._agent_end,
    "SUBAGENT_ERROR": Rules._agent_end,
    "MESSAGES_SNAPSHOT": Rules._snapshot,
}
