"""A view of the state is used like the state, changes nothing of it, and tells what was changed."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runtime.canonical import canonical
from runtime.events import StateDelta, StateSnapshot
from runtime.state_delta import apply, change
from runtime.state_view import settled, view

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(-1, 1), st.text("ab~/", max_size=3))
KEYS = st.sampled_from(["a", "b", "c~/d", ""])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
STATES = st.dictionaries(KEYS, VALUES, max_size=4)


def changed(before: Any, seen: Any) -> Any:
    """The fact that becomes of a view, looked at: what it says of `before` is what the view says."""
    after = settled(seen)
    match fact := change(before, after):
        case StateDelta(operations):
            assert canonical(apply(before, operations)) == canonical(after)
        case StateSnapshot(snapshot=snapshot):
            assert canonical(snapshot) == canonical(after)
        case None:
            assert canonical(before) == canonical(after)
    return fact


class Tools(RuleBasedStateMachine):
    """A tool that does the same to a view and to a copy; whatever it holds of them it may go on with."""

    @initialize(state=STATES)
    def begin(self, state: Any) -> None:
        self.before, self.kept = state, copy.deepcopy(state)
        self.plain, self.seen = copy.deepcopy(state), view(state)
        self.held: list[tuple[Any, Any]] = [(self.plain, self.seen)]

    def pick(self, data: Any, kind: type) -> tuple[Any, Any]:
        fit = [pair for pair in self.held if isinstance(pair[0], kind)]
        return fit[data.draw(st.integers(0, len(fit) - 1))]

    def has(self, kind: type) -> bool:
        return any(isinstance(plain, kind) and plain for plain, _ in self.held)

    def hold(self, plain: Any, seen: Any) -> None:
        assert plain == seen
        if isinstance(plain, dict | list):
            self.held.append((plain, seen))

    @rule(data=st.data(), key=KEYS)
    def reach_into_an_object(self, data: Any, key: str) -> None:
        plain, seen = self.pick(data, dict)
        if key in plain:
            self.hold(plain[key], data.draw(st.sampled_from([seen.__getitem__, seen.get]))(key))

    @precondition(lambda self: self.has(list))
    @rule(data=st.data(), how=st.sampled_from(["index", "iterate", "slice", "reversed"]))
    def reach_into_a_list(self, data: Any, how: str) -> None:
        plain, seen = self.pick(data, list)
        if plain:
            at = data.draw(st.integers(0, len(plain) - 1))
            found = {
                "index": lambda: seen[at],
                "iterate": lambda: list(seen)[at],
                "slice": lambda: seen[at:][0],
                "reversed": lambda: list(reversed(seen))[len(plain) - 1 - at],
            }[how]()
            self.hold(plain[at], found)

    @rule(data=st.data(), key=KEYS, value=VALUES)
    def put_into_an_object(self, data: Any, key: str, value: Any) -> None:
        plain, seen = self.pick(data, dict)
        plain[key], seen[key] = copy.deepcopy(value), copy.deepcopy(value)

    @rule(data=st.data(), key=KEYS, value=VALUES)
    def put_if_it_is_not_there(self, data: Any, key: str, value: Any) -> None:
        plain, seen = self.pick(data, dict)
        self.hold(plain.setdefault(key, copy.deepcopy(value)), seen.setdefault(key, copy.deepcopy(value)))

    @rule(data=st.data(), key=KEYS)
    def take_out_of_an_object(self, data: Any, key: str) -> None:
        plain, seen = self.pick(data, dict)
        self.hold(plain.pop(key, None), seen.pop(key, None))

    @rule(data=st.data(), more=STATES)
    def merge_into_an_object(self, data: Any, more: Any) -> None:
        plain, seen = self.pick(data, dict)
        plain.update(copy.deepcopy(more))
        seen |= copy.deepcopy(more)

    @precondition(lambda self: self.has(list))
    @rule(data=st.data(), value=VALUES, how=st.sampled_from(["append", "insert", "extend", "set", "sort", "reverse"]))
    def change_a_list(self, data: Any, value: Any, how: str) -> None:
        plain, seen = self.pick(data, list)
        at = data.draw(st.integers(0, len(plain)))
        for each in (plain, seen):
            own = copy.deepcopy(value)
            if how == "append":
                each.append(own)
            elif how == "insert":
                each.insert(at, own)
            elif how == "extend":
                each += [own, own]
            elif how == "set" and at < len(each):
                each[at] = own
            elif how == "sort":
                each.sort(key=json.dumps)
            elif how == "reverse":
                each.reverse()

    @precondition(lambda self: self.has(list))
    @rule(data=st.data())
    def take_out_of_a_list(self, data: Any) -> None:
        plain, seen = self.pick(data, list)
        if plain:
            at = data.draw(st.integers(0, len(plain) - 1))
            self.hold(plain.pop(at), seen.pop(at))

    @rule(data=st.data())
    def copy_a_part_elsewhere(self, data: Any) -> None:
        part, seen_part = self.held[data.draw(st.integers(0, len(self.held) - 1))]
        self.plain["copied"] = copy.deepcopy(part)
        self.seen["copied"] = copy.deepcopy(seen_part)

    @invariant()
    def says_the_same(self) -> None:
        if hasattr(self, "seen"):
            assert self.seen == self.plain
            assert json.loads(json.dumps(self.seen)) == json.loads(json.dumps(self.plain))
            assert canonical(settled(self.seen)) == canonical(self.plain)
            assert canonical(self.before) == canonical(self.kept), "what others read has been changed"
            changed(self.before, self.seen)


Tools.TestCase.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)
TestToolsOfChance = Tools.TestCase


def deep() -> Any:
    return {"list": [{"n": 1}, {"n": 2}], "big": {str(n): n for n in range(50)}, "text": "t"}


def test_reading_alone_changes_nothing_and_gives_the_state_itself():
    before = deep()
    seen = view(before)
    assert (seen["list"][1]["n"], seen.get("text"), [*seen], len(seen["big"])) == (2, "t", ["list", "big", "text"], 50)
    assert settled(seen) is before


def test_parts_that_were_not_changed_stay_the_very_ones():
    before = deep()
    seen = view(before)
    seen["list"][0]["n"] = 7
    after = settled(seen)
    assert after["list"][0] == {"n": 7}
    assert after["list"][1] is before["list"][1]
    assert after["big"] is before["big"]
    assert before == deep()


def test_a_choice_of_entries_in_a_new_list_consists_of_the_very_ones():
    before = deep()
    seen = view(before)
    seen["list"] = [item for item in seen["list"] if item["n"] == 2]
    after = settled(seen)
    assert after["list"] == [{"n": 2}]
    assert after["list"][0] is before["list"][1]


@pytest.mark.parametrize(
    ("act", "path"),
    [
        (lambda s: s["list"][1].update(n=3), "/list/1/n"),
        (lambda s: s["list"].append({"n": 3}), "/list/2"),
        (lambda s: s["big"].pop("7"), "/big/7"),
        (lambda s: s.update(text="u"), "/text"),
        (lambda s: [item.update(n=9) for item in s["list"] if item["n"] == 2], "/list/1/n"),
        (lambda s: dict(s)["list"][0].update(n=9), "/list/0/n"),
        (lambda s: {**s}["list"][0].update(n=9), "/list/0/n"),
        (lambda s: sorted(s["list"], key=lambda item: -item["n"])[0].update(n=9), "/list/1/n"),
        (lambda s: (s["list"] + [])[0].update(n=9), "/list/0/n"),
        (lambda s: ([] + s["list"])[0].update(n=9), "/list/0/n"),
        (lambda s: next(value for value in s.values() if isinstance(value, list))[0].update(n=9), "/list/0/n"),
    ],
)
def test_a_small_change_is_one_operation_at_its_place(act: Any, path: str):
    before = deep()
    seen = view(before)
    act(seen)
    fact = changed(before, seen)
    assert isinstance(fact, StateDelta)
    assert [operation["path"] for operation in fact.delta] == [path]
    assert before == deep()


@pytest.mark.parametrize(
    "put",
    [
        lambda s: s["a"].__setitem__(slice(None), s["b"]),
        lambda s: s["a"].__setitem__(slice(0, 0), s["b"]),
        lambda s: s["a"].__setitem__(slice(0, 1, 1), s["b"]),
        lambda s: s["a"].__iadd__(s["b"]).reverse(),
        lambda s: s.update(a=s["b"]),
        lambda s: s.__ior__({"a": s["b"]}),
        lambda s: s.update(s["c"]),
        lambda s: s.__ior__(s["c"]),
    ],
)
def test_what_is_put_elsewhere_is_still_not_the_threads_own(put: Any):
    before: Any = {"a": [{"n": 1}], "b": [{"n": 2}], "c": {"a": [{"n": 3}]}}
    kept = copy.deepcopy(before)
    seen = view(before)
    put(seen)
    seen["a"][0]["n"] = 9
    assert settled(seen)["a"][0] == {"n": 9}
    assert before == kept


def test_a_slice_takes_whatever_can_be_iterated_and_a_place_takes_one_value():
    seen = view([1, 2, 3, 4])
    seen[1:3] = (letter for letter in "xyz")
    seen[0] = "ab"
    with pytest.raises(ValueError, match="extended slice"):
        seen[::2] = [1]
    assert settled(seen) == ["ab", "x", "y", "z", 4]


def test_what_a_tool_puts_in_is_its_own_until_the_end():
    seen = view({})
    mine: list[Any] = []
    seen["mine"] = mine
    assert seen["mine"] is mine
    mine.append({"late": True})
    assert settled(seen) == {"mine": [{"late": True}]}


def test_what_is_no_json_becomes_json():
    seen = view({"a": [1]})
    seen["a"].append(float("nan"))
    seen["set"] = {2}
    seen[3] = "\ud800"
    assert settled(seen) == {"a": [1, None], "set": [2], "3": "\ufffd"}


def test_a_value_within_itself_is_refused():
    seen = view({"a": []})
    seen["a"].append(seen["a"])
    with pytest.raises(RecursionError):
        settled(seen)


@given(STATES)
def test_copies_are_plain_and_encoders_take_a_view_for_what_it_is(state: Any):
    seen = view(state)
    for made in (copy.deepcopy(seen), pickle.loads(pickle.dumps(seen)), json.loads(json.dumps(seen))):
        assert type(made) is dict
        assert made == state
    assert orjson.loads(orjson.dumps(seen)) == orjson.loads(orjson.dumps(state))
    assert isinstance(seen, dict)
    assert repr(seen) == repr(state)
