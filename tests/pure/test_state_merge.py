"""Two changes of one state: both are kept, or it is said that they cannot be."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.canonical import canonical
from runtime.state_delta import PatchConflict, merge

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b"])
STATES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)


@given(STATES, STATES)
def test_a_change_beside_none_is_taken_as_it_is(before: Any, after: Any):
    assert canonical(merge(before, before, after)) == canonical(after)
    assert canonical(merge(before, after, before)) == canonical(after)


@given(STATES, STATES, STATES)
def test_whether_two_changes_fit_does_not_depend_on_who_came_first(before: Any, one: Any, other: Any):
    def outcome(theirs: Any, mine: Any) -> Any:
        kept = copy.deepcopy([before, theirs, mine])
        try:
            merged = merge(before, theirs, mine)
        except PatchConflict:
            return "conflict"
        assert [before, theirs, mine] == kept
        return merged

    assert (outcome(one, other) == "conflict") == (outcome(other, one) == "conflict")


@given(st.lists(SCALARS), st.lists(SCALARS, min_size=1), st.lists(SCALARS, min_size=1))
def test_nothing_that_two_append_is_lost(before: list[Any], theirs: list[Any], mine: list[Any]):
    merged = merge({"list": before}, {"list": before + theirs}, {"list": before + mine})
    assert sorted(map(repr, merged["list"])) == sorted(map(repr, before + theirs + mine))


@pytest.mark.parametrize(
    ("before", "theirs", "mine", "merged"),
    [
        ([1], [1, 2], [0, 1], [0, 1, 2]),
        ([1, 2, 3], [1, 9, 3], [7, 2, 8], [7, 9, 8]),
        ([1, 2, 3], [1, 3], [1, 2, 3, 4], [1, 3, 4]),
        ({}, {"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
        ({"a": 1, "b": 1}, {"a": 1}, {"b": 1}, {}),
        ({"a": 1}, {"a": 1, "b": 2}, [], "conflict"),
        ({"a": 1}, {"a": 2}, {"a": 2}, {"a": 2}),
        ([1, 2], [3], [3], [3]),
        ({"a": 1}, {}, {"a": 2}, "conflict"),
        ([1, 2, 3], [1, 3], [1, 9, 3], "conflict"),
        ({"a": 1}, {"a": True}, {"a": 1.0}, "conflict"),
    ],
)
def test_what_becomes_of_two_changes(before: Any, theirs: Any, mine: Any, merged: Any):
    try:
        outcome = merge(before, theirs, mine)
    except PatchConflict:
        outcome = "conflict"
    assert outcome == merged
