"""State deltas: what `diff` says, `apply` does, to the last type and sign."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from runtime.canonical import canonical
from runtime.errors import AguiBridgeError
from runtime.events import StateDelta, StateSnapshot
from runtime.state_delta import PatchConflict, apply, carried, change, diff

_SCHEMA: dict[str, Any] = json.loads((Path(__file__).parents[2] / "agui_check" / "schema-1.0.json").read_text("utf-8"))
VALID = Draft202012Validator({"$defs": _SCHEMA["$defs"], "$ref": "#/$defs/JsonPatch"})

keys = st.sampled_from(["a", "b", "", "/", "~", "~0", "~1", "~01", "a/b", "-", "0", "1", "00", "é", "//"]) | st.text(
    st.characters(codec="utf-8"), max_size=3
)
scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2**63 - 1, 0.0, -0.0, 1.0, 1e16, 1e-7])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=3)
)
states = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5), max_leaves=12
)


@st.composite
def edits(draw: st.DrawFn) -> tuple[Any, Any]:
    """A state and the same with some of it changed, so that much stays equal; parts may be shared."""
    before = draw(states)
    after = copy.copy(before) if draw(st.booleans()) else copy.deepcopy(before)
    for _ in range(draw(st.integers(0, 3))):
        if isinstance(after, dict):
            after[draw(keys)] = draw(states)
            if draw(st.booleans()):
                del after[draw(st.sampled_from(list(after)))]
        elif isinstance(after, list):
            after.insert(draw(st.integers(0, len(after))), draw(states))
            if draw(st.booleans()):
                del after[draw(st.integers(0, len(after) - 1))]
        else:
            after = draw(states)
    return before, after


pairs = edits() | st.tuples(states, states)


@settings(deadline=None)
@given(pairs)
@example(([1, 2, 3], [3]))
@example(([1, 1], [1, 1, 1, 1]))
@example(([[1], [2]], [[2], [1]]))
@example(([], {}))
@example(({"": {"": 1}}, {"": {"": 1.0}}))
def test_applying_the_difference_gives_the_state_to_the_last_type_and_sign(pair: tuple[Any, Any]):
    before, after = pair
    kept = canonical(before), canonical(after)
    operations = diff(before, after)
    assert canonical(apply(before, operations)) == canonical(after)
    assert (canonical(before), canonical(after)) == kept


@settings(deadline=None)
@given(pairs)
def test_a_delta_is_empty_exactly_if_nothing_changed(pair: tuple[Any, Any]):
    before, after = pair
    assert (diff(before, after) == []) == (canonical(before) == canonical(after))


@settings(deadline=None)
@given(pairs)
def test_every_operation_is_one_of_the_protocols_and_only_of_three_kinds(pair: tuple[Any, Any]):
    operations = diff(*pair)
    VALID.validate(operations)
    assert {operation["op"] for operation in operations} <= {"add", "remove", "replace"}


@settings(deadline=None)
@given(pairs)
def test_each_operation_finds_its_place_when_its_turn_comes(pair: tuple[Any, Any]):
    """A stock client applies with validation: it refuses a replace or remove of nothing, an add beyond the end."""
    document, _ = copy.deepcopy(pair)
    for operation in diff(*pair):
        parent = jsonpatch.JsonPointer(operation["path"]).to_last(document) if operation["path"] else None
        if parent is not None:
            container, key = parent
            is_new = operation["op"] == "add"
            if isinstance(container, dict):
                assert (key in container) != is_new
            else:
                assert key in range(len(container) + is_new)
        document = apply(document, [operation])


def by_value(state: Any) -> Any:
    """The state with every number as JavaScript sees it: 1 and 1.0 are one, and so are 0.0 and -0.0."""
    if isinstance(state, dict):
        return {key: by_value(item) for key, item in state.items()}
    if isinstance(state, list):
        return [by_value(item) for item in state]
    return float(state) + 0.0 if isinstance(state, int | float) and not isinstance(state, bool) else state


@settings(deadline=None)
@given(pairs)
def test_jsonpatch_agrees_where_numbers_are_told_apart_by_value_only(pair: tuple[Any, Any]):
    before, after = (by_value(state) for state in pair)
    assert (diff(before, after) == []) == (not jsonpatch.make_patch(before, after))
    theirs = jsonpatch.make_patch(before, after).apply(before)
    assert canonical(apply(before, diff(before, after))) == canonical(theirs)


@settings(deadline=None)
@given(pairs)
def test_in_place_changes_the_document_itself(pair: tuple[Any, Any]):
    before, after = pair
    document = copy.deepcopy(before)
    result = apply(document, diff(before, after), in_place=True)
    assert canonical(result) == canonical(after)
    if isinstance(before, dict) and isinstance(after, dict):
        assert result is document


# --- the cases --------------------------------------------------------------------------------------------------------


def test_a_new_key_is_added_and_never_replaced():  # C-126
    operations = diff({}, {"city": "Oslo"})
    assert operations == [{"op": "add", "path": "/city", "value": "Oslo"}]
    assert apply({}, operations) == {"city": "Oslo"}


def test_keys_with_slash_tilde_nothing_dash_and_digits_change_themselves_alone():  # C-127
    before = {"a/b": 1, "c~d": 2, "~01": 3, "": 4, "-": 5, "0": 6}
    after = {"a/b": 10, "c~d": 20, "~01": 30, "": 40, "-": 50, "0": 60, "//": 7}
    operations = diff(before, after)
    assert [(operation["op"], operation["path"], operation["value"]) for operation in operations] == [
        ("replace", "/a~1b", 10),
        ("replace", "/c~0d", 20),
        ("replace", "/~001", 30),
        ("replace", "/", 40),
        ("replace", "/-", 50),
        ("replace", "/0", 60),
        ("add", "/~1~1", 7),
    ]
    assert apply(before, operations) == after


def test_a_change_of_type_is_a_change_and_null_is_not_missing():  # C-128
    before = {"a": 1, "b": 0, "c": None}
    after = {"a": True, "b": False}
    operations = diff(before, after)
    assert operations == [
        {"op": "replace", "path": "/a", "value": True},
        {"op": "replace", "path": "/b", "value": False},
        {"op": "remove", "path": "/c"},
    ]
    assert canonical(apply(before, operations)) == canonical(after)


@pytest.mark.parametrize(
    ("before", "after"), [(1, 1.0), (1, True), (0, False), (0.0, -0.0), (None, 0), ("", None), ([], {}), ({}, None)]
)
def test_leaves_that_look_alike_are_told_apart(before: Any, after: Any):  # C-128
    assert diff({"k": before}, {"k": after}) == [{"op": "replace", "path": "/k", "value": after}]
    assert diff(before, after) == [{"op": "replace", "path": "", "value": after}]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([1, 2, 3], [1, 3], [("remove", "/1")]),
        ([1, 2, 3, 4], [1], [("remove", "/3"), ("remove", "/2"), ("remove", "/1")]),
        ([1, 4], [1, 2, 3, 4], [("add", "/1"), ("add", "/2")]),
        ([1], [1, 2], [("add", "/1")]),
        ([{"n": 1}, {"n": 2}], [{"n": 1}, {"n": 3}], [("replace", "/1/n")]),
        ([1, 2, 9], [3, 9], [("replace", "/0"), ("remove", "/1")]),
    ],
)
def test_a_list_changes_only_between_its_common_ends(before: Any, after: Any, expected: list[tuple[str, str]]):
    operations = diff(before, after)
    assert [(operation["op"], operation["path"]) for operation in operations] == expected
    assert apply(before, operations) == after


ROWS: list[Any] = [{"id": n, "text": f"row {n} of the list", "tags": ["a", "b"]} for n in range(40)]


@pytest.mark.parametrize(
    ("change_it", "expected"),
    [
        (lambda rows: [row for row in rows if row["id"] not in (3, 17, 30)], ["remove 30", "remove 17", "remove 3"]),
        (lambda rows: [ROWS[7], *rows[1:]], ["replace 0/id", "replace 0/text"]),
        (lambda rows: [{"new": 1}, *rows[:5], *rows[6:], {"new": 2}], ["add 40", "remove 5", "add 0"]),
        (lambda rows: [*rows[5:6], *rows[:5], *rows[6:]], ["remove 5", "add 0"]),
        (lambda rows: [*rows[:2], {**rows[2], "id": 99}, *rows[3:9], *rows[10:]], ["remove 9", "replace 2/id"]),
    ],
)
@pytest.mark.parametrize("how", [list, copy.deepcopy])
def test_a_list_that_is_changed_in_several_places_is_told_place_by_place(change_it: Any, expected: list[str], how: Any):
    after = how(change_it(ROWS))  # entries are known again as the same objects, and as equal ones
    operations = diff({"rows": ROWS}, {"rows": after})
    assert [f"{operation['op']} {operation['path'].removeprefix('/rows/')}" for operation in operations] == expected
    assert apply({"rows": ROWS}, operations) == {"rows": after}


def test_a_list_in_another_order_is_replaced_if_that_is_shorter():
    assert [operation["op"] for operation in diff({"rows": ROWS}, {"rows": ROWS[::-1]})] == ["replace"]
    assert [operation["path"] for operation in diff({"rows": ROWS}, {"rows": ROWS[1:] + ROWS[:1]})] == [
        "/rows/40",
        "/rows/0",
    ]


def test_what_both_states_share_is_not_looked_into():
    class Untouchable(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError("looked into")

    shared = Untouchable(a=1)
    assert diff({"s": shared, "l": [shared]}, {"s": shared, "l": [shared], "n": 1}) == [
        {"op": "add", "path": "/n", "value": 1}
    ]


def test_deep_states_can_be_told_apart():
    before: Any = 1
    after: Any = 2
    for _ in range(200):
        before, after = [{"a": before}], [{"a": after}]
    assert diff(before, after) == [{"op": "replace", "path": "/0/a" * 200, "value": 2}]


# --- changes of a part --------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(pairs)
def test_a_change_of_all_that_is_there_is_the_change_itself(pair: tuple[Any, Any]):
    before, after = pair
    kept = canonical([before, after])
    assert canonical(carried(before, before, after)) == canonical(after)
    assert carried(before, after, after) is before
    assert canonical([before, after]) == kept


@pytest.mark.parametrize(
    ("before", "basis", "after", "expected"),
    [
        ({"n": 1, "theirs": 2}, {"n": 1}, {"n": 3}, {"n": 3, "theirs": 2}),
        ({"n": 1, "theirs": 2}, {"n": 1}, {}, {"theirs": 2}),
        ({"theirs": 2}, {"n": 0}, {"n": 0}, {"theirs": 2}),
        ({"theirs": 2}, {"n": 0, "m": 0}, {"n": 1, "m": 0}, {"n": 1, "theirs": 2}),
        ({"n": "1"}, {"n": 1, "m": 0}, {"n": 1, "m": 2}, {"n": "1", "m": 2}),
        ({"a": {"n": 1, "theirs": 2}}, {"a": {"n": 1}}, {"a": {"n": 3}}, {"a": {"n": 3, "theirs": 2}}),
        ({"a": {"n": 1, "theirs": 2}}, {"a": {"n": 1}}, {"a": [1]}, {"a": [1]}),
        (
            [{"n": 1, "t": 2}, {"n": 2, "t": 3}],
            [{"n": 1}, {"n": 2}],
            [{"n": 1}, {"n": 3}],
            [{"n": 1, "t": 2}, {"n": 3, "t": 3}],
        ),
        ([{"n": 1, "t": 2}, {"n": 2, "t": 3}], [{"n": 1}, {"n": 2}], [{"n": 2}], [{"n": 2, "t": 3}]),
        ([{"n": 1, "t": 2}], [{"n": 1}], [{"n": 0}, {"n": 1}], [{"n": 0}, {"n": 1, "t": 2}]),
    ],
)
def test_what_the_basis_does_not_know_stays_and_what_it_has_added_is_not_told(
    before: Any, basis: Any, after: Any, expected: Any
):
    assert canonical(carried(before, basis, after)) == canonical(expected)


# --- conflicts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({}, {"op": "replace", "path": "/city", "value": 1}),
        ({}, {"op": "remove", "path": "/city"}),
        ({}, {"op": "add", "path": "/a/b", "value": 1}),
        ([], {"op": "add", "path": "/1", "value": 1}),
        ([], {"op": "add", "path": "/01", "value": 1}),
        ({"a": "text"}, {"op": "replace", "path": "/a/0", "value": "x"}),
        ({"a": 1}, {"op": "test", "path": "/a", "value": 2}),
        ({}, {"op": "add", "path": "no-pointer", "value": 1}),
        ({}, {"op": "add", "path": "/~2", "value": 1}),
        ({}, {"op": "add", "path": "/a"}),
        ({}, {"op": "sing", "path": "/a"}),
        ({}, {"path": "/a"}),
        ({}, {"op": "add", "path": 5, "value": 1}),
    ],
)
def test_an_operation_that_does_not_apply_is_a_conflict(document: Any, operation: dict[str, Any]):
    before = copy.deepcopy(document)
    with pytest.raises(PatchConflict) as caught:
        apply(document, [operation])
    assert isinstance(caught.value, AguiBridgeError)
    assert (caught.value.code, document) == ("patch_conflict", before)


# --- snapshot or delta ------------------------------------------------------------------------------------------------


def test_no_change_is_no_fact():
    assert change({"a": 1}, {"a": 1}) is None


def test_a_small_change_of_a_large_state_is_a_delta():
    before = {"rows": ["x" * 100] * 10, "n": 1}
    assert change(before, {**before, "n": 2}) == StateDelta([{"op": "replace", "path": "/n", "value": 2}])


def test_a_change_of_everything_is_a_snapshot():
    after = {f"key-{n}": n + 1 for n in range(5)}
    assert change({f"key-{n}": n for n in range(5)}, after) == StateSnapshot(after, "agent")


@settings(deadline=None)
@given(pairs)
def test_the_shorter_form_is_chosen(pair: tuple[Any, Any]):
    before, after = pair
    operations = diff(before, after)
    fact = change(before, after)
    if not operations:
        assert fact is None
    elif len(orjson.dumps(operations)) > len(orjson.dumps(after)):
        assert isinstance(fact, StateSnapshot)
        assert canonical(fact.snapshot) == canonical(after)
    else:
        assert isinstance(fact, StateDelta)
        assert canonical(apply(before, fact.delta)) == canonical(after)
