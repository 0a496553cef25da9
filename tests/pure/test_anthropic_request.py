"""Requests of the Messages API: what becomes of messages, calls, thoughts, media and options."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.canonical import JsonObject
from runtime.dialects.anthropic_history import APPLICATION, BEGINNING, EMPTY
from runtime.dialects.history import LATE_ANSWER, NO_OUTPUT
from runtime.items import Item, Message, Reasoning, ToolSpec
from tests.pure.anthropic_histories import (
    AGAIN,
    MEDIA,
    USER,
    answered,
    blocks,
    called,
    encode,
    found,
    hosted,
    redacted,
    search,
    sent,
    thought,
    words,
)


def text(words_: str) -> JsonObject:
    return {"type": "text", "text": words_}


def assistant(*items: Item, **options: Any) -> list[JsonObject]:
    """What the assistant is said to have said between two words of the user's."""
    return [block for role, block in blocks(USER, *items, AGAIN, **options) if role == "assistant"]


# --- messages -----------------------------------------------------------------------------------------------------


def test_user_and_assistant_take_turns() -> None:
    assert sent(USER, AGAIN, words("Hi"), USER) == [
        {"role": "user", "content": [text("x"), text("y")]},
        {"role": "assistant", "content": [text("Hi")]},
        {"role": "user", "content": [text("x")]},
    ]


def test_a_conversation_that_the_assistant_began_begins_with_the_user_all_the_same() -> None:
    assert sent(words("Hi"), USER)[0] == {"role": "user", "content": [text(BEGINNING)]}
    assert sent() == [{"role": "user", "content": [text(EMPTY)]}]


def test_a_message_that_says_nothing_is_said_to_be_empty() -> None:
    audio: JsonObject = {"type": "audio", "source": {"type": "url", "value": "https://a.test/a"}}
    for content in ("", " \n", [], [text("")], [audio]):
        assert sent(Message("user", content)) == [{"role": "user", "content": [text(EMPTY)]}]


def test_white_space_between_texts_goes_to_the_text_before_it() -> None:
    assert assistant(words("a"), words("\n\n"), words("b")) == [text("a\n\n"), text("b")]
    assert assistant(words(" "), words("b")) == [text("b")]


def test_a_request_that_ends_with_the_assistant_ends_with_a_word() -> None:
    assert sent(USER, words("Hi \n"))[-1]["content"] == [text("Hi")]
    assert assistant(words("Hi \n")) == [text("Hi \n")]


def test_system_messages_before_all_others_are_the_system_text_later_ones_are_told() -> None:
    request = encode(Message("system", "A"), USER, Message("system", "B"), Message("system", " "), instructions="I")
    assert [block["text"] for block in request["system"]] == ["I", "A"]
    assert [block["text"] for block in request["messages"][0]["content"]] == ["x", APPLICATION + "B"]
    assert "system" not in encode(USER, instructions="")


def test_a_late_answer_is_labelled() -> None:
    assert blocks(Message("user", "42", "late_tool_answer"))[0][1] == text(LATE_ANSWER + "42")


# --- calls --------------------------------------------------------------------------------------------------------


def test_results_stand_directly_behind_their_calls_in_call_order_before_what_the_user_says() -> None:
    history = [USER, words("Let me see."), called("a"), called("b"), AGAIN, answered("b", "2"), answered("a", "1")]
    assert [block.get("type") + block.get("tool_use_id", "") for _, block in blocks(*history)] == [
        "text",
        "text",
        "tool_use",
        "tool_use",
        "tool_resulta",
        "tool_resultb",
        "text",
    ]


@pytest.mark.parametrize(
    ("output", "is_error", "expected"),
    [
        ("1", False, {"content": "1"}),
        ("", False, {"content": ""}),
        (" \n", False, {"content": ""}),
        ("boom", True, {"content": "boom", "is_error": True}),
        ("", True, {"content": "Error", "is_error": True}),
        ([text("a"), text("")], False, {"content": [text("a")]}),
        ([], False, {"content": ""}),
        ([], True, {"content": "Error", "is_error": True}),
    ],
)
def test_a_result_says_what_the_tool_said_and_whether_it_failed(
    output: Any, is_error: bool, expected: JsonObject
) -> None:
    result = blocks(USER, called(), answered("c1", output, is_error=is_error))[-1][1]
    assert result == {"type": "tool_result", "tool_use_id": "c1", **expected}


def test_a_call_without_a_result_has_an_error() -> None:
    assert blocks(USER, called(), AGAIN)[-2][1] == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": NO_OUTPUT,
        "is_error": True,
    }


@pytest.mark.parametrize("arguments", ["", "null", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    assert assistant(called(arguments=arguments), answered())[0]["input"] == {}


@pytest.mark.parametrize("arguments", ['{"a":', "[1]", '"x"', '{"a":"\\ud83d"}'])
def test_malformed_arguments_are_an_object_that_says_so(arguments: str) -> None:
    assert assistant(called(arguments=arguments), answered())[0]["input"] == {"INVALID_JSON": arguments}


def test_an_id_that_the_api_refuses_is_another_one_for_the_call_and_its_result() -> None:
    history = [USER, called("a.b"), called("x" * 99), answered("a.b"), answered("x" * 99)]
    made = [block for _, block in blocks(*history)]
    assert [block["id"] for block in made[1:3]] == [block["tool_use_id"] for block in made[3:]]
    assert made == [block for _, block in blocks(*history)]


def test_an_id_that_is_used_again_is_renamed_with_its_result() -> None:
    history = [USER, called(), answered(output="1"), called(), answered(output="2")]
    results = [block for _, block in blocks(*history) if block["type"] == "tool_result"]
    assert [(one["tool_use_id"], one["content"]) for one in results] == [("c1", "1"), ("c1-2", "2")]


def test_a_name_that_the_api_refuses_is_another_one_in_the_tools_and_the_history() -> None:
    request = encode(USER, called(name="my.tool"), answered(), tools=(ToolSpec("my.tool", "", {}),))
    assert request["tools"][0]["name"] == request["messages"][1]["content"][0]["name"] == "my_tool"


def test_what_a_call_carried_goes_back_to_its_provider_only() -> None:
    caller: JsonObject = {"caller": {"type": "code_execution_20250825", "tool_id": "s1"}, "toolset_name": "b"}
    call = called(opaque=caller, provider="anthropic")
    with_use = assistant(search(), call, answered(), found())
    assert with_use[1] == {"type": "tool_use", "id": "c1", "name": "t", "input": {}, **caller}
    assert "caller" not in assistant(call, answered())[0], "the caller did not go back"
    assert set(assistant(called(opaque=caller, provider="openai"), answered())[0]) == {"type", "id", "name", "input"}


# --- thoughts -----------------------------------------------------------------------------------------------------

SIGNED = {"type": "thinking", "thinking": "Hm", "signature": "S"}
HIDDEN = {"type": "redacted_thinking", "data": "R"}


@pytest.mark.requirement("R-060", "R-203")
def test_thoughts_go_back_to_the_provider_that_issued_them_in_their_place() -> None:
    history = (thought(), redacted(), words("a"), thought(), called(), answered())
    made = [block for _, block in blocks(USER, *history)]
    assert made[1:5] == [SIGNED, HIDDEN, text("a"), SIGNED]
    assert [block["type"] for _, block in blocks(USER, *history, provider="other")][1:3] == ["text", "tool_use"]


@pytest.mark.parametrize(
    "spoiling", [[thought(signature=None)], [thought(signature="")], [search("s9")], [found("s9")]], ids=str
)
def test_if_one_thought_of_a_message_cannot_go_back_none_does(spoiling: list[Item]) -> None:
    assert assistant(thought(), *spoiling, words("a")) == [text("a")]
    behind = assistant(thought(), *spoiling, called(), answered(), thought(), words("b"))
    assert [block["type"] for block in behind] == ["tool_use", "thinking", "text"], "other messages keep theirs"


def test_a_thought_that_leads_to_nothing_is_left_out_and_so_is_a_message_of_nothing_else() -> None:
    assert assistant(words("a"), thought()) == [text("a")]
    assert sent(USER, thought(), AGAIN) == [{"role": "user", "content": [text("x"), text("y")]}]


def test_which_thoughts_go_back_is_an_option() -> None:
    history = (USER, thought(), words("a"), AGAIN, thought(), called(), answered())

    def count(replay: str) -> int:
        return sum(block["type"] == "thinking" for _, block in blocks(*history, replay_reasoning=replay))

    assert [count(replay) for replay in ("always", "loop", "never")] == [2, 1, 0]


THINKING = {"type": "enabled", "budget_tokens": 2000}


@pytest.mark.parametrize(
    ("history", "stays"),
    [
        ([USER], True),
        ([USER, thought(), called(), answered()], True),
        ([USER, thought(), called(), answered(), called("c2"), answered("c2")], True),
        ([USER, called(), answered()], False),
        ([USER, words("a"), called(), answered()], False),
        ([USER, thought(provider="openai"), called(), answered()], False),
        ([USER, called(), answered(), AGAIN], True),
        ([USER, called(), answered(), words("a")], False),
    ],
)
def test_thinking_is_off_for_a_tool_loop_that_began_without_a_thought(history: list[Item], stays: bool) -> None:
    assert ("thinking" in encode(*history, thinking=THINKING)) == stays
    assert "thinking" in encode(*history, thinking={"type": "adaptive"})


# --- what only the provider understands ---------------------------------------------------------------------------


def test_the_providers_own_blocks_go_back_in_their_place() -> None:
    fallback = hosted("fallback", to={"model": "b"})
    history = (words("a"), search(), found(), fallback, words("b"))
    kept = [item.opaque for item in history if isinstance(item, Reasoning)]
    assert assistant(*history) == [text("a"), *kept, text("b")]
    assert [block["type"] for _, block in blocks(USER, *history, AGAIN, provider="other")] == ["text"] * 4


def test_a_server_tool_waits_for_its_result_until_a_user_speaks() -> None:
    assert [block["type"] for _, block in blocks(USER, search(), called(), answered())] == [
        "text",
        "server_tool_use",
        "tool_use",
        "tool_result",
    ]
    assert assistant(search(), called(), answered())[0]["type"] == "tool_use"
    later = assistant(search(), called(), answered(), found(), words("a"))
    assert [block["type"] for block in later] == ["server_tool_use", "tool_use", "web_search_tool_result", "text"]
    assert [block["type"] for _, block in blocks(USER, search(), AGAIN, found(), words("b"))] == ["text"] * 3


def cited(words_: str, **citation: Any) -> Reasoning:
    return hosted("text", text=words_, citations=[{"x": 1, **citation}])


def test_a_text_with_citations_takes_the_place_of_the_same_words() -> None:
    source: list[JsonObject] = [{"x": 1}]
    assert assistant(words("It is so"), cited("so", file_id="f"), words(".")) == [
        text("It is "),
        {**text("so"), "citations": source},
        text("."),
    ]
    assert assistant(words("a"), cited("a"), words(" b"), cited("b")) == [
        {**text("a "), "citations": source},
        {**text("b"), "citations": source},
    ]
    assert assistant(words(" b"), cited("b")) == [{**text(" b"), "citations": source}]
    for other in (cited("no"), cited(""), hosted("text", text="so", citations=[]), hosted("text")):
        assert assistant(words("It is so"), other) == [text("It is so")]


# --- media --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "source", "expected"), MEDIA)
def test_media_go_with_the_users_words_and_with_results(
    kind: str, source: JsonObject, expected: JsonObject | None
) -> None:
    part: JsonObject = {"type": kind, "source": source}
    made = [{"type": kind, "source": expected}] if expected else []
    request = encode(Message("user", [text("See"), part]), cache_ttl=None)
    assert request["messages"][0]["content"] == [text("See"), *made]
    is_file = expected is not None and expected["type"] == "file"
    assert request.get("betas") == (["files-api-2025-04-14"] if is_file else None)
    result = encode(USER, called(), answered("c1", [text("a"), part]), cache_ttl=None)
    assert result["messages"][-1]["content"][0]["content"] == [text("a"), *made]
    assert ("betas" in result) == is_file
    failed = blocks(USER, called(), answered("c1", [text("a"), part], is_error=True))[-1][1]
    assert failed["content"] == [text("a")]


def test_a_document_has_its_name() -> None:
    part: JsonObject = {"type": "document", "source": MEDIA[10][1], "metadata": {"filename": "a.pdf"}}
    assert blocks(Message("user", [part]))[0][1]["title"] == "a.pdf"
