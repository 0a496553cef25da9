"""A page that comes back: one stream that brings it to where its thread stands, and goes on from there.

Pure. A thread at rest is told as a whole. A run at work is told as it stood when the page came: what is finished as
snapshots, what is open begun anew with its words so far in one piece, and then everything live. A page that came back,
at whatever point of a run, ends with what a page has that read from the start.

What is open is read off the projected events themselves, so that whatever a projection opens can be opened again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from agui_bridge.interrupts import shown
from agui_bridge.predictions import PREDICT_STATE
from agui_bridge.prelude import restated
from agui_bridge.projection import Echo, Projector
from agui_bridge.shapes import PROTOCOL_VERSION
from agui_bridge.transcript import own_messages, transcript
from agui_bridge.wire import events as agui
from agui_bridge.wire.events import AguiEvent
from runtime.canonical import JsonObject
from runtime.events import TERMINAL, ChildStarted, Record
from runtime.run import RunRecord
from runtime.thread import Thread

TEXT: Final = "text"
THOUGHT: Final = "thought"
CALL: Final = "call"
SPAN: Final = "span"
STEP: Final = "step"
SUBAGENT: Final = "subagent"


class _Change(NamedTuple):
    """What an event does to one item: `member` names the item in the event."""

    kind: str
    member: str
    act: Literal["begin", "write", "end"]


_CHANGES: Final[dict[str, _Change]] = {
    "SUBAGENT_STARTED": _Change(SUBAGENT, "subagentRunId", "begin"),
    "SUBAGENT_FINISHED": _Change(SUBAGENT, "subagentRunId", "end"),
    "SUBAGENT_ERROR": _Change(SUBAGENT, "subagentRunId", "end"),
    "STEP_STARTED": _Change(STEP, "stepName", "begin"),
    "STEP_FINISHED": _Change(STEP, "stepName", "end"),
    "TEXT_MESSAGE_START": _Change(TEXT, "messageId", "begin"),
    "TEXT_MESSAGE_CONTENT": _Change(TEXT, "messageId", "write"),
    "TEXT_MESSAGE_END": _Change(TEXT, "messageId", "end"),
    "REASONING_START": _Change(SPAN, "messageId", "begin"),
    "REASONING_END": _Change(SPAN, "messageId", "end"),
    "REASONING_MESSAGE_START": _Change(THOUGHT, "messageId", "begin"),
    "REASONING_MESSAGE_CONTENT": _Change(THOUGHT, "messageId", "write"),
    "REASONING_MESSAGE_END": _Change(THOUGHT, "messageId", "end"),
    "TOOL_CALL_START": _Change(CALL, "toolCallId", "begin"),
    "TOOL_CALL_ARGS": _Change(CALL, "toolCallId", "write"),
    "TOOL_CALL_END": _Change(CALL, "toolCallId", "end"),
}

_WRITE: Final[dict[str, Callable[[str, str], AguiEvent]]] = {
    TEXT: agui.text_message_content,
    THOUGHT: agui.reasoning_message_content,
    CALL: agui.tool_call_args,
}


@dataclass(slots=True)
class _Item:
    """Something that was begun: the event that did it, what was said for that, and its words so far."""

    begun: AguiEvent
    announced: list[AguiEvent] = field(default_factory=list[AguiEvent])
    pieces: list[str] = field(default_factory=list[str])


class OpenItems:
    """What the events of a stream have begun and not ended, in the order in which it was begun.

    A text that is begun again in its round goes on behind its earlier words.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Item] = {}
        self._texts: dict[tuple[str, str], _Item] = {}

    def take(self, events: Iterable[AguiEvent]) -> None:
        """The next events of the stream."""
        announced: list[AguiEvent] = []
        for event in events:
            change = _CHANGES.get(event["type"])
            if change is None:
                if event.get("name") == PREDICT_STATE:
                    announced = [event]
                continue
            key = (change.kind, _id_of(change, event))
            if change.act == "write":
                self._open[key].pieces.append(event["delta"])
            elif change.act == "end":
                del self._open[key]
            else:
                self._begin(key, event)
                self._open[key].announced, announced = announced, []

    def _begin(self, key: tuple[str, str], event: AguiEvent) -> None:
        owner = event.get("subagentRunId")
        if key[0] == STEP:  # no text goes on in another round
            self._texts = {at: text for at, text in self._texts.items() if text.begun.get("subagentRunId") != owner}
        item = self._open[key] = self._texts.get(key) or _Item(event)
        if key[0] == TEXT:
            self._texts[key] = item

    def ids(self, kind: str) -> set[str]:
        """The ids of the open items of a kind."""
        return {id_ for each, id_ in self._open if each == kind}

    def begun_anew(self) -> list[AguiEvent]:
        """The events that begin all of it, each with its words so far in one piece."""
        events: list[AguiEvent] = []
        for (kind, id_), item in self._open.items():
            events += [*item.announced, item.begun]
            if said := "".join(item.pieces):
                events.append(_WRITE[kind](id_, said))
        return events


def _id_of(change: _Change, event: AguiEvent) -> str:
    """What names the item among all of its kind: steps have the same names in every run of a tree."""
    id_ = event[change.member]
    return id_ if change.kind != STEP else f"{event.get('subagentRunId', '')}/{id_}"


class Reopening:
    """The way back of one reader into a run that is at work.

    `run` is its record when the reader came, and `end` where its tree ended then: up to there everything is restated,
    which is a `root_seq`. `before` is a fold of its
    own of the thread before the run, which is driven on here; `messages` are what the page shows.
    """

    def __init__(
        self, echo: Echo, run: RunRecord, before: Thread, messages: list[JsonObject], end: int | None = None
    ) -> None:
        self._run = run
        self._end = run.last_seq if end is None else end
        self._below: dict[str, Thread] = {}
        self._thread = before
        self._messages = messages
        self._projector = Projector(echo)
        self._open = OpenItems()
        self._caught_up = False

    def feed(self, record: Record) -> Sequence[AguiEvent]:
        """The AG-UI events that this record becomes; those of the run and all below it are given in order from the
        first."""
        if not self._caught_up and record.run_id == self._run.run_id and type(record.event) in TERMINAL:
            self._caught_up = True  # its end is told as it is, whenever it came
            return [*self._restated(), *self._projector.take(record)]
        events = self._projector.take(record)
        if self._caught_up:
            return events
        self._fold(record)
        self._open.take(events)
        out = [event for event in events if event["type"] == "RUN_STARTED"]
        if record.root_seq >= self._end:
            self._caught_up = True
            out += self._restated()
        return out

    def _fold(self, record: Record) -> None:
        own = record.run_id == self._run.run_id
        thread = self._thread if own else self._below.get(record.run_id)
        if thread is None:
            return
        thread.apply(record.run_id, self._run.base if own else 0, record.seq, record.event)
        if isinstance(record.event, ChildStarted) and (below := thread.below.get(record.event.run_id)) is not None:
            self._below[record.event.run_id] = below

    def _restated(self) -> list[AguiEvent]:
        thread, run_id = self._thread, self._run.run_id
        own: list[JsonObject] = []
        if thread.turn is not None and thread.turn.run_id == run_id:
            shown = {message["id"] for message in self._messages}
            own = _finished(list(own_messages(thread, run_id, self._open.ids(CALL))), self._open, shown)
        lines = transcript(thread, without_run=run_id)
        opening = restated(lines, self._messages, own, had_progress=thread.has_streamed)
        self._projector.rebase(opening.base, thread.state, asks=bool(thread.open_interrupts()))
        return [*opening.events, agui.state_snapshot(thread.state), *self._open.begun_anew()]


def _finished(own: list[JsonObject], open_: OpenItems, shown: Collection[str]) -> list[JsonObject]:
    """A run's messages without what is open in them.

    Of one that is open as a whole only its place stays, and that only where something finished stands behind it or
    the page shows it already: stock clients never reorder, and what they show of it is begun anew.
    """
    texts, thoughts = open_.ids(TEXT), open_.ids(THOUGHT)
    places: list[JsonObject] = []
    for message in own:
        if message["id"] in thoughts:
            places.append({**message, "content": ""})
        elif message["id"] in texts:
            places.append({name: value for name, value in message.items() if name != "content"})
        else:
            places.append(message)
    while places and places[-1]["id"] not in shown and _is_place(places[-1], thoughts):
        places.pop()
    return places


def _is_place(message: JsonObject, thoughts: Collection[str]) -> bool:
    return message["id"] in thoughts or message.keys() == {"id", "role"}


def at_rest(thread: Thread, echo: Echo, messages: list[JsonObject]) -> list[AguiEvent]:
    """The whole stream for a page that comes back to a thread on which no run is at work; it shows `messages`."""
    started = agui.run_started(
        echo.thread_id, echo.run_id, protocol_version=PROTOCOL_VERSION, parent_run_id=echo.parent_run_id
    )
    opening = restated(transcript(thread), messages, had_progress=thread.has_streamed)
    finished = agui.run_finished(echo.thread_id, echo.run_id, outcome=what_waits(thread))
    return [started, *opening.events, agui.state_snapshot(thread.state), finished]


def what_waits(thread: Thread) -> JsonObject:
    """The outcome by which a page learns what the thread at rest waits for.

    Calls of the page's own tools are no part of it: they are pending in the run that made them, and stand in the
    snapshot without a result.
    """
    interrupts = [shown(interrupt.as_payload()) for interrupt in thread.open_interrupts()]
    return agui.interrupt(interrupts) if interrupts else agui.success(None)
