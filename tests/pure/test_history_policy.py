"""What a model is shown of a long history."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.history_policy import estimate, keep_last_turns, token_budget
from runtime.items import REJECTION, FunctionCall, FunctionCallOutput, Item, Message

SYSTEM = Message("system", "rules")


def turn(number: int, calls: int = 0) -> list[Item]:
    """A user message, some calls with their outputs, an answer."""
    made: list[Item] = [FunctionCall(f"c{number}-{i}", "look", "{}") for i in range(calls)]
    outputs: list[Item] = [FunctionCallOutput(f"c{number}-{i}", "look", "seen", False) for i in range(calls)]
    return [Message("user", f"question {number}"), *made, *outputs, Message("assistant", f"answer {number}")]


def test_the_last_turns_are_kept_whole_with_what_stands_before_the_first():
    items = [SYSTEM, *turn(1), *turn(2, calls=2), *turn(3)]
    assert keep_last_turns(2)(items) == [SYSTEM, *turn(2, calls=2), *turn(3)]
    assert keep_last_turns(9)(items) == items
    assert keep_last_turns(0)(items) == [SYSTEM, *turn(3)]


def test_user_messages_in_a_row_are_one_turn():
    said = [Message("user", "first"), Message("user", "and this"), Message("assistant", "fine")]
    assert keep_last_turns(1)([*turn(1), *said]) == said


def test_what_the_runtime_told_the_model_begins_no_turn():
    told = Message("user", "not accepted", REJECTION)
    mended = [Message("user", "question 2"), Message("assistant", "4"), told, Message("assistant", "5")]
    assert keep_last_turns(1)([*turn(1), *mended]) == mended


def test_a_token_budget_keeps_what_fits_and_always_the_last_turn():
    items = [*turn(1), *turn(2), *turn(3)]
    size = sum(estimate(item) for item in turn(1))
    assert token_budget(2 * size)(items) == [*turn(2), *turn(3)]
    assert token_budget(2 * size - 1)(items) == turn(3)
    assert token_budget(1)(items) == turn(3)
    assert token_budget(10_000)(items) == items


def test_a_counter_of_your_own_decides_what_fits():
    items = [*turn(1), *turn(2)]
    assert token_budget(3, count=lambda item: 1)(items) == turn(2)


@given(st.lists(st.integers(0, 3), max_size=8), st.integers(0, 9), st.integers(0, 200))
def test_no_policy_parts_a_call_from_its_output_or_changes_the_history(calls: list[int], turns: int, tokens: int):
    items: list[Item] = [SYSTEM, *(item for n, made in enumerate(calls) for item in turn(n, made))]
    for policy in (keep_last_turns(turns), token_budget(tokens)):
        before = list(items)
        shown = list(policy(items))
        assert items == before
        assert shown == items or shown[1:] == items[len(items) - len(shown) + 1 :]
        made = [item.call_id for item in shown if isinstance(item, FunctionCall)]
        answered = [item.call_id for item in shown if isinstance(item, FunctionCallOutput)]
        assert made == answered
