"""How each dialect asks for a schema, and how its own options go with that."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types.output_config_param import OutputConfigParam
from openai.types.responses.response_format_text_json_schema_config_param import ResponseFormatTextJSONSchemaConfigParam
from openai.types.shared_params.response_format_json_schema import ResponseFormatJSONSchema
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from runtime.canonical import JsonObject
from runtime.dialects import Dialect
from runtime.dialects.anthropic import Anthropic
from runtime.dialects.openai_chat import OpenAIChat
from runtime.dialects.openai_responses import OpenAIResponses
from runtime.items import REJECTED, REJECTION, Message
from runtime.output import NATIVE, TOOL, Output
from runtime.output_type import read_output_type


class Point(BaseModel):
    x: int = Field(ge=0)


STRICT: JsonObject = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": 0}},
    "required": ["x"],
    "additionalProperties": False,
}
CHAT, RESPONSES, ANTHROPIC = OpenAIChat("openai"), OpenAIResponses("openai"), Anthropic("anthropic")
ALL: list[Dialect] = [CHAT, RESPONSES, ANTHROPIC]


def asked(dialect: Dialect, type_: Any = Point, mode: str = NATIVE, **options: Any) -> JsonObject:
    """The request of a run that owes a value of this type."""
    output = Output(read_output_type(type_), mode)
    given = {"model": "m", **output.options(), **options}
    return dialect.encode([Message("user", "Where?")], output.tools(), given)


def is_closed(typed: type[Any], value: Any) -> bool:
    """Whether the SDK's own type has every member of a value, and no other."""

    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")
        value: typed  # pyright: ignore[reportInvalidTypeForm]

    TypeAdapter(Closed).validate_python({"value": value})
    return True


def test_chat_completions_has_a_response_format():
    made = asked(CHAT)["response_format"]
    assert made == {"type": "json_schema", "json_schema": {"name": "Point", "schema": STRICT, "strict": True}}
    assert is_closed(ResponseFormatJSONSchema, made)


def test_responses_has_the_format_of_its_text():
    made = asked(RESPONSES)["text"]
    assert made == {"format": {"type": "json_schema", "name": "Point", "schema": STRICT, "strict": True}}
    assert is_closed(ResponseFormatTextJSONSchemaConfigParam, made["format"])


def test_anthropic_has_an_output_config_and_limits_in_words():
    made = asked(ANTHROPIC)["output_config"]
    worded = {**STRICT, "properties": {"x": {"type": "integer", "description": "(minimum: 0)"}}}
    assert made == {"format": {"type": "json_schema", "schema": worded}}
    assert is_closed(OutputConfigParam, made)


def test_a_schema_without_a_strict_form_is_asked_for_without_strictness():
    made = asked(CHAT, dict[str, int])["response_format"]["json_schema"]
    assert (made["strict"], made["schema"]["additionalProperties"]) == (False, {"type": "integer"})


def test_the_other_members_of_the_same_option_stay():
    assert asked(RESPONSES, text={"verbosity": "low"})["text"].keys() == {"format", "verbosity"}
    assert asked(ANTHROPIC, output_config={"effort": "low"})["output_config"].keys() == {"format", "effort"}


def test_an_option_that_says_the_format_itself_has_the_last_word():
    mine: JsonObject = {"type": "json_object"}
    assert asked(CHAT, response_format=mine)["response_format"] == mine
    assert asked(RESPONSES, text={"format": mine})["text"] == {"format": mine}
    assert asked(ANTHROPIC, output_config={"format": mine})["output_config"] == {"format": mine}


def test_null_takes_the_format_out_of_a_request():
    assert "response_format" not in asked(CHAT, response_format=None)
    assert "text" not in asked(RESPONSES, text=None)
    assert "output_config" not in asked(ANTHROPIC, output_config=None)


@pytest.mark.parametrize("dialect", ALL, ids=lambda one: one.name)
def test_options_are_not_changed_by_what_is_asked(dialect: Dialect):
    options: dict[str, Any] = {"text": {"verbosity": "low"}, "output_config": {"effort": "low"}}
    asked(dialect, **options)
    assert options == {"text": {"verbosity": "low"}, "output_config": {"effort": "low"}}


@pytest.mark.parametrize("dialect", ALL, ids=lambda one: one.name)
def test_in_tool_mode_there_is_a_tool_and_no_format(dialect: Dialect):
    request = asked(dialect, mode=TOOL)
    assert not {"response_format", "text", "output_config", "output_schema"} & request.keys()
    assert "final_response" in str(request["tools"])


@pytest.mark.parametrize("dialect", ALL, ids=lambda one: one.name)
def test_without_an_output_type_nothing_is_asked(dialect: Dialect):
    request = dialect.encode([Message("user", "Where?")], [], {"model": "m"})
    assert not {"response_format", "text", "output_config", "output_schema", "tools"} & request.keys()


@pytest.mark.parametrize("dialect", ALL, ids=lambda one: one.name)
def test_a_rejection_is_said_as_the_user_would_say_it(dialect: Dialect):
    items = [Message("user", "Where?"), Message("assistant", "1"), Message("user", f"{REJECTED} no", REJECTION)]
    request = dialect.encode(items, [], {"model": "m"})
    last = (request.get("messages") or request["input"])[-1]
    assert last["role"] == "user"
    assert f"{REJECTED} no" in str(last["content"])
