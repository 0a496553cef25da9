"""The run's state machine is its table: what is in it happens, what is not changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime import events, run
from runtime.events import EVENT_TYPES, Event, MessageStarted
from runtime.run import ACTIVE, QUEUED, TERMINAL, TRANSITIONS, IllegalTransition, status_after

SAMPLES: dict[str, Event] = {
    "run.started": events.RunStarted(0, "r1", "a", "d", []),
    "run.completed": events.RunCompleted(),
    "run.failed": events.RunFailed({}),
    "run.cancelling": events.RunCancelling("r"),
    "run.cancelled": events.RunCancelled("r", external_stop_confirmed=True),
    "run.suspended": events.RunSuspended([]),
    "run.interrupted": events.RunInterrupted("r"),
}
NAMES = sorted(name for name in EVENT_TYPES if name.startswith("run."))
MOVES = {name for moves in TRANSITIONS.values() for name in moves}
NO_MOVE = MessageStarted("msg_1", "assistant")


def test_every_event_of_a_run_is_a_move_somewhere():
    assert set(NAMES) <= MOVES
    assert set(NAMES) <= SAMPLES.keys()


def test_every_move_leads_to_a_status_of_the_table():
    assert {target for moves in TRANSITIONS.values() for target in moves.values()} <= TRANSITIONS.keys()


def test_a_run_is_active_or_over_and_over_is_for_good():
    assert TRANSITIONS.keys() == ACTIVE | TERMINAL
    assert not ACTIVE & TERMINAL
    assert len(TERMINAL) == 5
    assert all(TRANSITIONS[status] == {} for status in TERMINAL)


def test_every_terminal_event_ends_a_run_and_no_other_does():
    ending = {name for moves in TRANSITIONS.values() for name, target in moves.items() if target in TERMINAL}
    assert {cls.event_type for cls in events.TERMINAL} == ending & EVENT_TYPES.keys()


def test_every_active_status_can_be_left_as_interrupted():
    assert all(TRANSITIONS[status]["run.interrupted"] == run.INTERRUPTED for status in ACTIVE)


def test_every_status_is_reached_from_the_queue():
    reached = {QUEUED}
    for _ in TRANSITIONS:
        reached |= {target for status in reached for target in TRANSITIONS[status].values()}
    assert reached == TRANSITIONS.keys()


@pytest.mark.parametrize("status", sorted(TRANSITIONS))
@pytest.mark.parametrize("name", NAMES)
def test_a_move_is_in_the_table_or_raises(status: str, name: str):
    target = TRANSITIONS[status].get(name)
    if target is None:
        with pytest.raises(IllegalTransition):
            status_after(status, [SAMPLES[name]])
    else:
        assert status_after(status, [SAMPLES[name]]) == target


@pytest.mark.parametrize("status", sorted(TRANSITIONS))
def test_other_events_move_nothing_and_end_with_the_run(status: str):
    if status in ACTIVE:
        assert status_after(status, [NO_MOVE]) == status
    else:
        with pytest.raises(IllegalTransition):
            status_after(status, [NO_MOVE])


def test_no_events_leave_every_status_as_it_is():
    assert all(status_after(status, []) == status for status in TRANSITIONS)


@given(st.lists(st.sampled_from([*(SAMPLES[name] for name in NAMES), NO_MOVE]), max_size=6))
def test_a_series_is_legal_exactly_when_each_step_is(series: list[Event]):
    given_series = list(series)
    status, legal = QUEUED, True
    for event in series:
        try:
            status = status_after(status, [event])
        except IllegalTransition:
            legal = False
            break
    if legal:
        assert status_after(QUEUED, series) == status
    else:
        with pytest.raises(IllegalTransition):
            status_after(QUEUED, series)
    assert series == given_series


def test_a_run_that_is_over_says_so():
    record = run.RunRecord("run_1", "-", "me", "t", None, "a", "r", "d", 1, QUEUED, 0, 0, 1, "run_1", 0)
    assert not record.is_over
    assert record.status == QUEUED
