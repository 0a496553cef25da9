"""A history as a Responses request: nothing that the API would refuse, nothing lost that it could be told."""

from __future__ import annotations

import pytest

from runtime.canonical import JsonObject
from runtime.dialects.history import LATE_ANSWER, NO_OUTPUT
from runtime.dialects.openai_chat import OpenAIChat
from runtime.dialects.openai_responses import OpenAIResponses
from runtime.items import FunctionCallOutput, Message, Reasoning, ToolSpec
from tests.pure.responses_histories import MEDIA, USER, answered, called, encode, hosted, sent, source, thought

TOOL = ToolSpec("get_weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})


# --- the request --------------------------------------------------------------------------------------------------


def test_a_request_streams_says_all_of_it_and_passes_the_options_on() -> None:
    assert encode(USER, tools=(TOOL,), instructions="Be kind.", temperature=0, seed=None, think_tags=True) == {
        "model": "m",
        "instructions": "Be kind.",
        "input": [{"type": "message", "role": "user", "content": "x"}],
        "tools": [
            {
                "type": "function",
                "name": "get_weather",
                "description": "The weather.",
                "parameters": TOOL.parameters,
                "strict": False,
            }
        ],
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
        "temperature": 0,
    }


def test_options_that_need_tools_go_only_with_tools() -> None:
    assert set(encode(USER, tool_choice="auto")) == {"model", "input", "include", "store", "stream"}
    assert encode(USER, tools=(TOOL,), tool_choice="auto")["tool_choice"] == "auto"


def test_hosted_and_custom_tools_join_the_declared_ones_or_take_their_place() -> None:
    search, custom = {"type": "web_search"}, {"type": "custom", "name": "get_weather"}
    options = {"model": "m", "tools": [search, custom]}
    assert OpenAIResponses().encode([USER], [TOOL], options)["tools"] == [search, custom]
    assert OpenAIResponses().encode([USER], [TOOL], {"tools": [search]})["tools"][1] == search


@pytest.mark.parametrize(
    ("options", "include"),
    [
        ({"include": ["web_search_call.results"]}, ["reasoning.encrypted_content", "web_search_call.results"]),
        ({"include": ["reasoning.encrypted_content"]}, ["reasoning.encrypted_content"]),
        ({"include": None}, None),
        ({"model": "gpt-4.1-mini"}, None),
        ({"model": "gpt-5-chat-latest"}, None),
        ({"model": "gpt-5-mini"}, ["reasoning.encrypted_content"]),
        ({"model": "o4-mini"}, ["reasoning.encrypted_content"]),
    ],
)
def test_encrypted_reasoning_is_asked_of_models_that_reason(options: JsonObject, include: list[str] | None) -> None:
    assert OpenAIResponses().encode([USER], [], {"model": "m", **options}).get("include") == include


# --- turns --------------------------------------------------------------------------------------------------------


def test_a_turn_keeps_its_order_and_outputs_follow_it_in_call_order() -> None:
    items = sent(
        USER,
        Message("assistant", "Let me look.", "working_message", "commentary"),
        thought(),
        called("c1"),
        called("c2", arguments="", name="multi_tool_use.parallel"),
        answered("c2", "two"),
        answered("c1", "one"),
        Message("assistant", "Done.", "final_response", "final_answer"),
    )
    assert items[1:] == [
        {"type": "message", "role": "assistant", "content": "Let me look.", "phase": "commentary"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"},
        {"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "multi_tool_use_parallel", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "function_call_output", "call_id": "c2", "output": "two"},
        {"type": "message", "role": "assistant", "content": "Done.", "phase": "final_answer"},
    ]


def test_the_phase_of_a_round_is_that_of_its_last_message() -> None:
    round_ = [Message("assistant", word, "final_response", "final_answer") for word in ("a", "b")]
    assert [one.get("phase") for one in sent(USER, round_[0], hosted("web_search_call"), round_[1])] == [
        None,
        None,
        None,
        "final_answer",
    ]


def test_a_refusal_goes_back_as_one() -> None:
    items = sent(USER, Message("assistant", "No.", "final_response", refusal=True))
    assert items[1]["content"] == [{"type": "refusal", "refusal": "No."}]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (None, NO_OUTPUT),
        (answered(output="no", is_error=True), "Error: no"),
        (answered(output="Error: no", is_error=True), "Error: no"),
        (answered(output="", is_error=True), "Error"),
        (answered(output=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ab"),
        (answered(output=[]), ""),
    ],
)
def test_every_call_has_its_output(output: FunctionCallOutput | None, text: str) -> None:
    assert sent(USER, called(), *([output] if output else []), USER)[2]["output"] == text


def test_an_output_goes_to_the_call_of_its_own_turn() -> None:
    items = (USER, called("d1"), USER, called("d1"), answered("d1", "B"), USER)
    assert [one["output"] for one in sent(*items) if "output" in one] == [NO_OUTPUT, "B"]
    chat = OpenAIChat().encode(items, [], {"model": "m"})["messages"]
    assert [one["content"] for one in chat if one["role"] == "tool"] == [NO_OUTPUT, "B"]


@pytest.mark.parametrize("call_id", ["", "x" * 65, "x" * 256, "\ud83d" * 70])
def test_an_id_that_the_api_would_refuse_is_replaced_for_call_and_output(call_id: str) -> None:
    call, output = sent(USER, called(call_id), answered(call_id))[1:]
    assert call["call_id"] == output["call_id"]
    assert output["output"] == "1"


def test_a_late_answer_is_labelled() -> None:
    assert sent(Message("user", "green", "late_tool_answer"))[0]["content"] == LATE_ANSWER + "green"


# --- reasoning ----------------------------------------------------------------------------------------------------


def test_reasoning_goes_back_only_encrypted_only_to_its_provider_and_only_before_what_it_led_to() -> None:
    for history in (
        (thought(encrypted=None), called()),
        (thought(provider="anthropic"), called()),
        (thought(),),
        (thought(), USER, called()),
        (called(), answered(), thought(), USER),
        (thought(), called(provider="anthropic")),
        (Reasoning("Hm", "openai", None, "E", {"reasoning_details": []}), called()),
    ):
        assert not [one for one in sent(USER, *history) if one["type"] == "reasoning"]


def test_of_thoughts_in_a_row_the_one_before_the_follower_goes_back() -> None:
    items = sent(USER, thought("rs_1"), Reasoning("Two", "openai"), thought("rs_2"), called())
    assert [one["id"] for one in items if one["type"] == "reasoning"] == ["rs_2"]


@pytest.mark.parametrize("id_", [None, ""])
def test_an_id_that_is_not_real_is_not_sent(id_: str | None) -> None:
    assert sent(USER, thought(id_), called())[1] == {"type": "reasoning", "summary": [], "encrypted_content": "E"}


def test_an_id_is_sent_once() -> None:
    items = sent(USER, thought(), called(), answered(), thought(), called("c2"))
    assert [one.get("id") for one in items if one["type"] == "reasoning"] == ["rs_1", None]


@pytest.mark.parametrize(("replay", "count"), [("always", 2), ("loop", 1), ("never", 0)])
def test_how_much_reasoning_goes_back_is_an_option(replay: str, count: int) -> None:
    items = sent(USER, thought("a"), called(), answered(), USER, thought("b"), called(), replay_reasoning=replay)
    assert [one["type"] for one in items].count("reasoning") == count


# --- what only the provider understands ---------------------------------------------------------------------------


def test_a_hosted_tool_goes_back_in_its_place_to_its_provider_with_the_thought_before_it() -> None:
    search = hosted("web_search_call", id="ws_1", status="completed")
    history = (USER, thought(), search, Message("assistant", "It rains.", "final_response"))
    assert [one["type"] for one in sent(*history)] == ["message", "reasoning", "web_search_call", "message"]
    assert [one["type"] for one in sent(*history, provider="other")] == ["message", "message"]


def test_an_item_that_names_a_call_stays_only_together_with_its_output() -> None:
    call, output = hosted("shell_call", id="s", call_id="c"), hosted("shell_call_output", id="o", call_id="c")
    assert [one["type"] for one in sent(USER, call, output)][1:] == ["shell_call", "shell_call_output"]
    assert len(sent(USER, thought(), call)) == 1
    assert len(sent(USER, output)) == 1


def test_the_same_item_twice_is_sent_once() -> None:
    assert len(sent(USER, hosted("compaction", id="x"), hosted("compaction", id="x"))) == 2


@pytest.mark.parametrize("arguments", ['{"input":1}', "[]", "SELECT", "{}"])
def test_a_custom_call_without_free_text_goes_back_as_a_function_call(arguments: str) -> None:
    call = called(arguments=arguments, opaque={"type": "custom_tool_call"}, provider="openai")
    assert sent(USER, call)[1]["type"] == "function_call"


def test_what_the_provider_gave_with_a_call_goes_back_to_it_and_to_no_other() -> None:
    caller = {"type": "program", "caller_id": "p1"}
    call = called(opaque={"type": "function_call", "caller": caller}, provider="openai")
    assert [one.get("caller") for one in sent(USER, call)] == [None, caller, caller]
    assert not any("caller" in one for one in sent(USER, call, provider="other"))
    foreign = called(opaque={"extra_content": 1}, provider="openai")
    assert "extra_content" not in sent(USER, foreign)[1]


# --- media --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "where", "made"), MEDIA)
def test_a_part_is_sent_if_the_format_has_it_and_left_out_if_not(
    kind: str, where: JsonObject, made: JsonObject | None
) -> None:
    content: list[JsonObject] = [{"type": "text", "text": "See:"}, {"type": kind, "source": where}]
    said: JsonObject = {"type": "input_text", "text": "See:"}
    head = {"type": "input_image", "detail": "auto"} if kind == "image" else {"type": "input_file"}
    expected = [said] if made is None else [said, {**head, **made}]
    items = sent(Message("user", content), called(), answered(output=content))
    assert items[0]["content"] == expected
    assert items[2]["output"] == ("See:" if made is None else expected)


def test_a_failed_output_with_media_says_that_it_failed() -> None:
    image: JsonObject = {"type": "image", "source": source("url", "https://a.test/b.png")}
    output = sent(USER, called(), answered(output=[image], is_error=True))[2]["output"]
    assert output[0] == {"type": "input_text", "text": "Error"}


@pytest.mark.parametrize("part", [{"type": "image"}, {"type": "hologram", "source": "x"}, {"type": "text", "text": ""}])
def test_a_message_that_lost_every_part_is_empty_text(part: JsonObject) -> None:
    items = sent(Message("user", [part]), called(), answered(output=[part]))
    assert [items[0]["content"], items[2]["output"]] == ["", ""]


def test_an_output_may_have_the_id_of_its_call_and_never_stands_before_it() -> None:
    call: JsonObject = {"type": "local_shell_call", "id": "ls_1", "call_id": "l1"}
    output: JsonObject = {"type": "local_shell_call_output", "id": "ls_1"}
    kept = [Reasoning("", "openai", None, None, opaque) for opaque in (call, output)]
    assert sent(USER, *kept)[1:] == [call, output]
    assert sent(USER, kept[1], USER, kept[0]) == sent(USER, USER)
