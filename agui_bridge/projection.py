"""From committed facts to AG-UI events: a pure reducer with a table of what is open.

It is told one journal event after the other and answers with the AG-UI events that each becomes. It cannot emit an
illegal order, whatever it is told: an item is opened once, written to only while open, and everything is closed
before the run's one terminal event. Which facts a reader has seen before is not known here; a reader that comes back
folds silently up to its cursor.

One assistant message of the journal is shown as one AG-UI message per round, so that text after a tool's result never
moves before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agui_bridge.content import content_out
from agui_bridge.interrupts import shown
from agui_bridge.predictions import PREDICT_STATE, Predictions
from agui_bridge.prelude import Prelude, letting_go
from agui_bridge.retelling import Retelling
from agui_bridge.shapes import PROTOCOL_VERSION
from agui_bridge.transcript import (
    ROUND,
    STEERED,
    activity_message_id,
    is_shown,
    reasoning_message_id,
    result_message_id,
    round_message_id,
    text_metadata,
)
from agui_bridge.wire import events as agui
from agui_bridge.wire.events import AguiEvent
from runtime import events as e
from runtime.canonical import Json, JsonObject
from runtime.events import Record
from runtime.items import WORKING
from runtime.state_delta import apply
from runtime.thread import ARTIFACT, PROGRESS, artifact_content, progress_content, progress_id

_USAGE: Final = {
    "provider": "provider",
    "model": "model",
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "total_tokens": "totalTokens",
    "reasoning_tokens": "reasoningTokens",
    "cached_input_tokens": "cachedInputTokens",
    "cache_write_input_tokens": "cacheWriteInputTokens",
}


@dataclass(frozen=True, slots=True)
class Echo:
    """What a stream repeats of the request that it answers."""

    thread_id: str
    run_id: str
    parent_run_id: str | None = None
    resumes: bool = False
    """Whether the page holds interrupts for open that this request answers: until a run is finished, stock clients
    refuse every other message."""
    folds_state: bool = False
    """Whether the reader may keep the run and fold its state from `{}`, whatever it has sent itself. CopilotKit's
    runner does, and never ends a run whose first delta does not fit there: it is told the whole state first."""


@dataclass(slots=True)
class _Open:
    """The table of what is open, each kind in the order in which it was opened."""

    step: str | None = None
    text: str | None = None
    reasoning: dict[str, None] = field(default_factory=dict[str, None])
    calls: dict[str, None] = field(default_factory=dict[str, None])


class Projector:
    """The projection of one run for one reader."""

    def __init__(self, echo: Echo, prelude: Prelude | None = None, family: dict[str, Projector] | None = None) -> None:
        self._echo = echo
        self._prelude = prelude or Prelude()
        self._open = _Open()
        self._begun = False
        self._takes_in = True
        """Whether what comes is still part of the request: the prelude tells what that made of older calls."""
        self._ended = False
        self._round = 0
        self._round_messages: dict[str, None] = {}
        self._started: set[str] = set()
        self._committed: set[str] = set()
        self._said = Retelling(self._owner or "")
        self._family: dict[str, Projector] = {} if family is None else family
        """The projections of all runs of the tree, by run."""
        self._children: dict[str, Child] = {}
        self._open_children: dict[str, None] = {}
        self._state_changes: list[e.StateSnapshot | e.StateDelta] = []
        self._owes_state = echo.folds_state
        self._predictions = Predictions()
        self._shows_settled = False
        """Whether the page still shows the progress of a call that is not at work any more."""

    def feed(self, event: e.Event | None) -> Sequence[AguiEvent]:
        """The AG-UI events that this fact becomes; none for what shows only in outcome and snapshots."""
        kind = type(event)
        handler = _HANDLERS.get(kind)
        if handler is None or self._ended:
            return ()
        if not self._begun and kind is not e.RunStarted:
            return self._withdrawn(event)
        if kind in e.ENDS_INTAKE:
            self._takes_in = False
        if event is not None:
            self._said.take(event)
        return handler(self, event)

    def take(self, record: Record) -> Sequence[AguiEvent]:
        """The AG-UI events that this record of the run, or of one below it, becomes."""
        run_id = record.run_id
        if not self._family:
            self._family[run_id] = self  # the first record of a tree is its root's
        projector = self._family.get(run_id)
        return () if projector is None else projector.feed(record.event)

    def rebase(self, base: list[JsonObject], state: Json, *, asks: bool) -> None:
        """Every message before this run, as the page names them, and the state as it is: known only later to one that
        comes back. `asks` as in `Prelude`."""
        self._prelude = Prelude(base=base, state=state, asks=asks)
        self._state_changes = []
        self._predictions.replaced(self._open.calls)

    # --- the run --------------------------------------------------------------------------------------------------

    def _run_started(self, event: e.RunStarted) -> list[AguiEvent]:
        return self._begin()

    def _begin(self) -> list[AguiEvent]:
        if self._begun:
            return []
        self._begun = True
        echo = self._echo
        started = agui.run_started(
            echo.thread_id, echo.run_id, protocol_version=PROTOCOL_VERSION, parent_run_id=echo.parent_run_id
        )
        return [started, *self._prelude.events]

    def _run_completed(self, event: e.RunCompleted) -> list[AguiEvent]:
        if event.absorbed_by is not None:
            taken = agui.custom(STEERED, {"runId": event.absorbed_by})
            return self._end(
                taken, agui.run_finished(self._echo.thread_id, self._echo.run_id, outcome=agui.success(None))
            )
        pending = [call for call in event.pending_tool_call_ids or () if call in self._started]
        return self._finish(agui.success(pending or None), event.usage, event.result)

    def _run_cancelled(self, event: e.RunCancelled) -> list[AguiEvent]:
        return self._finish(agui.cancelled(), event.usage)

    def _run_failed(self, event: e.RunFailed) -> list[AguiEvent]:
        return self._break_off(agui.run_error(event.error["message"], event.error["code"], usage_out(event.usage)))

    def _run_interrupted(self, event: e.RunInterrupted) -> list[AguiEvent]:
        said = "The server stopped before the run was finished."
        return self._break_off(agui.run_error(said, "run_interrupted", usage_out(event.usage)))

    def _run_suspended(self, event: e.RunSuspended) -> list[AguiEvent]:
        below = {run_id for run_id, projector in self._family.items() if isinstance(projector, Child)}
        interrupts = [shown(each, below) for each in event.interrupts]
        closing = self._close_all()
        self._predictions.replaced()
        restated = [agui.state_snapshot(self._state()), self._snapshot()]
        return [*closing, *restated, *self._finish(agui.interrupt(interrupts), event.usage)]

    def _state(self) -> Json:
        state = self._prelude.state
        for change in self._state_changes:
            state = change.snapshot if isinstance(change, e.StateSnapshot) else apply(state, change.delta)
        return state

    def _withdrawn(self, event: e.Event | None) -> Sequence[AguiEvent]:
        """The whole stream of a run that ended while it waited for its thread; nothing for any other fact."""
        if type(event) not in e.TERMINAL:
            return ()
        return [*self._begin(), *_HANDLERS[type(event)](self, event)]

    def _finish(self, outcome: JsonObject, usage: list[JsonObject] | None, result: Json = None) -> list[AguiEvent]:
        echo, counts = self._echo, usage_out(usage)
        return self._end(agui.run_finished(echo.thread_id, echo.run_id, result=result, outcome=outcome, usage=counts))

    def _break_off(self, error: AguiEvent) -> list[AguiEvent]:
        if not self._echo.resumes or self._prelude.asks:  # what is still asked, the page has to go on holding
            return self._end(error)
        return self._end(agui.run_finished(self._echo.thread_id, self._echo.run_id), error)

    def _end(self, *terminal: AguiEvent) -> list[AguiEvent]:
        closing = self._close_all()
        if self._predictions.end_all():
            closing.append(agui.state_snapshot(self._state()))
        if self._has_cut_calls() or self._has_settled():
            # A stock client would run the handler of a cut call, and goes on showing the progress of one that is over.
            closing.append(self._snapshot())
        self._ended = True
        return [*closing, *terminal]

    def _snapshot(self) -> AguiEvent:
        messages = self._said.messages(self._prelude.base)
        metadata = letting_go(messages, had_progress=self._has_settled())
        self._let_go()
        return agui.messages_snapshot(messages, metadata=metadata)

    def _has_settled(self) -> bool:
        return self._shows_settled or any(child._has_settled() for child in self._children.values())

    def _let_go(self) -> None:
        self._shows_settled = False
        for child in self._children.values():
            child._let_go()

    def _has_cut_calls(self) -> bool:
        cut = bool(self._started - self._committed)
        return cut or any(child._has_cut_calls() for child in self._children.values())

    def _close_all(self) -> list[AguiEvent]:
        out = [event for child in list(self._open_children) for event in self._close_child(child, *_CHILD_LOST)]
        out += self._close_text(None)
        for part in list(self._open.reasoning):
            out += self._close_reasoning(part, None)
        out += [agui.tool_call_end(call) for call in self._open.calls]
        self._open.calls = {}
        out += [event for call in list(self._said.progress) for event in self._settle(call)]
        return out + self._close_step()

    # --- a round --------------------------------------------------------------------------------------------------

    def _round_started(self, event: e.RoundStarted) -> list[AguiEvent]:
        out = self._close_text(None) + self._close_step()
        self._round, self._round_messages = event.round, {}
        self._open.step = f"round-{event.round}"
        return [*out, agui.step_started(self._open.step)]

    def _round_completed(self, event: e.RoundCompleted) -> list[AguiEvent]:
        out = self._close_text(text_metadata(event.runtime_role, event.round))
        roles = [{"id": id_, "role": event.runtime_role} for id_ in self._round_messages]
        out.append(agui.custom(ROUND, {"round": event.round, "role": event.runtime_role, "messages": roles}))
        return out + self._close_step()

    def _close_step(self) -> list[AguiEvent]:
        step, self._open.step = self._open.step, None
        return [agui.step_finished(step)] if step else []

    # --- text -----------------------------------------------------------------------------------------------------

    def _message_delta(self, event: e.MessageDelta) -> Sequence[AguiEvent]:
        id_ = self._open.text
        if id_ is not None:
            return (agui.text_message_content(id_, event.delta),) if event.delta else ()
        if not event.delta:
            return ()
        id_ = self._open.text = self._round_message(event.message_id)
        return (agui.text_message_start(id_, role="assistant"), agui.text_message_content(id_, event.delta))

    def _message_completed(self, event: e.MessageCompleted) -> list[AguiEvent]:
        steers = event.role == "user" and event.runtime_role is None
        if not steers or not self._said.has_begun:
            return []
        return [self._snapshot()]  # who reads this did not say it, or holds it at another place

    def _round_message(self, message_id: str) -> str:
        id_ = round_message_id(message_id, self._round)
        self._round_messages[id_] = None
        return id_

    def _close_text(self, metadata: JsonObject | None) -> list[AguiEvent]:
        id_, self._open.text = self._open.text, None
        return [agui.text_message_end(id_, metadata=metadata)] if id_ else []

    # --- reasoning ------------------------------------------------------------------------------------------------

    def _reasoning_delta(self, event: e.ReasoningDelta) -> Sequence[AguiEvent]:
        if not event.delta:
            return ()
        id_ = reasoning_message_id(event.message_id, event.part_id)
        content = agui.reasoning_message_content(id_, event.delta)
        if id_ in self._open.reasoning:
            return (content,)
        self._open.reasoning[id_] = None
        return (agui.reasoning_start(id_), agui.reasoning_message_start(id_), content)

    def _reasoning_completed(self, event: e.ReasoningCompleted) -> list[AguiEvent]:
        id_ = reasoning_message_id(event.message_id, event.part_id)
        return self._close_reasoning(id_, event.signature or event.encrypted_value)

    def _close_reasoning(self, id_: str, encrypted_value: str | None) -> list[AguiEvent]:
        if id_ not in self._open.reasoning:
            return []
        del self._open.reasoning[id_]
        out = [agui.reasoning_message_end(id_)]
        if encrypted_value:
            out.append(agui.reasoning_encrypted_value("message", id_, encrypted_value))
        return [*out, agui.reasoning_end(id_)]

    # --- tool calls -----------------------------------------------------------------------------------------------

    def _call_started(self, event: e.ToolCallStarted) -> list[AguiEvent]:
        call = event.tool_call_id
        if call in self._started:
            return []
        out = self._close_text(text_metadata(WORKING, self._round))  # with a call this round cannot be final
        self._started.add(call)
        self._open.calls[call] = None
        if event.predicts and self._owner is None:  # the state of a child run is not the page's
            predicted = self._predictions.begin(call, event.tool_name, event.predicts)
            out.append(agui.custom(PREDICT_STATE, predicted))
        return [*out, agui.tool_call_start(call, event.tool_name, self._round_message(event.message_id))]

    def _call_delta(self, event: e.ToolCallDelta) -> Sequence[AguiEvent]:
        is_open = event.tool_call_id in self._open.calls
        return (agui.tool_call_args(event.tool_call_id, event.delta),) if is_open and event.delta else ()

    def _call_committed(self, event: e.ToolCallCommitted) -> list[AguiEvent]:
        call = event.tool_call_id
        self._committed.add(call)
        if call not in self._open.calls:
            return []
        del self._open.calls[call]
        return [agui.tool_call_end(call)]

    def _call_progress(self, event: e.ToolCallProgress) -> list[AguiEvent]:
        self._said.progress[event.tool_call_id] = event
        return [self._shown_progress(event.tool_call_id, progress_content(event))]

    def _settle(self, call: str) -> list[AguiEvent]:
        """Take the progress of a call back, as far as can be done now: what is shown says nothing any more, and goes
        with the next snapshot."""
        if call not in self._said.progress:
            return []
        last = self._said.progress.pop(call)
        self._shows_settled = True
        return [self._shown_progress(call, {**progress_content(last), "value": None, "settled": True})]

    def _shown_progress(self, call: str, content: JsonObject) -> AguiEvent:
        return agui.activity_snapshot(self._activity(progress_id(call)), PROGRESS, content)

    def _call_completed(self, event: e.ToolCallCompleted) -> list[AguiEvent]:
        call = event.tool_call_id
        settled = self._settle(call)
        if self._predictions.end(call):
            settled.append(agui.state_snapshot(self._state()))
        unseen = call in self._committed and call not in self._started
        if unseen or self._takes_in or not is_shown(event.kind):
            return settled
        if call not in self._committed:
            self._said.late_result(event)
        return [*settled, agui.tool_call_result(result_message_id(call), call, content_out(event.result))]

    # --- state ----------------------------------------------------------------------------------------------------

    def _state_snapshot(self, event: e.StateSnapshot) -> list[AguiEvent]:
        self._state_changes.append(event)
        self._predictions.replaced()
        if event.origin == "client":
            return []
        self._owes_state = False
        return [agui.state_snapshot(event.snapshot)]

    def _state_delta(self, event: e.StateDelta) -> list[AguiEvent]:
        owed, self._owes_state = self._owes_state and self._state() != {}, False
        self._state_changes.append(event)
        if owed:
            self._predictions.replaced()
            return [agui.state_snapshot(self._state())]
        self._predictions.come_true(event.delta)
        return [agui.state_delta(event.delta)]

    # --- children -------------------------------------------------------------------------------------------------

    @property
    def _owner(self) -> str | None:
        """The child run whose projection this is."""
        return None

    def _child_started(self, event: e.ChildStarted) -> list[AguiEvent]:
        run_id = event.run_id
        if run_id in self._family:
            return []
        child = self._children[run_id] = Child(run_id, self._family)
        self._said.below[run_id] = child._said
        self._family[run_id] = child
        self._open_children[run_id] = None
        return [
            agui.subagent_started(
                run_id,
                event.agent_name,
                description=event.description,
                parent_subagent_run_id=self._owner,
                parent_tool_call_id=event.tool_call_id if event.tool_call_id in self._started else None,
            )
        ]

    def _child_completed(self, event: e.ChildCompleted) -> list[AguiEvent]:
        if event.run_id not in self._open_children:
            return []
        del self._open_children[event.run_id]
        closing = self._children[event.run_id].close()
        return [*closing, agui.subagent_finished(event.run_id, result=event.result)]

    def _child_failed(self, event: e.ChildFailed) -> list[AguiEvent]:
        error = event.error
        return self._close_child(event.run_id, error.get("message") or "It failed.", error.get("code"))

    def _child_cancelled(self, event: e.ChildCancelled) -> list[AguiEvent]:
        return self._close_child(event.run_id, "It was stopped.", "run_cancelled")

    def _child_interrupted(self, event: e.ChildInterrupted) -> list[AguiEvent]:
        return self._close_child(event.run_id, *_CHILD_LOST)

    def _child_suspended(self, event: e.ChildSuspended) -> list[AguiEvent]:
        if event.run_id not in self._open_children:
            return []
        del self._open_children[event.run_id]
        closing = self._children[event.run_id].close()
        return [*closing, agui.subagent_finished(event.run_id, outcome=agui.suspended(event.interrupt_ids))]

    def _close_child(self, run_id: str, message: str, code: str | None) -> list[AguiEvent]:
        if run_id not in self._open_children:
            return []
        del self._open_children[run_id]
        return [*self._children[run_id].close(), agui.subagent_error(run_id, message, code)]

    # --- beside the messages --------------------------------------------------------------------------------------

    def _activity_snapshot(self, event: e.ActivitySnapshot) -> list[AguiEvent]:
        return [agui.activity_snapshot(self._activity(event.activity_id), event.activity_type, event.content)]

    def _activity_delta(self, event: e.ActivityDelta) -> list[AguiEvent]:
        return [agui.activity_delta(self._activity(event.activity_id), event.activity_type, event.delta)]

    def _artifact_created(self, event: e.ArtifactCreated) -> list[AguiEvent]:
        return [agui.activity_snapshot(self._activity(event.id), ARTIFACT, artifact_content(event))]

    def _activity(self, activity_id: str) -> str:
        return activity_message_id(activity_id, self._owner)

    def _custom(self, event: e.Custom) -> list[AguiEvent]:
        return [agui.custom(event.name, event.value)]

    def _nothing(self, event: e.Event) -> Sequence[AguiEvent]:
        return ()


class Child(Projector):
    """The projection of a child run within its root's stream: everything that it says is marked as its own.

    It has no beginning and no end of its own; those are its parent's to tell. Its state is that of its own thread, and
    not the page's.
    """

    def __init__(self, run_id: str, family: dict[str, Projector]) -> None:
        self._run_id = run_id
        super().__init__(Echo("", run_id), family=family)

    @property
    def _owner(self) -> str | None:
        return self._run_id

    def feed(self, event: e.Event | None) -> Sequence[AguiEvent]:
        """See `Projector.feed`."""
        kind = type(event)
        if kind is e.RunStarted:
            self._begun = True
            return ()
        if kind in e.TERMINAL:
            return self.close()
        if kind in _OF_THE_STATE:
            return ()
        return self._marked(super().feed(event))

    def close(self) -> list[AguiEvent]:
        """Close what is open: nothing more comes."""
        if self._ended:
            return []
        self._ended = True
        return self._marked(self._close_all())

    def _marked(self, events: Sequence[AguiEvent]) -> list[AguiEvent]:
        return [event if "subagentRunId" in event else agui.attributed(event, self._run_id) for event in events]


_CHILD_LOST: Final = ("The server stopped before it was finished.", "run_interrupted")

_OF_THE_STATE = frozenset({e.StateSnapshot, e.StateDelta})


def usage_out(usage: list[JsonObject] | None) -> list[JsonObject] | None:
    """Token counts as AG-UI names them."""
    if not usage:
        return None
    return [{_USAGE[name]: value for name, value in entry.items() if name in _USAGE} for entry in usage]


_HANDLERS: dict[type[Any], Callable[[Projector, Any], Sequence[AguiEvent]]] = {
    e.RunStarted: Projector._run_started,
    e.RunCompleted: Projector._run_completed,
    e.RunFailed: Projector._run_failed,
    e.RunCancelled: Projector._run_cancelled,
    e.RunInterrupted: Projector._run_interrupted,
    e.RunSuspended: Projector._run_suspended,
    e.RunCancelling: Projector._nothing,
    e.RoundStarted: Projector._round_started,
    e.RoundCompleted: Projector._round_completed,
    e.MessageStarted: Projector._nothing,
    e.MessageDelta: Projector._message_delta,
    e.MessageCompleted: Projector._message_completed,
    e.ReasoningStarted: Projector._nothing,
    e.ReasoningDelta: Projector._reasoning_delta,
    e.ReasoningCompleted: Projector._reasoning_completed,
    e.ToolCallStarted: Projector._call_started,
    e.ToolCallDelta: Projector._call_delta,
    e.ToolCallCommitted: Projector._call_committed,
    e.ToolCallProgress: Projector._call_progress,
    e.ToolCallCompleted: Projector._call_completed,
    e.StateSnapshot: Projector._state_snapshot,
    e.StateDelta: Projector._state_delta,
    e.ActivitySnapshot: Projector._activity_snapshot,
    e.ActivityDelta: Projector._activity_delta,
    e.ArtifactCreated: Projector._artifact_created,
    e.Custom: Projector._custom,
    e.ChildStarted: Projector._child_started,
    e.ChildCompleted: Projector._child_completed,
    e.ChildFailed: Projector._child_failed,
    e.ChildCancelled: Projector._child_cancelled,
    e.ChildInterrupted: Projector._child_interrupted,
    e.ChildSuspended: Projector._child_suspended,
}
