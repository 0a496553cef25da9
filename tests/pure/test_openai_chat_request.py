"""A history as a Chat Completions request: nothing that a server would refuse, nothing lost that it could be told."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from runtime.canonical import JsonObject
from runtime.dialects.history import LATE_ANSWER
from runtime.dialects.openai_chat import OpenAIChat
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, ToolSpec

TOOL = ToolSpec("get_weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})


def messages(*items: Item, **options: Any) -> list[JsonObject]:
    return OpenAIChat().encode(items, [], {"model": "m", **options})["messages"]


def test_a_request_streams_with_usage_and_passes_the_options_on() -> None:
    options = {"model": "m", "instructions": "Be kind.", "temperature": 0, "think_tags": True, "seed": None}
    assert OpenAIChat().encode([Message("user", "Hi")], [TOOL], options) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "get_weather", "description": "The weather.", "parameters": TOOL.parameters},
            }
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
    }


def test_options_that_need_tools_go_only_with_tools() -> None:
    options = {"model": "m", "tool_choice": "auto", "stream_options": None}
    assert set(OpenAIChat().encode([], [], options)) == {"model", "messages", "stream"}
    assert OpenAIChat().encode([], [TOOL], options)["tool_choice"] == "auto"


def test_a_round_is_one_assistant_message_with_its_results_behind_it() -> None:
    sent = messages(
        Message("user", "x"),
        Message("assistant", "Let me ", "working_message"),
        FunctionCall("c1", "t", "{}"),
        Message("assistant", "look.", "working_message"),
        FunctionCall("c2", "t", ""),
        FunctionCallOutput("c1", "t", "1", is_error=False),
        FunctionCallOutput("c2", "t", "2", is_error=False),
        FunctionCall("c3", "t", "{}"),
        FunctionCallOutput("c3", "t", "", is_error=True),
        Message("assistant", "Done.", "final_response"),
    )
    function = {"name": "t", "arguments": "{}"}
    assert sent[1:] == [
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": function},
                {"id": "c2", "type": "function", "function": function},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c3", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c3", "content": "Error"},
        {"role": "assistant", "content": "Done."},
    ]


def test_adopted_assistant_messages_stay_apart() -> None:
    sent = messages(Message("assistant", "One."), Message("assistant", "Two."))
    assert [one["content"] for one in sent] == ["One.", "Two."]


@pytest.mark.parametrize("arguments", ['{"a":', "[1]", "text", '"{}"', '{"a":"\\ud83d"}'])
def test_malformed_arguments_go_back_as_a_json_object(arguments: str) -> None:
    sent = messages(FunctionCall("c", "t", arguments, malformed=True))
    assert orjson.loads(sent[0]["tool_calls"][0]["function"]["arguments"]) == {"INVALID_JSON": arguments}


@pytest.mark.parametrize("arguments", ["", " ", "null"])
def test_no_arguments_go_back_as_an_empty_object(arguments: str) -> None:
    assert messages(FunctionCall("c", "t", arguments))[0]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (
            {"type": "image", "source": {"type": "data", "value": "QQ==", "mime_type": "image/jpeg"}},
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QQ=="}},
        ),
        (
            {"type": "image", "source": {"type": "url", "value": "https://a.test/b.png"}},
            {"type": "image_url", "image_url": {"url": "https://a.test/b.png"}},
        ),
        (
            {"type": "audio", "source": {"type": "data", "value": "QQ==", "mime_type": "audio/mpeg"}},
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
        ),
        (
            {
                "type": "document",
                "source": {"type": "data", "value": "QQ==", "mime_type": "application/pdf"},
                "metadata": {"filename": "a.pdf"},
            },
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="}},
        ),
        (
            {"type": "document", "source": {"type": "file", "value": "f1", "provider": "openai"}},
            {"type": "file", "file": {"file_id": "f1"}},
        ),
        ({"type": "document", "source": {"type": "file", "value": "f1", "provider": "other"}}, None),
        ({"type": "image", "source": {"type": "file", "value": "f1"}}, None),
        ({"type": "audio", "source": {"type": "url", "value": "https://a.test/b.mp3"}}, None),
        ({"type": "audio", "source": {"type": "data", "value": "QQ==", "mime_type": "audio/ogg"}}, None),
        ({"type": "video", "source": {"type": "data", "value": "QQ==", "mime_type": "video/mp4"}}, None),
        ({"type": "document", "source": {"type": "data", "value": "QQ==", "mime_type": "text/csv"}}, None),
        ({"type": "image"}, None),
        ({"type": "hologram", "source": "x"}, None),
    ],
)
@pytest.mark.requirement("R-043")
def test_a_part_is_sent_if_the_format_has_it_and_left_out_if_not(part: JsonObject, sent: JsonObject | None) -> None:
    content = messages(Message("user", [{"type": "text", "text": "See:"}, part]))[0]["content"]
    assert (
        content
        == (["See:"] if sent is None else [{"type": "text", "text": "See:"}, sent])[0 if sent is None else slice(None)]
    )


@pytest.mark.requirement("R-045")
def test_a_message_or_result_that_lost_every_part_is_empty_text() -> None:
    video: JsonObject = {"type": "video", "source": {"type": "url", "value": "https://a.test/v"}}
    sent = messages(
        Message("user", [video]), FunctionCall("c", "t", "{}"), FunctionCallOutput("c", "t", [video], is_error=False)
    )
    assert [one["content"] for one in sent] == ["", None, ""]


def test_a_late_answer_is_labelled() -> None:
    content = messages(Message("user", "green", "late_tool_answer"))[0]["content"]
    assert content.endswith("\ngreen")
    assert content != "green"


def test_a_late_answer_in_parts_is_labelled_before_them() -> None:
    picture: JsonObject = {"type": "image", "source": {"type": "url", "value": "https://a.test/green.png"}}
    parts = messages(Message("user", [{"type": "text", "text": "green"}, picture], "late_tool_answer"))[0]["content"]
    assert [part["type"] for part in parts] == ["text", "text", "image_url"]
    assert parts[0] == {"type": "text", "text": LATE_ANSWER}


def test_a_failure_is_marked_once() -> None:
    sent = messages(FunctionCall("c", "t", "{}"), FunctionCallOutput("c", "t", "Error: no", is_error=True))
    assert sent[1]["content"] == "Error: no"
