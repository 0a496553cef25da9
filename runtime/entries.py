"""Entries: what a thread consists of, each knowing what the model sees of it.

Pure values that the fold fills: a message that somebody said, or the turn of one run with its parts, rounds and calls.
Which facts fill them is the thread's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from runtime import events as e
from runtime.canonical import Json, JsonObject
from runtime.interrupts import Interrupt
from runtime.items import (
    FINAL,
    REJECTION,
    Content,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    same_words,
)
from runtime.parts import REASONING, REFUSAL, TOOL_CALL, Part

LATE_ANSWER = "late_tool_answer"
NAMELESS = "unnamed"


@dataclass(slots=True)
class Call:
    """A committed call and what became of it."""

    call_id: str
    name: str
    arguments_json: str
    target: str
    run_id: str
    malformed: bool = False
    opaque: JsonObject | None = None
    provider: str | None = None
    provider_call_id: str | None = None
    """How whoever made it calls it, if not by our id."""
    begun: bool = False
    output: FunctionCallOutput | None = None
    output_kind: str | None = None
    answered_in: str = ""
    """The run that told of its output: one behind its own, if it had to wait for somebody."""
    answered_by: str | None = None
    """The client's id of the message that answered, if a client did."""
    error: str | None = None
    """What the client said went wrong."""
    answer: Content | None = None
    """What the client answered, be it too late."""
    late: str | None = None
    """The key of the entry that tells the model of an answer that came too late."""
    place: int = 0
    """Where its output stands among those of the thread: outputs are shown in the order in which they came."""
    asks: list[Interrupt] = field(default_factory=list[Interrupt])
    """What it has asked of somebody outside, in order."""
    records: dict[str, Json] = field(default_factory=dict[str, Json])
    """What it did once, by its own names."""
    streams: bool = False
    """Whether it may have told of its progress."""

    @property
    def is_held(self) -> bool:
        """Whether it is ours to answer and was not: it waits for somebody outside, or behind a call that does."""
        return self.output is None and not self.waits_for_client

    @property
    def waits_for_client(self) -> bool:
        """Whether the page still owes the answer."""
        return self.output is None and self.target == "client" and not self.malformed

    def as_committed(self) -> e.ToolCallCommitted:
        """The fact that committed it."""
        return e.ToolCallCommitted(
            self.call_id,
            self.name,
            self.arguments_json,
            self.target,
            self.malformed,
            self.provider_call_id,
            self.opaque,
        )

    def items(self) -> tuple[FunctionCall, FunctionCallOutput | None]:
        """The call and its output as the model sees them. A call without a name gets one: providers ask for it."""
        call = FunctionCall(
            self.call_id, self.name or NAMELESS, self.arguments_json, self.malformed, self.opaque, self.provider
        )
        return call, self.output


def said_key(id_: str, content: Content) -> str:
    """Names a message among the entries of all branches: an edited one has its old id and says something else."""
    return f"{id_}#{same_words(content)[:16]}"


@dataclass(slots=True)
class Said:
    """A message that no run of ours produced: a user's, or one taken over from a client."""

    id: str
    role: str
    content: Content
    model_visible: bool = True
    attributes: JsonObject | None = None
    runtime_role: str | None = None
    calls: list[Call] = field(default_factory=list[Call])
    key: str = ""
    words: str = ""
    """What it says, as `same_words` compares it."""
    run_id: str = ""
    """The run that took it in."""
    steers: bool = False
    """Whether that run was at work already."""
    tool_call_id: str | None = None
    """Of a tool's message that is no output of a call here: the call that it names, and what went wrong there."""
    error: str | None = None

    def __post_init__(self) -> None:
        self.key = said_key(self.id, self.content)
        self.words = same_words(self.content)

    @property
    def is_users(self) -> bool:
        """Whether a user said it in the conversation: a late answer of a page is for the model alone."""
        return self.role == "user" and self.runtime_role != LATE_ANSWER

    def items(self) -> Iterator[Item]:
        """What the model sees of it."""
        if not self.model_visible:
            return
        if self.content or not self.calls:
            yield Message(self.role, self.content, self.runtime_role)
        yield from _calls_then_outputs(self.calls)


@dataclass(slots=True)
class Round:
    """One model call of a turn."""

    number: int
    provider: str
    role: str | None = None
    phase: str | None = None
    calls: list[Call] = field(default_factory=list[Call])
    rejection: str | None = None
    """What the model was told of an answer that did not fit; the page never sees it."""

    @property
    def committed(self) -> bool:
        """Whether the round completed, and with it its text."""
        return self.role is not None


@dataclass(slots=True)
class Activity:
    """Something that is shown beside the messages, as it is now."""

    activity_id: str
    activity_type: str
    content: JsonObject
    round: int
    place: int
    """Where it came among outputs, activities and children of the thread."""


class ChildThread(Protocol):
    """The thread of a child run, as far as its parent shows it."""

    def turn_of(self, run_id: str) -> Turn | None:
        """The assistant message of a run."""
        ...

    def open_interrupts(self) -> list[Interrupt]:
        """What is asked there, and was not answered."""
        ...


@dataclass(slots=True)
class Child:
    """A child run: who was asked in which call, and what became of it.

    `number` and `request_digest` as in `child.started`. `over` is the fact that told its end. `thread` is the fold of
    its own journal, as far as somebody has read it. `place` is where its messages stand (see `Call.place`).
    """

    run_id: str
    thread_id: str
    agent_name: str
    tool_call_id: str
    number: int
    request_digest: str
    round: int
    place: int
    thread: ChildThread
    over: e.Event | None = None
    continued: bool = False
    """Whether it was suspended, and another child run goes on with it."""


@dataclass(slots=True)
class Turn:
    """The one assistant message of a run: its parts in order, its rounds, its calls.

    If the run was steered, an entry for each stretch of it, because what was said stands in between; `before` is the
    stretch before this one.
    """

    id: str
    run_id: str
    parts: list[Part] = field(default_factory=list[Part])
    rounds: dict[int, Round] = field(default_factory=dict[int, Round])
    reasoning: dict[str, e.ReasoningCompleted] = field(default_factory=dict[str, e.ReasoningCompleted])
    activities: dict[str, Activity] = field(default_factory=dict[str, Activity])
    """What tools showed beside the messages: no part of them, and nothing for the model."""
    asks: list[Interrupt] = field(default_factory=list[Interrupt])
    """What the run's executor has asked of somebody outside, beside what its calls did."""
    remembered: tuple[Json, int] | None = None
    """What the run's executor wanted to know again last, and how many outputs the thread had then."""
    children: dict[str, Child] = field(default_factory=dict[str, Child])
    """The child runs, by id. The model sees what their call returned, and nothing of what they said."""
    before: Turn | None = None
    _by_id: dict[str, Part] = field(default_factory=dict[str, Part])
    _by_call: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def key(self) -> str:
        """Names the entry among those of all branches."""
        return self.id if self.before is None else f"{self.id}+{self.before.last_round}"

    @property
    def calls(self) -> list[Call]:
        """The committed calls, in the order of the history."""
        return [call for round_ in self.rounds.values() for call in self._in_order(round_)]

    def _in_order(self, round_: Round) -> list[Call]:
        """The round's calls as they were shown; behind them those without a name, which nobody was shown."""
        unseen = [call for call in round_.calls if call.call_id not in self._by_call]
        return [call for call in round_.calls if call not in unseen] + unseen if unseen else round_.calls

    @property
    def held(self) -> list[Call]:
        """The calls that wait for somebody outside, or behind one that does."""
        return [call for call in self.calls if call.is_held]

    @property
    def last_round(self) -> int:
        """The number of the round that began last; 0 before the first."""
        if self.rounds:
            return next(reversed(self.rounds))
        return 0 if self.before is None else self.before.last_round

    def stretch_of(self, number: int) -> Turn | None:
        """The stretch in which this round is."""
        if number in self.rounds or self.before is None:
            return self if number in self.rounds else None
        return self.before.stretch_of(number)

    def final_text(self) -> str:
        """What the run answered: the text of its final response."""
        final = {number for number, round_ in self.rounds.items() if round_.role == FINAL}
        spoken = (part for part in self.parts if part.round in final and part.kind not in (REASONING, TOOL_CALL))
        return "".join(part.text for part in spoken)

    def content(self) -> list[JsonObject]:
        """The parts as `message.completed` stores them, those of earlier stretches first."""
        before = [] if self.before is None else self.before.content()
        return [*before, *(part.as_payload() for part in self.parts)]

    def items(self) -> Iterator[Item]:
        """What the model sees of it: per committed round its parts in order, then the outputs in call order."""
        by_round: dict[int, list[Part]] = {}
        for part in self.parts:
            by_round.setdefault(part.round, []).append(part)
        for number, round_ in self.rounds.items():
            if not round_.committed:
                continue
            calls = {call.call_id: call for call in round_.calls}
            for part in by_round.get(number, []):
                yield from self._item(part, round_, calls)
            ordered = self._in_order(round_)
            yield from (call.items()[0] for call in ordered if call.call_id not in self._by_call)
            yield from (output for call in ordered if (output := call.output) is not None)
            if round_.rejection is not None:
                yield Message("user", round_.rejection, REJECTION)

    def _item(self, part: Part, round_: Round, calls: dict[str, Call]) -> Iterator[Item]:
        if part.kind == TOOL_CALL:
            if (call := calls.get(part.tool_call_id or "")) is not None:
                yield call.items()[0]
        elif part.kind == REASONING:
            done = self.reasoning.get(part.part_id)
            if done is not None:
                yield Reasoning(part.text, done.provider, done.signature, done.encrypted_value, done.opaque)
        elif part.text:
            yield Message("assistant", part.text, round_.role, round_.phase, refusal=part.kind == REFUSAL)

    def known(self, part_id: str) -> Part | None:
        """The part with this id, if it has begun."""
        return self._by_id.get(part_id)

    def part(self, part_id: str, kind: str, round_: int, index: int) -> Part:
        """The part with this id, begun if it is new."""
        part = self._by_id.get(part_id)
        if part is None:
            part = self._by_id[part_id] = Part(part_id, kind, round_, index)
            self.parts.append(part)
        return part

    def replace_parts(self, content: Iterable[JsonObject]) -> None:
        """The whole message, with authority."""
        self._replace(list(enumerate(content)))

    def _replace(self, placed: list[tuple[int, JsonObject]]) -> None:
        if self.before is not None:
            end = self.before.last_round
            self.before._replace([(index, payload) for index, payload in placed if payload["round"] <= end])
            placed = [(index, payload) for index, payload in placed if payload["round"] > end]
        self.parts, self._by_id = [], {}
        for index, payload in placed:
            part = self.part(payload["part_id"], payload["kind"], payload["round"], index)
            part.committed = payload["committed"]
            part.tool_call_id = payload.get("tool_call_id")
            part.pieces = [payload["text"]] if payload.get("text") else []

    def round(self, number: int) -> Round:
        """The round with this number, begun if nothing said so."""
        return self.rounds.setdefault(number, Round(number, ""))

    def bind_call(self, call_id: str, part_id: str) -> None:
        """The part in which a call is written."""
        self._by_call[call_id] = part_id

    def round_of_call(self, call_id: str) -> int:
        """The round in which a call was written: that of its part, else the last."""
        part = self._by_id.get(self._by_call.get(call_id, ""))
        return part.round if part else self.last_round


Entry: TypeAlias = Said | Turn


def with_error(content: Content, error: str | None) -> Content:
    """A client's answer as the model sees it: the content, and what went wrong."""
    if error is None or (isinstance(content, str) and error in content):
        return content
    if isinstance(content, str):
        return f"{content}\n{error}" if content else error
    return [*content, {"type": "text", "text": error}]


def _calls_then_outputs(calls: list[Call]) -> Iterator[Item]:
    for call in calls:
        yield call.items()[0]
    yield from (output for call in calls if (output := call.output) is not None)
