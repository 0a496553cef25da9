"""Fragments of tool calls, in all the ways in which servers cut and label them."""

from __future__ import annotations

from typing import Any

import pytest

from runtime import samples as s
from runtime.canonical import Json, JsonObject
from runtime.dialects.call_fragments import CallFragments


def call(arguments: object = None, /, **members: Any) -> JsonObject:
    name = members.pop("name", None)
    return {**members, "function": {"name": name, "arguments": arguments}}


def calls(*fragments: JsonObject) -> Json:
    return list(fragments)


def committed(*chunks: Json, declared: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of each call; what was shown is checked to be a beginning of it."""
    fragments = CallFragments(declared)
    shown: dict[str, tuple[str, str]] = {}
    for delta in [delta for chunk in chunks for delta in fragments.feed(chunk)] + fragments.settle():
        name, text = shown.get(delta.key, (delta.name, ""))
        assert name == delta.name, "the name is settled when it is first shown"
        shown[delta.key] = (name, text + delta.arguments)
    found = fragments.commit()
    assert [one.name for one in found] == [shown[one.key][0] for one in found]
    assert all(one.arguments_json.startswith(shown[one.key][1]) for one in found)
    return [(one.provider_call_id, one.name, one.arguments_json) for one in found]


@pytest.mark.parametrize(
    ("name", "chunks", "expected"),
    [
        (
            "ids on one index open calls, also when they come back",
            [
                calls(call('{"a"', index=0, id="c1", name="t")),
                calls(call('{"b"', index=0, id="c2", name="t")),
                calls(call(":1}", index=0, id="c1")),
                calls(call(":2}", index=0, id="c2")),
            ],
            [("c1", "t", '{"a":1}'), ("c2", "t", '{"b":2}')],
        ),
        (
            "one id on two indexes is two calls",
            [calls(call("{}", index=0, id="x", name="t"), call("{}", index=1, id="x", name="u"))],
            [("x", "t", "{}"), ("x", "u", "{}")],
        ),
        (
            "a late id belongs to the call that has none",
            [calls(call("", index=0, name="t")), calls(call("{}", index=0, id="c1"))],
            [("c1", "t", "{}")],
        ),
        (
            "whole calls without index and id are calls each",
            [calls(call('{"a":1}', name="t")), calls(call('{"a":1}', name="t")), calls(call("", name="u"))],
            [("", "t", '{"a":1}'), ("", "t", '{"a":1}'), ("", "u", "{}")],
        ),
        (
            "calls without arguments in one chunk are calls each",
            [calls(call(None, name="t"), call(None, name="t"))],
            [("", "t", "{}"), ("", "t", "{}")],
        ),
        (
            "fragments without index go to the last call",
            [calls(call('{"a"', id="c1", name="t")), calls(call(":1}"))],
            [("c1", "t", '{"a":1}')],
        ),
        (
            "other whole arguments of the same index and name are another call",
            [calls(call('{"a":1}', index=0, name="t")), calls(call('{"a":2}', index=0, name="t"))],
            [("", "t", '{"a":1}'), ("", "t", '{"a":2}')],
        ),
        (
            "the same whole call again is a repetition",
            [calls(call('{"a":1}', index=0, id="c", name="t")), calls(call('{"a":1}', index=0, id="c", name="t"))],
            [("c", "t", '{"a":1}')],
        ),
        (
            "an empty fragment opens nothing",
            [calls(call("", index=0, id="", name="")), calls({"index": 3}), calls(call("{}", index=0, name="t"))],
            [("", "t", "{}")],
        ),
        (
            "a call without a name is committed without one",
            [calls(call('{"a":1}', index=0, id="c"))],
            [("c", "", '{"a":1}')],
        ),
        (
            "name and arguments may stand beside the index",
            [calls({"index": 0, "id": "c", "name": "t", "arguments": {"a": 1}})],
            [("c", "t", '{"a":1}')],
        ),
        (
            "arguments that are no object are committed as written",
            [calls(call("nul", index=0, name="t")), calls(call(7, index=1, name="t"))],
            [("", "t", "nul"), ("", "t", "7")],
        ),
        (
            "null in a longer value is no absence",
            [calls(call("null", index=0, name="t")), calls(call("able", index=0))],
            [("", "t", "nullable")],
        ),
        (
            "a lone dict and a text are no list",
            [call("{}", index=0, name="t"), "x"],
            [("", "t", "{}")],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_fragments_become_calls(name: str, chunks: list[Json], expected: list[tuple[str, str, str]]) -> None:
    assert committed(*chunks) == expected


@pytest.mark.parametrize(
    ("pieces", "declared", "expected"),
    [
        (["get_", "weather"], ("get_weather",), "get_weather"),
        (["get_", "get_weather"], ("get_weather",), "get_weather"),
        (["get_weather", "get_weather"], ("get_weather",), "get_weather"),
        (["get_weather", "get_weather"], (), "get_weather"),
        (["get", "_weather"], ("get", "get_weather"), "get_weather"),
        (["ha", "ha"], ("haha",), "haha"),
    ],
)
def test_a_name_in_pieces_is_put_together_by_the_declared_names(
    pieces: list[str], declared: tuple[str, ...], expected: str
) -> None:
    chunks = [calls(call("", index=0, id="c", name=piece)) for piece in pieces]
    assert committed(*chunks, calls(call("{}", index=0)), declared=declared) == [("c", expected, "{}")]


def test_a_call_is_shown_as_soon_as_its_name_can_grow_no_more() -> None:
    decoder = CallFragments(["get_weather", "get", "list"])
    assert decoder.feed(calls(call("", index=0, id="c1", name="list"))) == [s.ToolCallDelta("0", "list", "", "c1")]
    assert decoder.feed(calls(call("", index=1, id="c2", name="get"))) == []
    assert decoder.feed(calls(call("{", index=1))) == [s.ToolCallDelta("1", "get", "{", "c2")]


def test_two_declared_names_at_one_place_are_two_calls() -> None:
    chunks = [calls(call("", index=0, name="a_tool")), calls(call("", index=0, name="b_tool"))]
    assert [name for _, name, _ in committed(*chunks, declared=("a_tool", "b_tool"))] == ["a_tool", "b_tool"]


def test_halves_of_a_character_are_joined_and_a_lonely_one_is_replaced() -> None:
    chunks = [calls(call('{"a":"\ud83d', index=0, name="t")), calls(call('\ude00"}', index=0))]
    assert committed(*chunks) == [("", "t", '{"a":"😀"}')]
    assert committed(calls(call('{"a":\ud83d', index=0, name="t"))) == [("", "t", '{"a":\ufffd')]


def test_other_members_of_a_call_are_kept_and_null_is_none_of_them() -> None:
    fragments = CallFragments([])
    fragments.feed([{**call("{", index=0, name="t"), "extra_content": {"a": 1}, "note": None}])
    fragments.feed([{**call("}", index=0), "more": "b"}])
    fragments.settle()
    assert fragments.commit()[0].opaque == {"extra_content": {"a": 1}, "more": "b"}
