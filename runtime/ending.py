"""How a run ends: what its last append must contain so that nothing is left open.

Pure. Whoever ends a run (the engine at its end, a cancel, a reconciliation after a crash) asks here, so that every
ending has the same shape: each committed call has its one output, the assistant message is complete (with provisional
parts marked so), and the terminal event is last.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtime import events as e
from runtime.canonical import digest
from runtime.entries import Call, Child, Turn
from runtime.run import CANCELLED, FAILED, SUCCEEDED, TERMINAL, RunRecord

LOST = "executor_lost"
PARENT_LOST = "parent_lost"

OUTPUT_TEXTS: dict[str, str] = {
    "cancelled": "Cancelled: the run was stopped before this call had a result.",
    "not_run": "Not run: the process that ran this was lost before the call began.",
    "indeterminate": "Unknown: the process that ran this was lost during the call. It may have run; check before "
    "repeating it.",
    "unanswered": "Not answered by the client.",
}


def ending(
    turn: Turn | None, terminal: e.Event, *, lost: bool = False, below: Mapping[str, RunRecord] | None = None
) -> list[e.Event]:
    """The events that end a run whose assistant message so far is `turn` (None if it never began one).

    `lost` when its executor is gone: nobody knows then what became of a call that had begun. `below` are the records of
    its children, which are over: what nobody told of them yet is told here.
    """
    if turn is None:
        return [terminal]
    closed: list[e.Event] = []
    told = [child_over(child.run_id, (below or {}).get(child.run_id)) for child in open_children(turn)]
    if not isinstance(terminal, e.RunCompleted):
        lost = lost or isinstance(terminal, e.RunInterrupted)
        closed = [closing_output(call, _kind(call, lost)) for call in turn.calls if call.output is None]
    content = turn.content()
    return [*told, *closed, e.MessageCompleted(turn.id, "assistant", content, digest(content)), terminal]


def open_children(turn: Turn) -> list[Child]:
    """The child runs whose end was not told yet."""
    return [child for child in turn.children.values() if child.over is None]


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
