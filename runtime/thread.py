"""A thread: what a session knows, as the fold of its committed events.

Pure. `Thread.apply` takes the facts in order; everything else is read from what they left behind: the transcript
(all that was shown, each entry model-visible or not), the model's history as items, the shared state, the calls that
wait for a client. A prompt, a snapshot for a page and the reconciliation of histories are all answers of this one
fold; nothing keeps a second history.

Deltas are folded too, so that a live run can be read while it speaks. `message.completed` says the same again with
authority, which is why a store may leave out the deltas of a finished run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from runtime import events as e
from runtime.canonical import Json, JsonObject
from runtime.items import Content, FunctionCall, FunctionCallOutput, Item, Message, Reasoning, same_words, text_of
from runtime.parts import REASONING, REFUSAL, TEXT, TOOL_CALL, Part
from runtime.state_delta import apply

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
    begun: bool = False
    output: FunctionCallOutput | None = None
    output_kind: str | None = None
    answered_by: str | None = None
    """The client's id of the message that answered, if a client did."""
    error: str | None = None
    """What the client said went wrong."""
    answer: Content | None = None
    """What the client answered, be it too late."""
    place: int = 0
    """Where its output stands among those of the thread: outputs are shown in the order in which they came."""

    @property
    def waits_for_client(self) -> bool:
        """Whether the page still owes the answer."""
        return self.output is None and self.target == "client" and not self.malformed

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

    def __post_init__(self) -> None:
        self.key = said_key(self.id, self.content)
        self.words = same_words(self.content)

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

    @property
    def committed(self) -> bool:
        """Whether the round completed, and with it its text."""
        return self.role is not None


@dataclass(slots=True)
class Turn:
    """The one assistant message of a run: its parts in order, its rounds, its calls."""

    id: str
    run_id: str
    parts: list[Part] = field(default_factory=list[Part])
    rounds: dict[int, Round] = field(default_factory=dict[int, Round])
    reasoning: dict[str, e.ReasoningCompleted] = field(default_factory=dict[str, e.ReasoningCompleted])
    _by_id: dict[str, Part] = field(default_factory=dict[str, Part])
    _by_call: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def key(self) -> str:
        """Names the entry among those of all branches."""
        return self.id

    @property
    def calls(self) -> list[Call]:
        """The committed calls, in order."""
        return [call for round_ in self.rounds.values() for call in round_.calls]

    @property
    def last_round(self) -> int:
        """The number of the round that began last; 0 before the first."""
        return len(self.rounds)

    def content(self) -> list[JsonObject]:
        """The parts as `message.completed` stores them."""
        return [part.as_payload() for part in self.parts]

    def parts_of(self, number: int) -> list[Part]:
        """The parts of one round, in order."""
        return [part for part in self.parts if part.round == number]

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
            unseen = [call for call in round_.calls if call.call_id not in self._by_call]  # without a name, never shown
            yield from (call.items()[0] for call in unseen)
            ordered = [call for call in round_.calls if call not in unseen] + unseen if unseen else round_.calls
            yield from (output for call in ordered if (output := call.output) is not None)

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

    def part(self, part_id: str, kind: str, round_: int, index: int) -> Part:
        """The part with this id, begun if it is new."""
        part = self._by_id.get(part_id)
        if part is None:
            part = self._by_id[part_id] = Part(part_id, kind, round_, index)
            self.parts.append(part)
        return part

    def replace_parts(self, content: Iterable[JsonObject]) -> None:
        """The whole message, with authority."""
        self.parts, self._by_id = [], {}
        for index, payload in enumerate(content):
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


@dataclass(slots=True)
class RunNote:
    """What the thread remembers of a run."""

    run_id: str
    client_run_id: str
    status: str


class Thread:
    """The fold. `position` is the thread-wide position of the last fact (a run's base plus seq)."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.position = 0
        self.entries: list[Entry] = []
        self.archive: dict[str, Entry] = {}
        """Every entry that ever was, those of older branches too, by key."""
        self.user_ids: set[str] = set()
        """The ids of all user messages that ever were."""
        self.calls: dict[str, Call] = {}
        """Every committed call of the thread, by id, whatever its branch."""
        self.outputs = 0
        """How many outputs there have been."""
        self.state: Json = {}
        self.last_run: RunNote | None = None
        self.turn: Turn | None = None
        """The assistant message of the last run, if it has begun one."""

    # --- what the facts left behind -------------------------------------------------------------------------------

    def items(self) -> list[Item]:
        """The model's history."""
        return [item for entry in self.entries for item in entry.items()]

    def users(self, start: int = 0) -> list[Said]:
        """The user messages of the branch from its entry `start` on, in order."""
        return [
            entry
            for entry in self.entries[start:]
            if isinstance(entry, Said) and entry.role == "user" and entry.runtime_role != LATE_ANSWER
        ]

    def open_calls(self) -> list[Call]:
        """The calls of the branch that the page still owes an answer, in order."""
        return [call for entry in self.entries for call in entry.calls if call.waits_for_client]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever said."""
        return not self.archive

    # --- the fold -------------------------------------------------------------------------------------------------

    def apply(self, run_id: str, base: int, seq: int, event: e.Event | None) -> None:
        """The next fact of the thread. Facts of a type that this release does not know only move the position."""
        self.position = base + seq
        if event is not None:
            handler = _HANDLERS.get(type(event))
            if handler is not None:
                handler(self, run_id, event)

    def _run_started(self, run_id: str, event: e.RunStarted) -> None:
        self.last_run = RunNote(run_id, event.client_run_id, "running")
        self.turn = None

    def _run_over(self, run_id: str, event: e.Event) -> None:
        if self.last_run is not None:
            self.last_run.status = _STATUS[type(event)]

    def _message_started(self, run_id: str, event: e.MessageStarted) -> None:
        self.turn = Turn(event.message_id, run_id)
        self._add(self.turn)

    def _round_started(self, run_id: str, event: e.RoundStarted) -> None:
        if self.turn is not None:
            self.turn.rounds[event.round] = Round(event.round, event.provider)

    def _message_delta(self, run_id: str, event: e.MessageDelta) -> None:
        if (turn := self.turn) is not None:
            turn.part(event.part_id, TEXT, turn.last_round, event.content_index).pieces.append(event.delta)

    def _reasoning_started(self, run_id: str, event: e.ReasoningStarted) -> None:
        if (turn := self.turn) is not None:
            turn.part(event.part_id, REASONING, turn.last_round, event.content_index)

    def _reasoning_delta(self, run_id: str, event: e.ReasoningDelta) -> None:
        if (turn := self.turn) is not None:
            turn.part(event.part_id, REASONING, turn.last_round, event.content_index).pieces.append(event.delta)

    def _reasoning_completed(self, run_id: str, event: e.ReasoningCompleted) -> None:
        if (turn := self.turn) is not None:
            turn.reasoning[event.part_id] = event

    def _call_started(self, run_id: str, event: e.ToolCallStarted) -> None:
        if (turn := self.turn) is not None:
            part = turn.part(event.part_id, TOOL_CALL, turn.last_round, event.content_index)
            part.tool_call_id = event.tool_call_id
            turn.bind_call(event.tool_call_id, event.part_id)

    def _call_committed(self, run_id: str, event: e.ToolCallCommitted) -> None:
        if (turn := self.turn) is None:
            return
        round_ = turn.round(turn.round_of_call(event.tool_call_id))
        call = Call(
            event.tool_call_id,
            event.tool_name,
            event.arguments_json,
            event.target,
            run_id,
            event.malformed,
            event.opaque,
            round_.provider,
        )
        round_.calls.append(call)
        self.calls[call.call_id] = call

    def _execution_started(self, run_id: str, event: e.ToolExecutionStarted) -> None:
        if (call := self.calls.get(event.tool_call_id)) is not None:
            call.begun = True

    def _call_completed(self, run_id: str, event: e.ToolCallCompleted) -> None:
        call = self.calls.get(event.tool_call_id)
        if call is not None and call.output is None:
            output = with_error(event.result, event.error)
            call.output = FunctionCallOutput(call.call_id, call.name, output, event.is_error)
            call.output_kind = event.kind
            call.place = self._next_place()
            call.answered_by, call.error = event.message_id, event.error
            call.answer = event.result

    def _next_place(self) -> int:
        self.outputs += 1
        return self.outputs

    def _round_completed(self, run_id: str, event: e.RoundCompleted) -> None:
        if (turn := self.turn) is None:
            return
        round_ = turn.round(event.round)
        round_.role, round_.phase = event.runtime_role, event.provider_phase
        kinds = {part["part_id"]: part["kind"] for part in event.parts}
        for part in turn.parts:
            if part.part_id in kinds:
                part.kind, part.committed = kinds[part.part_id], True

    def _message_completed(self, run_id: str, event: e.MessageCompleted) -> None:
        if event.role == "assistant":
            if self.turn is not None:
                self.turn.replace_parts(event.content)
            return
        said = Said(event.message_id, event.role, event.content, True, event.attributes, event.runtime_role)
        if event.runtime_role == LATE_ANSWER:
            call = self.calls.get((event.attributes or {}).get("tool_call_id", ""))
            if call is not None:
                call.answer, call.answered_by = event.content, event.message_id
                said.content = (
                    f"Late answer of the client's tool {call.name} ({call.call_id}): {text_of(event.content)}"
                )
        self._add(said)

    def _state_snapshot(self, run_id: str, event: e.StateSnapshot) -> None:
        self.state = event.snapshot

    def _state_delta(self, run_id: str, event: e.StateDelta) -> None:
        self.state = apply(self.state, event.delta)

    def _seeded(self, run_id: str, event: e.HistorySeeded) -> None:
        for payload in event.messages:
            if payload["role"] == "tool" and payload["model_visible"]:
                self._seeded_output(payload)
            else:
                self._insert(self._seeded_entry(run_id, payload), payload.get("after"))

    def _seeded_entry(self, run_id: str, payload: JsonObject) -> Said:
        calls = [
            Call(call["id"], call["name"], call["arguments"], "nobody", run_id, call.get("malformed", False))
            for call in payload.get("tool_calls", [])
        ]
        self.calls.update((call.call_id, call) for call in calls)
        return Said(
            payload["id"],
            payload["role"],
            payload.get("content", ""),
            payload["model_visible"],
            payload.get("attributes"),
            calls=calls,
        )

    def _seeded_output(self, payload: JsonObject) -> None:
        call = self.calls[payload["tool_call_id"]]
        call.error = payload.get("error")
        output = with_error(payload["content"], call.error)
        call.output = FunctionCallOutput(call.call_id, call.name, output, call.error is not None)
        call.output_kind, call.answered_by, call.answer = "client", payload["id"], payload["content"]
        call.place = self._next_place()

    def _forked(self, run_id: str, event: e.HistoryForked) -> None:
        keep = self._behind(event.keep or "")
        self.entries = self.entries[:keep] + [self.archive[key] for key in event.restored if key in self.archive]

    def _add(self, entry: Entry) -> None:
        self._insert(entry, None)

    def _insert(self, entry: Entry, after: str | None) -> None:
        """Put an entry behind the one with the key `after` (None: at the end, "": at the beginning)."""
        at = len(self.entries) if after is None else self._behind(after)
        self.entries.insert(at, entry)
        self.archive[entry.key] = entry
        if isinstance(entry, Said) and entry.role == "user":
            self.user_ids.add(entry.id)

    def _behind(self, key: str) -> int:
        if not key:
            return 0
        for index in range(len(self.entries) - 1, -1, -1):
            if self.entries[index].key == key:
                return index + 1
        return len(self.entries)


_STATUS: dict[type[e.Event], str] = {
    e.RunCompleted: "succeeded",
    e.RunFailed: "failed",
    e.RunCancelled: "cancelled",
    e.RunInterrupted: "interrupted",
}

_HANDLERS: dict[type[e.Event], Callable[[Thread, str, Any], None]] = {
    e.RunStarted: Thread._run_started,
    **dict.fromkeys(_STATUS, Thread._run_over),
    e.MessageStarted: Thread._message_started,
    e.MessageDelta: Thread._message_delta,
    e.MessageCompleted: Thread._message_completed,
    e.RoundStarted: Thread._round_started,
    e.RoundCompleted: Thread._round_completed,
    e.ReasoningStarted: Thread._reasoning_started,
    e.ReasoningDelta: Thread._reasoning_delta,
    e.ReasoningCompleted: Thread._reasoning_completed,
    e.ToolCallStarted: Thread._call_started,
    e.ToolCallCommitted: Thread._call_committed,
    e.ToolExecutionStarted: Thread._execution_started,
    e.ToolCallCompleted: Thread._call_completed,
    e.StateSnapshot: Thread._state_snapshot,
    e.StateDelta: Thread._state_delta,
    e.HistorySeeded: Thread._seeded,
    e.HistoryForked: Thread._forked,
}
