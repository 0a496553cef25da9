"""A thread: what a session knows, as the fold of its committed events.

Pure. `Thread.apply` takes the facts in order; everything else is read from what they left behind: the transcript
(all that was shown, each entry model-visible or not), the model's history as items, the shared state, the calls that
wait for a client. A prompt, a snapshot for a page and the reconciliation of histories are all answers of this one
fold; nothing keeps a second history.

Deltas are folded too, so that a live run can be read while it speaks. `message.completed` says the same again with
authority, which is why a store may leave out the deltas of a finished run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from runtime import events as e
from runtime.canonical import Json, JsonObject
from runtime.entries import LATE_ANSWER, Activity, Call, Child, Entry, Round, Said, Turn, with_error
from runtime.interrupts import Interrupt
from runtime.items import REJECTION, FunctionCallOutput, Item, text_of
from runtime.parts import REASONING, TEXT, TOOL_CALL
from runtime.state_delta import PatchConflict, apply

ARTIFACT = "agui-bridge.artifact"
"""The type of the activity that shows an artifact."""

PROGRESS = "agui-bridge.progress"
"""The type of the activity that shows how far a call is."""

ELSEWHERE = "elsewhere"
"""The target of a call in a message that is not the model's: nobody here answers it."""


@dataclass(slots=True)
class RunNote:
    """What the thread remembers of a run."""

    run_id: str
    client_run_id: str
    status: str


@dataclass(slots=True)
class Answer:
    """How an interrupt was answered, and by the request of which run."""

    event: e.InterruptAnswered
    run_id: str


class Thread:
    """The fold. `position` is the thread-wide position of the last fact (a run's base plus seq).

    On the thread of a child (`of_child`) an activity is that of its run; elsewhere later runs may change it.
    """

    def __init__(self, thread_id: str, *, of_child: bool = False) -> None:
        self.thread_id = thread_id
        self._of_child = of_child
        self.position = 0
        self.entries: list[Entry] = []
        self.archive: dict[str, Entry] = {}
        """Every entry that ever was, those of older branches too, by key."""
        self.user_ids: set[str] = set()
        """The ids of all user messages that ever were."""
        self.calls: dict[str, Call] = {}
        """Every committed call of the thread, by id, whatever its branch."""
        self.call_ids: set[str] = set()
        """Every id under which a call was ever shown here, be it that it came to nothing, or that only a page's own
        message names it: none is given to another call."""
        self._open_ids: set[str] = set()
        """The calls without an output, whatever their branch."""
        self.outputs = 0
        """How many outputs there have been."""
        self.state: Json = {}
        self.agents: dict[str, str] = {}
        """The agent of each run, by the run's id."""
        self.children: dict[str, Child] = {}
        """Every child run of the thread, by id, whatever its branch."""
        self.below: dict[str, Thread] = {}
        """The folds of the child runs' threads, by run: whoever reads or drives one does so here."""
        self.answers: dict[str, Answer] = {}
        """What was answered here, by interrupt: to what was asked on this thread and below it."""
        self.last_run: RunNote | None = None
        self.turn: Turn | None = None
        """The assistant message of the last run, if it has begun one."""

    # --- what the facts left behind -------------------------------------------------------------------------------

    def items(self) -> list[Item]:
        """The model's history."""
        return [item for entry in self.entries for item in entry.items()]

    def users(self) -> list[Said]:
        """The user messages of the branch, in order."""
        return [entry for entry in self.entries if isinstance(entry, Said) and entry.is_users]

    def open_calls(self) -> list[Call]:
        """The calls of the branch that the page still owes an answer, in order."""
        return [call for call in self._unanswered(self.entries) if call.waits_for_client]

    def held_calls(self) -> list[Call]:
        """The calls of the branch that are ours to answer and were not, in order: between two runs those that wait for
        somebody outside, or behind one that does."""
        return [call for call in self._unanswered(self._turns()) if call.is_held]

    def open_before(self, run_id: str) -> list[Call]:
        """The calls of the branch that runs before this one have left open, in order."""
        return [call for call in self._unanswered(self._turns()) if call.run_id != run_id]

    def _unanswered(self, entries: Iterable[Entry]) -> Iterable[Call]:
        """The calls of these entries without an output. Mostly there are none, and then nothing is looked through."""
        if not self._open_ids:
            return ()
        return (call for entry in entries for call in entry.calls if call.call_id in self._open_ids)

    def open_interrupts(self, turns: Collection[Turn] | None = None) -> list[Interrupt]:
        """What the branch's turns, or these of them, ask and nobody has answered: what their executors ask, then what
        their calls do, those of children too."""
        turns = self._turns() if turns is None else turns
        asked = [ask for turn in turns for ask in turn.asks if ask.id not in self.answers]
        return asked + self.asked_by(call for call in self._unanswered(turns) if call.is_held)

    def asked_by(self, calls: Iterable[Call]) -> list[Interrupt]:
        """What these held calls ask and nobody has answered."""
        asked: list[Interrupt] = []
        for call in calls:
            asked += call.asks
            for child in self.children.values():
                if child.tool_call_id == call.call_id and not child.continued:
                    asked += child.thread.open_interrupts()
        return [interrupt for interrupt in asked if interrupt.id not in self.answers]

    def turn_of(self, run_id: str) -> Turn | None:
        """The assistant message of a run, its last stretch if it was steered."""
        return next((turn for turn in reversed(self._turns()) if turn.run_id == run_id), None)

    def _turns(self) -> list[Turn]:
        return [entry for entry in self.entries if isinstance(entry, Turn)]

    def agent_of(self, run_id: str) -> str | None:
        """The agent of a run of this thread, or of one below it."""
        found = (below.agent_of(run_id) for below in self.below.values())
        return self.agents.get(run_id) or next((agent for agent in found if agent is not None), None)

    def owns(self, call_id: str) -> bool:
        """Whether this is a call of the thread's own or of one below it, and not one that only somebody's foreign
        message shows."""
        call = self.calls.get(call_id)
        own = call is not None and call.target != ELSEWHERE
        return own or any(below.owns(call_id) for below in self.below.values())

    def is_said_below(self, message_id: str) -> bool:
        """Whether this is the assistant message of a child run."""
        return any(message_id in below.archive or below.is_said_below(message_id) for below in self.below.values())

    @property
    def has_streamed(self) -> bool:
        """Whether calls, of children too, may have told of their progress, which a page may still show."""
        own = any(call.streams for call in self.calls.values())
        return own or any(below.has_streamed for below in self.below.values())

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
        self.agents[run_id] = event.agent_id
        self.last_run = RunNote(run_id, event.client_run_id, "running")
        self.turn = None

    def _run_over(self, run_id: str, event: e.Event) -> None:
        if self.last_run is not None:
            self.last_run.status = _STATUS[type(event)]
        if isinstance(event, e.RunSuspended):
            for call in self.held_calls():
                call.begun = False  # whatever it did, it will be called again from its top
                self._end_progress(call.call_id)

    def _message_started(self, run_id: str, event: e.MessageStarted) -> None:
        self.turn = Turn(event.message_id, run_id)
        self._add(self.turn)

    def _round_started(self, run_id: str, event: e.RoundStarted) -> None:
        if self.turn is None:
            return
        if self._is_steered():
            self.turn = Turn(self.turn.id, run_id, before=self.turn)
            self._add(self.turn)
        self.turn.rounds[event.round] = Round(event.round, event.provider)

    def _is_steered(self) -> bool:
        """Whether something was said since the turn's last round."""
        last = self.entries[-1] if self.entries else None
        return isinstance(last, Said) and last.steers

    def _message_delta(self, run_id: str, event: e.MessageDelta) -> None:
        if (turn := self.turn) is not None:
            part = turn.known(event.part_id) or turn.part(event.part_id, TEXT, turn.last_round, event.content_index)
            part.pieces.append(event.delta)

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
            self.call_ids.add(event.tool_call_id)
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
            event.provider_call_id,
        )
        round_.calls.append(call)
        self.calls[call.call_id] = call
        self.call_ids.add(call.call_id)
        self._open_ids.add(call.call_id)

    def _execution_started(self, run_id: str, event: e.ToolExecutionStarted) -> None:
        if (call := self.calls.get(event.tool_call_id)) is not None:
            call.begun = True
            call.streams = call.streams or bool(event.streams)

    def _call_progress(self, run_id: str, event: e.ToolCallProgress) -> None:
        call = self.calls.get(event.tool_call_id)
        if call is None or call.output is None:
            self._show(progress_id(event.tool_call_id), PROGRESS, progress_content(event))

    def _end_progress(self, call_id: str) -> None:
        if self.turn is not None:
            self.turn.activities.pop(progress_id(call_id), None)

    def _call_completed(self, run_id: str, event: e.ToolCallCompleted) -> None:
        self._end_progress(event.tool_call_id)
        call = self.calls.get(event.tool_call_id)
        if call is not None and call.output is None:
            self._open_ids.discard(call.call_id)
            output = with_error(event.result, event.error)
            call.output = FunctionCallOutput(call.call_id, call.name, output, event.is_error)
            call.output_kind, call.answered_in = event.kind, run_id
            call.place = self._next_place()
            call.answered_by, call.error = event.message_id, event.error
            call.answer = event.result

    def _call_recorded(self, run_id: str, event: e.ToolCallRecorded) -> None:
        if (call := self.calls.get(event.tool_call_id)) is not None:
            call.records[event.key] = event.value

    def _remembered(self, run_id: str, event: e.ExecutorRemembered) -> None:
        if self.turn is not None:
            self.turn.remembered = event.value, self.outputs

    def _interrupt_raised(self, run_id: str, event: e.InterruptRaised) -> None:
        if event.tool_call_id is None:
            if self.turn is not None:
                self.turn.asks.append(Interrupt(event, run_id))
        elif (call := self.calls.get(event.tool_call_id)) is not None:
            call.asks.append(Interrupt(event, run_id))

    def _interrupt_answered(self, run_id: str, event: e.InterruptAnswered) -> None:
        self.answers.setdefault(event.interrupt_id, Answer(event, run_id))

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
                self.call_ids |= {part.tool_call_id for part in self.turn.parts if part.tool_call_id is not None}
            return
        if event.runtime_role == REJECTION:  # a part of the run's own message, between two of its rounds
            if self.turn is not None:
                self.turn.round(self.turn.last_round).rejection = text_of(event.content)
            return
        said = Said(event.message_id, event.role, event.content, True, event.attributes, event.runtime_role)
        said.run_id = run_id
        said.steers = self.turn is not None and self.turn.run_id == run_id
        if event.runtime_role == LATE_ANSWER:
            self._late_answer(event, said)
        self._add(said)

    def _late_answer(self, event: e.MessageCompleted, said: Said) -> None:
        told = event.attributes or {}
        if (call := self.calls.get(told.get("tool_call_id", ""))) is not None:
            call.answer, call.answered_by, call.late = event.content, event.message_id, said.key
            call.place = self._next_place()  # it is shown only from now on
            call.error = told.get("error")
            answer, named = with_error(event.content, call.error), f"{call.name} ({call.call_id}): "
            said.content = named + answer if isinstance(answer, str) else [{"type": "text", "text": named}, *answer]

    def _state_snapshot(self, run_id: str, event: e.StateSnapshot) -> None:
        self.state = event.snapshot

    def _state_delta(self, run_id: str, event: e.StateDelta) -> None:
        self.state = apply(self.state, event.delta)

    def _activity_snapshot(self, run_id: str, event: e.ActivitySnapshot) -> None:
        self._show(event.activity_id, event.activity_type, event.content)

    def _activity_delta(self, run_id: str, event: e.ActivityDelta) -> None:
        if (activity := self._activity(event.activity_id)) is not None:
            with suppress(PatchConflict):  # a page skips it, too
                activity.content = apply(activity.content, event.delta)

    def _artifact_created(self, run_id: str, event: e.ArtifactCreated) -> None:
        self._show(event.id, ARTIFACT, artifact_content(event))

    def _show(self, activity_id: str, activity_type: str, content: JsonObject) -> None:
        if (activity := self._activity(activity_id)) is not None:
            activity.activity_type, activity.content = activity_type, content
        elif (turn := self.turn) is not None:
            turn.activities[activity_id] = Activity(
                activity_id, activity_type, content, turn.last_round, self._next_place()
            )

    def _activity(self, activity_id: str) -> Activity | None:
        turns: Iterable[Turn] = (entry for entry in reversed(self.entries) if isinstance(entry, Turn))
        if self._of_child:
            turns = (turn for turn in turns if self.turn is not None and turn.run_id == self.turn.run_id)
        return next((turn.activities[activity_id] for turn in turns if activity_id in turn.activities), None)

    def _seeded(self, run_id: str, event: e.HistorySeeded) -> None:
        for payload in event.messages:
            named = [payload.get("tool_call_id"), *(call["id"] for call in payload.get("tool_calls", []))]
            self.call_ids |= {id_ for id_ in named if id_ is not None}
            if payload["role"] == "tool" and payload["model_visible"]:
                self._seeded_output(payload)
            else:
                self._insert(self._seeded_entry(run_id, payload), payload.get("after"))

    def _seeded_entry(self, run_id: str, payload: JsonObject) -> Said:
        visible = payload["model_visible"]
        target = "nobody" if visible else ELSEWHERE
        calls = [
            Call(call["id"], call["name"], call["arguments"], target, run_id, call.get("malformed", False))
            for call in payload.get("tool_calls", [])
        ]
        for call in calls:
            if visible or not self.owns(call.call_id):  # a foreign message never takes the place of a call of ours
                self.calls[call.call_id] = call
                self._open_ids.add(call.call_id)
        return Said(
            payload["id"],
            payload["role"],
            payload.get("content", ""),
            visible,
            payload.get("attributes"),
            calls=calls,
            run_id=run_id,
            tool_call_id=payload.get("tool_call_id"),
            error=payload.get("error"),
        )

    def _child_started(self, run_id: str, event: e.ChildStarted) -> None:
        if (turn := self.turn) is None or event.run_id in self.children:
            return
        earlier = self.children.get(event.continues or "")
        if earlier is not None:
            earlier.continued = True
        below = self.below[event.run_id] = self.below.get(event.continues or "") or Thread(
            event.thread_id, of_child=True
        )
        self.children[event.run_id] = turn.children[event.run_id] = Child(
            event.run_id,
            event.thread_id,
            event.agent_name,
            event.tool_call_id,
            event.number,
            event.request_digest,
            turn.round_of_call(event.tool_call_id),
            self._next_place(),
            below,
        )

    def _child_over(self, run_id: str, event: e.Event) -> None:
        assert isinstance(
            event, e.ChildCompleted | e.ChildFailed | e.ChildCancelled | e.ChildInterrupted | e.ChildSuspended
        )
        if (child := self.children.get(event.run_id)) is not None:
            child.over = child.over or event

    def _seeded_output(self, payload: JsonObject) -> None:
        call = self.calls[payload["tool_call_id"]]
        self._open_ids.discard(call.call_id)
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


def progress_id(tool_call_id: str) -> str:
    """Names the activity that shows how far a call is."""
    return f"{tool_call_id}-progress"


def progress_content(event: e.ToolCallProgress) -> JsonObject:
    """What that activity says."""
    return {"toolCallId": event.tool_call_id, "toolName": event.tool_name, "value": event.value}


def artifact_content(event: e.ArtifactCreated) -> JsonObject:
    """What the activity that shows an artifact says of it."""
    return {
        "id": event.id,
        "name": event.name,
        "mediaType": event.media_type,
        "size": event.size,
        "digest": event.digest,
    }


_STATUS: dict[type[e.Event], str] = {
    e.RunCompleted: "succeeded",
    e.RunFailed: "failed",
    e.RunCancelled: "cancelled",
    e.RunInterrupted: "interrupted",
    e.RunSuspended: "suspended",
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
    e.ToolCallProgress: Thread._call_progress,
    e.ToolCallCompleted: Thread._call_completed,
    e.ToolCallRecorded: Thread._call_recorded,
    e.ExecutorRemembered: Thread._remembered,
    e.InterruptRaised: Thread._interrupt_raised,
    e.InterruptAnswered: Thread._interrupt_answered,
    e.StateSnapshot: Thread._state_snapshot,
    e.StateDelta: Thread._state_delta,
    e.ActivitySnapshot: Thread._activity_snapshot,
    e.ActivityDelta: Thread._activity_delta,
    e.ArtifactCreated: Thread._artifact_created,
    e.ChildStarted: Thread._child_started,
    **dict.fromkeys(e.CHILD_OVER, Thread._child_over),
    e.HistorySeeded: Thread._seeded,
    e.HistoryForked: Thread._forked,
}
