"""The order of events: what may stand where, what must be closed, and whose it is. Pure.

One stream, event by event. After a fault the rules go on as a lenient reader would, so that one fault is found once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from agui_check.findings import Finding, JsonObject, shown

Owner: TypeAlias = str | None

_BOUNDARIES: Final = ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR")


@dataclass(slots=True)
class _Item:
    """A message, call, span or thought: whose it is, how it was opened, and what its opener said."""

    owner: Owner
    chunked: bool
    said: dict[str, Any]
    open: bool = True


@dataclass(slots=True)
class _Items:
    """All items of one kind in a run, by id."""

    kind: str
    id_member: str
    requirement: str
    reopening: str
    openers: tuple[str, ...] = ()
    known: dict[str, _Item] = field(default_factory=dict[str, _Item])

    def open_ids(self, owner: Owner | None = None, *, chunked: bool | None = None, anybody: bool = True) -> list[str]:
        return [
            id_
            for id_, item in self.known.items()
            if item.open and (anybody or item.owner == owner) and chunked in (None, item.chunked)
        ]


class Ordering:
    """The rules of order over one stream. `ended` tells whether the last run has its terminal event."""

    def __init__(self) -> None:
        self._last: str | None = None
        self.ended = False
        self._begin_run()

    def _begin_run(self) -> None:
        self.texts = _Items("text message", "messageId", "R-085", "R-087", ("role", "name"))
        self.calls = _Items("tool call", "toolCallId", "R-100", "R-102", ("toolCallName", "parentMessageId"))
        self.spans = _Items("reasoning span", "messageId", "R-135", "R-135")
        self.thoughts = _Items("reasoning message", "messageId", "R-135", "R-135", ("role",))
        self._messages: dict[str, Owner] = {}
        self._steps: dict[tuple[Owner, str], None] = {}
        self._agents: dict[str, bool] = {}

    def feed(self, event: JsonObject) -> Iterator[Finding]:
        """What is wrong with this event where it stands. The event has the members that its type requires."""
        kind: str = event["type"]
        yield from self._place(kind)
        if kind == "RUN_STARTED":
            self._begin_run()
        elif kind == "RUN_FINISHED":
            yield from self._all_closed("R-070", remark=False)
        elif kind == "RUN_ERROR":
            yield from self._all_closed("R-070", remark=True)
        else:
            if kind in _CLOSE_CHUNKS:
                self._close_chunks(event.get("subagentRunId"))
            rule = _RULES.get(kind)
            if rule is not None:
                yield from rule(self, event, event.get("subagentRunId"))
        if kind in _BOUNDARIES:
            self._last = kind
            self.ended = kind != "RUN_STARTED"
        elif self._last is None:
            self._last = "RUN_STARTED"

    def _place(self, kind: str) -> Iterator[Finding]:
        if self._last is None and kind not in ("RUN_STARTED", "RUN_ERROR"):
            yield _fatal("R-065", f"The first event is {kind}.")
        elif self._last == "RUN_STARTED" and kind == "RUN_STARTED":
            yield _fatal("R-067", "A run starts while another is open.")
        elif self._last == "RUN_FINISHED" and kind not in ("RUN_STARTED", "RUN_ERROR"):
            yield _fatal("R-068", f"{kind} stands behind RUN_FINISHED.")
        elif self._last == "RUN_ERROR" and kind != "RUN_STARTED":
            yield _fatal("R-068", f"{kind} stands behind RUN_ERROR.")

    def _all_closed(self, requirement: str, *, remark: bool) -> Iterator[Finding]:
        for items in (self.texts, self.calls, self.thoughts, self.spans):
            self._close_chunks(None, anybody=True)
            left = items.open_ids()
            if left:
                yield _left_open(requirement, items.kind, left, remark=remark)
                for id_ in left:
                    items.known[id_].open = False
        steps = [name for _, name in self._steps]
        agents = [id_ for id_, at_work in self._agents.items() if at_work]
        for kind, left in (("step", steps), ("subagent", agents)):
            if left:
                yield _left_open(requirement, kind, left, remark=remark)
        self._steps.clear()
        self._agents = dict.fromkeys(self._agents, False)

    # --- items that open, go on and end -------------------------------------------------------------------------------

    def start(self, items: _Items, event: JsonObject, owner: Owner, *, chunked: bool = False) -> Iterator[Finding]:
        id_ = event[items.id_member]
        said = {name: event.get(name) for name in items.openers}
        if "role" in said and said["role"] is None:
            said["role"] = "assistant"
        item = items.known.get(id_)
        if item is not None and item.open:
            yield _fatal(items.requirement, f"The {items.kind} {id_} is open already.")
        elif item is not None:
            if item.owner != owner:
                yield _fatal("R-146", f"The {items.kind} {id_} is opened again by another owner.")
            elif any(item.said[name] != said[name] for name in items.openers):
                yield Finding(items.reopening, f"The {items.kind} {id_} is opened again as something else.")
        if items is self.texts:
            self._messages[id_] = owner
        parent = event.get("parentMessageId")
        if items is self.calls and parent in self._messages and self._messages[parent] != owner:
            yield _fatal("R-146", f"The call {id_} belongs to another owner than its message {parent}.")
        items.known[id_] = _Item(owner, chunked, said)

    def go_on(self, items: _Items, event: JsonObject, owner: Owner) -> Iterator[Finding]:
        id_ = event[items.id_member]
        item = items.known.get(id_)
        if item is None or not item.open:
            yield _fatal(items.requirement, f"{event['type']} for the {items.kind} {id_}, which is not open.")
        elif item.chunked:
            yield _fatal("R-091", f"{event['type']} for the {items.kind} {id_}, which came in chunks.")
        elif owner is not None and owner != item.owner:
            yield _fatal("R-146", f"The {items.kind} {id_} goes on under another owner.")

    def end(self, items: _Items, event: JsonObject, owner: Owner) -> Iterator[Finding]:
        yield from self.go_on(items, event, owner)
        if event[items.id_member] in items.known:
            items.known[event[items.id_member]].open = False

    def chunk(self, items: _Items, event: JsonObject, owner: Owner) -> Iterator[Finding]:
        """A chunk opens an item, or goes on with the one that is open in its owner's lane."""
        id_ = event.get(items.id_member)
        lane = items.open_ids(owner, chunked=True, anybody=False) or (
            items.open_ids(chunked=True) if owner is None else []
        )
        if id_ is None and len(lane) > 1:
            yield _fatal("R-095", f"A {items.kind} chunk could belong to each of {', '.join(lane)}.")
        elif id_ is None and not lane:
            yield _fatal("R-092", f"The first {items.kind} chunk has no {items.id_member}.")
        elif id_ is not None and id_ not in lane:
            yield from self._open_by_chunk(items, event, owner)
        else:
            opened = items.known[id_ or lane[0]].said
            for name in items.openers:
                if name in event and event[name] != opened[name]:
                    yield _fatal("R-093", f"A later {items.kind} chunk has another {name}.")

    def _open_by_chunk(self, items: _Items, event: JsonObject, owner: Owner) -> Iterator[Finding]:
        item = items.known.get(event[items.id_member])
        if item is not None and item.open and not item.chunked:
            yield _fatal("R-091", f"A chunk goes on with the {items.kind} that {event['type'][:-6]}_START opened.")
            return
        if items is self.calls and "toolCallName" not in event:
            yield _fatal("R-092", "The first chunk of a tool call names no tool.")
            return
        self._close_chunks(owner)
        yield from self.start(items, event, owner, chunked=True)

    def _close_chunks(self, owner: Owner, *, anybody: bool = False) -> None:
        for items in (self.texts, self.calls, self.thoughts):
            for id_ in items.open_ids(owner, chunked=True, anybody=anybody):
                items.known[id_].open = False

    # --- the others ---------------------------------------------------------------------------------------------------

    def _result(self, event: JsonObject, owner: Owner) -> Iterator[Finding]:
        self._messages[event["messageId"]] = owner
        yield from ()

    def _step_start(self, event: JsonObject, owner: Owner) -> Iterator[Finding]:
        step = (owner, event["stepName"])
        if step in self._steps:
            yield _fatal("R-080", f"The step {shown(step[1])} is open already.")
        self._steps[step] = None

    def _step_end(self, event: JsonObject, owner: Owner) -> Iterator[Finding]:
        step = (owner, event["stepName"])
        if step not in self._steps:
            yield _fatal("R-080", f"The step {shown(step[1])} is not open under this owner.")
        self._steps.pop(step, None)

    def _agent_start(self, event: JsonObject, owner: Owner) -> Iterator[Finding]:
        id_, parent = event["subagentRunId"], event.get("parentSubagentRunId")
        if id_ in self._agents:
            yield _fatal("R-143", f"The subagent run {id_} was there before.")
        if parent is not None and parent not in self._agents:
            yield _fatal("R-147", f"The parent {parent} was never announced.")
        self._agents[id_] = True

    def _agent_end(self, event: JsonObject, owner: Owner) -> Iterator[Finding]:
        id_ = event["subagentRunId"]
        if not self._agents.get(id_, False):
            yield _fatal("R-144", f"{event['type']} for the subagent run {id_}, which is not at work.")
        self._agents[id_] = False

    def _snapshot(self, event: JsonObject, owner: Owner) -> Iterator[Finding]:
        self._messages |= {message["id"]: message.get("subagentRunId") for message in event["messages"]}
        yield from ()


def _fatal(requirement: str, message: str) -> Finding:
    return Finding(requirement, message, fatal=True)


def _left_open(requirement: str, kind: str, left: list[str], *, remark: bool) -> Finding:
    names = ", ".join(left[:3])
    if remark:
        return Finding(requirement, f"A {kind} is left open at RUN_ERROR, which is legal: {names}.", remark=True)
    return Finding(requirement, f"A {kind} is left open at RUN_FINISHED: {names}.", fatal=True)


Rule: TypeAlias = Callable[[Ordering, JsonObject, Owner], Iterator[Finding]]
_Act: TypeAlias = Callable[[Ordering, _Items, JsonObject, Owner], Iterator[Finding]]


def _on(items: Callable[[Ordering], _Items], act: _Act) -> Rule:
    return lambda rules, event, owner: act(rules, items(rules), event, owner)


def _texts(rules: Ordering) -> _Items:
    return rules.texts


def _calls(rules: Ordering) -> _Items:
    return rules.calls


def _thoughts(rules: Ordering) -> _Items:
    return rules.thoughts


_RULES: Final[dict[str, Rule]] = {
    "TEXT_MESSAGE_START": _on(_texts, Ordering.start),
    "TEXT_MESSAGE_CONTENT": _on(_texts, Ordering.go_on),
    "TEXT_MESSAGE_END": _on(_texts, Ordering.end),
    "TEXT_MESSAGE_CHUNK": _on(_texts, Ordering.chunk),
    "TOOL_CALL_START": _on(_calls, Ordering.start),
    "TOOL_CALL_ARGS": _on(_calls, Ordering.go_on),
    "TOOL_CALL_END": _on(_calls, Ordering.end),
    "TOOL_CALL_CHUNK": _on(_calls, Ordering.chunk),
    "TOOL_CALL_RESULT": Ordering._result,
    "STEP_STARTED": Ordering._step_start,
    "STEP_FINISHED": Ordering._step_end,
    "REASONING_START": _on(lambda rules: rules.spans, Ordering.start),
    "REASONING_END": _on(lambda rules: rules.spans, Ordering.end),
    "REASONING_MESSAGE_START": _on(_thoughts, Ordering.start),
    "REASONING_MESSAGE_CONTENT": _on(_thoughts, Ordering.go_on),
    "REASONING_MESSAGE_END": _on(_thoughts, Ordering.end),
    "REASONING_MESSAGE_CHUNK": _on(_thoughts, Ordering.chunk),
    "SUBAGENT_STARTED": Ordering._agent_start,
    "SUBAGENT_FINISHED": Ordering._agent_end,
    "SUBAGENT_ERROR": Ordering._agent_end,
    "MESSAGES_SNAPSHOT": Ordering._snapshot,
}


def can_be_placed(event: JsonObject) -> bool:
    """Whether an event that the schema refuses still has the ids that the rules of order go by."""
    names = _NEEDED.get(event["type"], ())
    return all(isinstance(event.get(name), str) for name in names) and event["type"] != "MESSAGES_SNAPSHOT"


_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    kind: ("toolCallId",) if kind.startswith("TOOL_") else ("messageId",)
    for kind in _RULES
    if kind.startswith(("TEXT_", "TOOL_", "REASONING_")) and not kind.endswith("_CHUNK")
} | {
    "TOOL_CALL_RESULT": ("messageId", "toolCallId"),
    "STEP_STARTED": ("stepName",),
    "STEP_FINISHED": ("stepName",),
    **dict.fromkeys(("SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"), ("subagentRunId",)),
}

_CLOSE_CHUNKS: Final = frozenset(
    kind
    for kind in (*_RULES, "STATE_SNAPSHOT", "STATE_DELTA", "CUSTOM")
    if not kind.endswith("_CHUNK") and kind not in ("SUBAGENT_STARTED", "MESSAGES_SNAPSHOT")
)
"""Events that end the chunks before them in their owner's lane."""
