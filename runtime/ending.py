"""How a run ends: what its last append must contain so that nothing is left open.

Pure. Whoever ends a run (the engine at its end, a cancel, a reconciliation after a crash) asks here, so that every
ending has the same shape: each committed call has its one output, the assistant message is complete (with provisional
parts marked so), and the terminal event is last. What waits for somebody outside stays open.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtime import events as e
from runtime.canonical import digest
from runtime.entries import Call, Child
from runtime.interrupts import STOPPED, by_itself
from runtime.run import CANCELLED, FAILED, SUCCEEDED, SUSPENDED, TERMINAL, RunRecord
from runtime.thread import Thread

LOST = "executor_lost"
PARENT_LOST = "parent_lost"

OUTPUT_TEXTS: dict[str, str] = {
    "cancelled": "Cancelled: the run was stopped before this call had a result.",
    "not_run": "Not run: the process that ran this was lost before the call began.",
    "indeterminate": "Unknown: the process that ran this was lost during the call. It may have run; check before "
    "repeating it.",
    "unanswered": "Not answered by the client.",
}


_LEAVES_CALLS = (e.RunCompleted, e.RunSuspended)
"""Ends behind which calls may stay open, for somebody outside to answer."""


def ending(
    thread: Thread,
    run_id: str,
    terminal: e.Event,
    *,
    lost: bool = False,
    below: Mapping[str, RunRecord] | None = None,
) -> list[e.Event]:
    """The events that end a run, which is the last one on `thread` as it stands.

    `lost` when its executor is gone: nobody knows then what became of a call that had begun. `below` are the records of
    its children, which are over: what nobody told of them yet is told here.
    """
    told = [_child_told(child, (below or {}).get(child.run_id)) for child in thread.children.values() if not child.over]
    closed: list[e.Event] = []
    if not isinstance(terminal, _LEAVES_CALLS):
        closed = _closed(thread, run_id, terminal, lost=lost or isinstance(terminal, e.RunInterrupted))
    turn = thread.turn
    if turn is None or turn.run_id != run_id:
        return [*told, *closed, terminal]
    content = turn.content()
    return [*told, *closed, e.MessageCompleted(turn.id, "assistant", content, digest(content)), terminal]


def _closed(thread: Thread, run_id: str, terminal: e.Event, *, lost: bool) -> list[e.Event]:
    """The outputs of the calls that nobody will answer any more, and the ends of what they asked.

    Those are the run's own, and what it has begun of those that earlier runs left open; a stop on purpose closes all.
    Others stay open: the answer that let them run can be given again.
    """
    turn = thread.turn
    own = [call for call in turn.calls if call.output is None] if turn is not None and turn.run_id == run_id else []
    carried = [call for call in thread.held_calls() if call.run_id != run_id]
    stopped = isinstance(terminal, e.RunCancelled)
    closing = [*own, *(call for call in carried if stopped or call.begun)]
    return [
        *(by_itself(interrupt.id, STOPPED) for interrupt in thread.asked_by(closing)),
        *(closing_output(call, _kind(call, lost)) for call in closing),
    ]


def _child_told(child: Child, run: RunRecord | None) -> e.Event:
    if run is not None and run.status == SUSPENDED:
        return e.ChildSuspended(child.run_id, [interrupt.id for interrupt in child.thread.open_interrupts()])
    return child_over(child.run_id, run)


def child_over(run_id: str, run: RunRecord | None) -> e.Event:
    """How a child run ended, for its parent's journal. One that is not in the store never began."""
    if run is None or run.status not in TERMINAL:
        return e.ChildInterrupted(run_id, PARENT_LOST)
    if run.status == SUCCEEDED:
        return e.ChildCompleted(run_id, run.final_message_id)
    if run.status == FAILED:
        return e.ChildFailed(run_id, run.error or {})
    return e.ChildCancelled(run_id, "cancelled") if run.status == CANCELLED else e.ChildInterrupted(run_id, LOST)


def closing_output(call: Call, kind: str) -> e.ToolCallCompleted:
    """The output of a call that nobody will answer any more."""
    return e.output_of(call.call_id, call.name, OUTPUT_TEXTS[kind], kind)


def _kind(call: Call, lost: bool) -> str:
    if not lost:
        return "cancelled"
    return "indeterminate" if call.begun else "not_run"
