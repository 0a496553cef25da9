"""What a run has to call first: how a page says it, when it holds, and how each provider is told."""

from __future__ import annotations

from typing import Any

import pytest

from agui_bridge.page_tools import tool_choice
from agui_bridge.run_input import RunInput
from runtime.authority import ANONYMOUS
from runtime.canonical import Json, JsonObject
from runtime.dialects import Dialect
from runtime.dialects.anthropic import Anthropic
from runtime.dialects.openai_chat import OpenAIChat
from runtime.dialects.openai_responses import OpenAIResponses
from runtime.items import FunctionCall, FunctionCallOutput, Message, ToolSpec
from runtime.request import RunRequest
from runtime.run import QUEUED, RunRecord
from runtime.stored_request import request_of, stored_request
from runtime.tool_choice import OPTION, ToolChoice, choice_of, options_for

ANY, NONE, NAMED = ToolChoice(any=True), ToolChoice(), ToolChoice("suggest")
SUGGEST = ToolSpec("suggest", "Suggests.", {"type": "object", "properties": {}})
USER = Message("user", "Hi")


# --- what a page says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ({"type": "function", "function": {"name": "suggest"}}, NAMED),
        ({"type": "function", "name": "suggest"}, NAMED),
        ("required", ANY),
        ("none", NONE),
        ("auto", None),
        (None, None),
        ("suggest", None),
        (7, None),
        ([], None),
        ({}, None),
        ({"type": "function"}, None),
        ({"type": "function", "function": "suggest"}, None),
        ({"type": "function", "function": {"name": 7}}, None),
    ],
)
def test_the_choice_of_a_page_is_read_and_nonsense_is_none(said: Json, read: ToolChoice | None):
    props: JsonObject = {"toolChoice": said}
    assert tool_choice(RunInput("t1", "r1", [], forwarded_props=props)) == read


@pytest.mark.parametrize("props", [None, [], "toolChoice", {}])
def test_a_page_that_says_nothing_leaves_the_choice_to_the_model(props: Json):
    assert tool_choice(RunInput("t1", "r1", [], forwarded_props=props)) is None


# --- when it holds ------------------------------------------------------------------------------------------------


def test_it_holds_for_the_answer_to_a_user_and_for_tools_that_are_there():
    assert options_for(NAMED, [USER], {"suggest"}) == {OPTION: {"name": "suggest"}}
    assert options_for(ANY, [USER], set()) == {OPTION: {"any": True}}
    assert options_for(NAMED, [USER], {"other"}) == {}
    assert options_for(None, [USER], {"suggest"}) == {}
    assert options_for(NAMED, [], {"suggest"}) == {}
    called = [USER, FunctionCall("c1", "suggest", "{}"), FunctionCallOutput("c1", "suggest", "done", is_error=False)]
    assert options_for(NAMED, called, {"suggest"}) == {}
    assert options_for(NAMED, [USER, Message("assistant", "Yes")], {"suggest"}) == {}


@pytest.mark.parametrize("choice", [ANY, NONE, NAMED, None])
def test_it_is_kept_with_the_request_for_whoever_performs_the_run(choice: ToolChoice | None):
    assert choice_of(None if choice is None else choice.as_payload()) == choice
    run = RunRecord("run_1", "-", "me", "thr_1", "t1", "a", "r1", "d", 1, QUEUED, 0, 0, 1, "run_1", 0)
    request = RunRequest(ANONYMOUS, "a", "t1", "r1", "d", 0, [], call_model=True, tool_choice=choice)
    assert request_of(run, stored_request(request)).tool_choice == choice
    assert (b"tool_choice" in stored_request(request)) == (choice is not None)


# --- how providers are told ---------------------------------------------------------------------------------------

TOLD: list[tuple[Dialect, list[Any]]] = [
    (OpenAIChat(), ["required", "none", {"type": "function", "function": {"name": "suggest"}}]),
    (OpenAIResponses(), ["required", "none", {"type": "function", "name": "suggest"}]),
    (Anthropic(), [{"type": "any"}, {"type": "none"}, {"type": "tool", "name": "suggest"}]),
]


@pytest.mark.parametrize(("dialect", "told"), TOLD, ids=lambda value: getattr(value, "name", ""))
def test_each_provider_is_told_in_its_own_words(dialect: Dialect, told: list[Any]):
    for choice, words in zip((ANY, NONE, NAMED), told, strict=True):
        options: JsonObject = {"model": "m", "tool_choice": "another", OPTION: choice.as_payload()}
        request = dialect.encode([USER], [SUGGEST], options)
        assert request["tool_choice"] == words
        assert OPTION not in request
        assert "tool_choice" not in dialect.encode([USER], [], options)


@pytest.mark.parametrize("dialect", [each for each, _ in TOLD], ids=lambda dialect: dialect.name)
def test_the_agents_own_option_stands_where_nobody_chooses(dialect: Dialect):
    assert dialect.encode([USER], [SUGGEST], {"model": "m", "tool_choice": "own"})["tool_choice"] == "own"


def test_anthropic_is_not_asked_to_think_before_a_call_that_has_to_be_made():
    thinking: JsonObject = {"type": "enabled", "budget_tokens": 2048}
    for choice, thinks in ((NAMED, False), (ANY, False), (NONE, True)):
        options: JsonObject = {"model": "m", "thinking": thinking, OPTION: choice.as_payload()}
        assert ("thinking" in Anthropic().encode([USER], [SUGGEST], options)) == thinks


def test_anthropic_is_told_the_name_under_which_the_tool_is_sent():
    tool = ToolSpec("a.b", "", {"type": "object", "properties": {}})
    request = Anthropic().encode([USER], [tool], {"model": "m", OPTION: {"name": "a.b"}})
    assert request["tool_choice"]["name"] == request["tools"][0]["name"] == "a_b"
