"""What one statement appends: the work of many runs, put together and taken apart. Pure.

A group is planned against the records that are at hand. A record is right as far as the statement finds the same
fence and the same end of the journal in the row: everything else in it follows from the events up to there. Whatever
a plan refuses, or the statement does not find as planned, is looked at again with what the store says now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from runtime.errors import AguiBridgeError, FenceLost
from runtime.events import SCHEMA_VERSION, Record
from runtime.journal.changes import advance, is_repeat, moves, opens_tree
from runtime.journal.drafts import Draft, count_of, placed, records_of
from runtime.journal.interrupts import Closed, Raised, closed_in, raised_in
from runtime.journal.postgres_rows import stored_json
from runtime.run import RunRecord


@dataclass(eq=False, slots=True)
class Append:
    """One call of `append`, and what became of it."""

    run_id: str
    fence: int
    expected_seq: int
    drafts: Sequence[Draft]
    occurred_at: int
    records: list[Record] | None = None
    error: AguiBridgeError | None = None

    @property
    def size(self) -> int:
        """How many events it has."""
        return count_of(self.drafts)

    @property
    def settled(self) -> bool:
        """Whether it has come to an end."""
        return self.records is not None or self.error is not None


class AtHand(NamedTuple):
    """A run's record, and where its journal ends: `last_seq` runs ahead of the record's, which is made anew only when
    more than that changes. `in_tree`: whether its events may be counted in a tree, too."""

    run: RunRecord
    last_seq: int
    in_tree: bool = True


@dataclass(eq=False, slots=True)
class RunStep:
    """What a group does to one run: from one end of the journal to another, by these appends."""

    before: int
    after: AtHand
    changed: bool = False
    opens_tree: bool = False
    appends: list[Append] = field(default_factory=list[Append])


@dataclass(eq=False, slots=True)
class Plan:
    """What is to be written, by run; what can only be a repeat; what is refused as far as the records at hand go."""

    steps: dict[str, RunStep]
    repeats: list[tuple[Append, RunRecord]]
    refused: dict[Append, AguiBridgeError]


def plan_of(appends: Sequence[Append], at_hand: Mapping[str, AtHand]) -> Plan:
    """What this group comes to, in the order of the appends. A run that is not at hand is not in the store."""
    plan = Plan({}, [], {})
    for append in appends:
        try:
            _add(plan, append, at_hand.get(append.run_id))
        except AguiBridgeError as error:
            plan.refused[append] = error
    return plan


def _add(plan: Plan, append: Append, known: AtHand | None) -> None:
    if known is None:
        raise FenceLost(f"There is no run {append.run_id}.")
    step = plan.steps.get(append.run_id)
    run, last_seq, in_tree = known if step is None else step.after
    if is_repeat(run, last_seq, append.fence, append.expected_seq, append.size):
        plan.repeats.append((append, known.run))
        return
    end, changed = last_seq + append.size, moves(append.drafts)
    if changed:
        run = advance(run, end, append.drafts, append.occurred_at)
        for name in ("error", "usage"):
            stored_json(name, getattr(run, name))
    if step is None:
        step = plan.steps[append.run_id] = RunStep(last_seq, known)
    opens = opens_tree(run, append.drafts)
    step.after = AtHand(run, end, in_tree or opens)
    step.changed |= changed
    step.opens_tree |= opens
    step.appends.append(append)


def values_of(steps: Sequence[RunStep]) -> list[Any]:
    """What both statements are given; `place` is the index of a step."""
    after = [step.after.run for step in steps]
    rows = [
        (place, row, append.occurred_at)
        for place, step in enumerate(steps)
        for append in step.appends
        for row in placed(append.drafts, append.expected_seq)
    ]
    return [
        list(range(len(steps))),
        [run.run_id for run in after],
        [run.fence for run in after],
        [step.before for step in steps],
        [step.after.last_seq for step in steps],
        [step.changed for step in steps],
        [run.status for run in after],
        [run.started_at for run in after],
        [run.finished_at for run in after],
        [run.final_message_id for run in after],
        [stored_json("error", run.error) for run in after],
        [stored_json("usage", run.usage) for run in after],
        SCHEMA_VERSION,
        [place for place, _, _ in rows],
        [row.seq for _, row, _ in rows],
        [row.draft.event.event_type for _, row, _ in rows],
        [occurred_at for _, _, occurred_at in rows],
        [row.draft.payload for _, row, _ in rows],
        [row.draft.checksum for _, row, _ in rows],
        [row.from_seq for _, row, _ in rows],
    ]


def statement_of(steps: Sequence[RunStep]) -> tuple[str, list[Any]]:
    """The name of the statement that writes these steps, and its parameters."""
    values = values_of(steps)
    if not any(step.after.in_tree for step in steps):
        return "append", values
    return "append_in_trees", [
        *values,
        [step.after.run.root_run_id for step in steps],
        [step.opens_tree for step in steps],
    ]


def interrupts_of(steps: Sequence[RunStep]) -> tuple[list[Raised], list[Closed]]:
    """What these steps say of interrupts, each closed at most once."""
    raised: list[Raised] = []
    closed: dict[str, Closed] = {}
    for step in steps:
        for append in step.appends:
            events = [draft.event for draft in append.drafts]
            raised += raised_in(step.after.run, events, append.occurred_at)
            for its in closed_in(step.after.run, events, append.occurred_at):
                closed.setdefault(its.interrupt_id, its)
    return raised, list(closed.values())


def settle(step: RunStep, recorded_at: int, root_after: int | None) -> None:
    """The step was committed, behind this place of its tree if it is in one: its appends have their records."""
    ahead = 0 if root_after is None else root_after - step.before
    for append in step.appends:
        after = append.expected_seq
        append.records = records_of(append.run_id, after, append.drafts, append.occurred_at, recorded_at, after + ahead)
