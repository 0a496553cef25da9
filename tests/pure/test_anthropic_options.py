"""Requests of the Messages API: tools, options and the breakpoints of the prompt cache."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.canonical import JsonObject
from runtime.dialects.anthropic import Anthropic
from runtime.dialects.anthropic_request import MAX_TOKENS
from runtime.items import ToolSpec
from tests.pure.anthropic_histories import AGAIN, USER, answered, called, encode, words
from tests.pure.anthropic_rules import breakpoints

# --- options ------------------------------------------------------------------------------------------------------

TOOL = ToolSpec("t", "Does it.", {"properties": {"a": {"type": "string"}}})


def test_a_tool_is_told_with_a_schema_of_an_object() -> None:
    assert encode(USER, tools=(TOOL, ToolSpec("u", "", {})), cache_ttl=None)["tools"] == [
        {
            "name": "t",
            "description": "Does it.",
            "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
        },
        {"name": "u", "input_schema": {"type": "object"}},
    ]


def test_the_apis_own_tools_stand_behind_the_declared_ones_or_in_their_place() -> None:
    own = [{"type": "web_search_20250305", "name": "web_search"}, {"name": "t", "input_schema": {"type": "object"}}]
    assert [tool["name"] for tool in encode_with(own, TOOL, ToolSpec("u", "", {}))["tools"]] == ["u", "web_search", "t"]


def encode_with(own: list[JsonObject], *tools: ToolSpec, **options: Any) -> JsonObject:
    return Anthropic().encode([USER], tools, {"model": "m", "tools": own, **options})


def test_names_that_would_collide_stand_once() -> None:
    tools = (ToolSpec("a.b", "1", {}), ToolSpec("a_b", "2", {}), ToolSpec("a:b", "3", {}))
    assert [tool["description"] for tool in encode(USER, tools=tools)["tools"]] == ["2"]


def test_a_history_with_calls_declares_its_tools_even_if_there_are_none_anymore() -> None:
    request = encode(USER, called(name="gone"), answered(), called(name="gone"), tool_choice={"type": "any"})
    assert [tool["name"] for tool in request["tools"]] == ["gone"]
    assert request["tool_choice"] == {"type": "none"}
    assert "tool_choice" not in encode(USER, tool_choice={"type": "any"})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, MAX_TOKENS),
        ({"max_tokens": 7}, 7),
        ({"max_tokens": None}, MAX_TOKENS),
        ({"model": "claude-3-haiku-20240307"}, 4096),
        ({"model": "claude-3-7-sonnet-latest"}, MAX_TOKENS),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, MAX_TOKENS),
        ({"thinking": {"type": "enabled", "budget_tokens": 50_000}}, MAX_TOKENS + 50_000),
    ],
)
def test_an_answer_may_be_long_unless_an_option_says_otherwise(options: JsonObject, expected: int) -> None:
    assert Anthropic().encode([USER], [], {"model": "m", **options})["max_tokens"] == expected


def test_other_options_pass_and_null_takes_a_member_out() -> None:
    request = encode(USER, temperature=0.5, output_config={"effort": "low"}, think_tags=False, metadata=None, top_k=0)
    assert request["temperature"] == 0.5
    assert request["output_config"] == {"effort": "low"}
    assert request["top_k"] == 0
    assert not {"metadata", "think_tags", "cache_ttl", "instructions", "betas"} & set(request)
    assert request["stream"] is True


# --- the prompt cache ---------------------------------------------------------------------------------------------


def test_breakpoints_stand_where_the_next_request_will_agree() -> None:
    request = encode(
        USER, words("a"), AGAIN, words("b"), USER, called(), answered(), tools=(TOOL, TOOL), instructions="I"
    )
    marked = list(breakpoints(request))
    assert [one.get("name") or one.get("text") or one["type"] for one in marked] == ["t", "I", "x", "tool_result"]
    assert marked[0] is request["tools"][-1]
    assert all(one["cache_control"] == {"type": "ephemeral"} for one in marked)


def test_the_time_to_live_is_an_option_and_so_are_breakpoints() -> None:
    assert {one["cache_control"]["ttl"] for one in breakpoints(encode(USER, cache_ttl="1h"))} == {"1h"}
    assert not list(breakpoints(encode(USER, tools=(TOOL,), instructions="I", cache_ttl=None)))


def test_breakpoints_of_the_options_count_and_stay_as_they_are() -> None:
    mark = {"type": "ephemeral", "ttl": "1h"}
    own = [{"type": "web_search_20250305", "name": f"w{n}", "cache_control": mark} for n in range(3)]
    request = encode_with(own, TOOL, instructions="I")
    assert request["tools"][1:] == own
    assert [one["cache_control"] for one in breakpoints(request)] == [mark, mark, mark, {"type": "ephemeral"}]
    automatic = encode(USER, words("a"), AGAIN, instructions="I", cache_control={"type": "ephemeral"})
    assert [one["text"] for one in breakpoints(automatic)] == ["I", "x"]


def test_a_tool_that_is_loaded_later_holds_no_breakpoint() -> None:
    own = [{"name": "late", "input_schema": {"type": "object"}, "defer_loading": True}]
    assert [tool["name"] for tool in encode_with(own, TOOL)["tools"] if "cache_control" in tool] == ["t"]
    assert own == [{"name": "late", "input_schema": {"type": "object"}, "defer_loading": True}]
