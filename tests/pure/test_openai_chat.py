"""The Chat Completions dialect, case by case: requests out, samples in."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.dialects import DONE
from runtime.dialects.openai_chat import OpenAIChat
from runtime.errors import ProtocolError, ProviderError
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, ToolSpec
from tests.examples import examples

TOOL = ToolSpec("get_weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
STOP: JsonObject = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def delta(**members: Any) -> JsonObject:
    return {"choices": [{"index": 0, "delta": members, "finish_reason": None}]}


def ended(reason: str) -> JsonObject:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def call(arguments: object = None, /, **members: Any) -> JsonObject:
    name = members.pop("name", None)
    return {**members, "function": {"name": name, "arguments": arguments}}


def calls(*fragments: JsonObject) -> JsonObject:
    return delta(tool_calls=list(fragments))


def heard(*chunks: JsonObject, declared: tuple[str, ...] = (), **dialect: Any) -> list[s.Sample]:
    decoder = OpenAIChat(**dialect).decoder(declared)
    return [sample for chunk in chunks for sample in decoder.feed(chunk)] + decoder.finish()


# --- the end ------------------------------------------------------------------------------------------------------


def test_a_stream_ends_with_its_commit_and_the_end() -> None:
    chunk = {"id": "r1", "model": "m-1", **delta(content="Hi")}
    assert heard(chunk, STOP, DONE) == [
        s.TextDelta("Hi"),
        s.AssistantMessageDone(),
        s.Completed("stop", None, "r1", "m-1"),
    ]


def test_a_cut_stream_never_commits() -> None:
    decoder = OpenAIChat().decoder(["t"])
    decoder.feed(delta(content="Hi"))
    decoder.feed(calls(call("{}", index=0, id="c1", name="t")))
    with pytest.raises(ProtocolError) as caught:
        decoder.finish()
    assert (caught.value.code, caught.value.retryable) == ("stream_cut", True)


def test_nothing_is_committed_before_the_end_of_the_stream() -> None:
    decoder = OpenAIChat().decoder([])
    fed = [*decoder.feed(delta(content="Hi")), *decoder.feed(STOP), *decoder.feed(DONE)]
    assert fed == [s.TextDelta("Hi")]


@pytest.mark.parametrize(
    ("reasons", "finish"),
    [
        (["eos"], "eos"),
        (["tool_calls"], "stop"),
        (["function_call"], "stop"),
        (["stop", "tool_calls"], "stop"),
        (["stop", "length"], "length"),
        (["length", "stop"], "length"),
        (["content_filter", "length"], "content_filter"),
        (["model_context_window_exceeded"], "length"),
        (["", "stop"], "stop"),
    ],
)
def test_one_finish_reason_comes_of_many(reasons: list[str], finish: str) -> None:
    end = heard(delta(content="x"), *(ended(reason) for reason in reasons))[-1]
    assert isinstance(end, s.Completed)
    assert end.finish == finish


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "function_call"])
def test_calls_make_the_finish_tool_calls(reason: str) -> None:
    assert heard(calls(call("{}", index=0, name="t")), ended(reason))[-1] == s.Completed("tool_calls")


@pytest.mark.parametrize("name", ["t", ""])
def test_a_length_limit_commits_no_call_of_the_round_but_shows_that_there_was_one(name: str) -> None:
    samples = heard(delta(content="x"), calls(call("{}", index=0, id="c", name=name)), ended("length"))
    assert [type(sample) for sample in samples] == [
        s.TextDelta,
        s.ToolCallDelta,
        s.AssistantMessageDone,
        s.Completed,
    ]


def test_a_content_filter_commits_nothing() -> None:
    samples = heard(delta(content="x"), calls(call("{}", index=0, id="c", name="t")), ended("content_filter"))
    assert not [one for one in samples if isinstance(one, (s.AssistantMessageDone, s.ToolCallCommitted))]
    assert samples[-1] == s.Completed("content_filter")


def test_a_refusal_stop_without_refusal_text_commits_nothing() -> None:
    assert heard(delta(content="x"), ended("refusal")) == [s.TextDelta("x"), s.Completed("refusal")]


def test_a_refusal_with_text_is_a_message() -> None:
    assert heard(delta(refusal="No"), delta(refusal="."), STOP) == [
        s.RefusalDelta("No"),
        s.RefusalDelta("."),
        s.AssistantMessageDone(),
        s.Completed("stop"),
    ]


# --- reasoning and text -------------------------------------------------------------------------------------------


def test_a_thought_ends_where_something_else_begins() -> None:
    samples = heard(
        delta(reasoning="a"), delta(content="b"), delta(reasoning_content="c"), calls(call("{}", name="t")), STOP
    )
    assert [type(one) for one in samples[:6]] == [
        s.ReasoningDelta,
        s.ReasoningDone,
        s.TextDelta,
        s.ReasoningDelta,
        s.ReasoningDone,
        s.ToolCallDelta,
    ]


def test_reasoning_details_are_kept_whole_and_go_back_unchanged() -> None:
    samples = heard(
        delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "Ea"}]),
        delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "sy", "signature": "S"}]),
        delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 1, "data": "E"}]),
        delta(content="4"),
        STOP,
    )
    details = [
        {"type": "reasoning.text", "index": 0, "text": "Easy", "signature": "S"},
        {"type": "reasoning.encrypted", "index": 1, "data": "E"},
    ]
    done = s.ReasoningDone("S", "E", {"reasoning_details": details})
    assert samples[:3] == [s.ReasoningDelta("Ea"), s.ReasoningDelta("sy"), done]
    items: list[Item] = [
        Message("user", "2+2"),
        Reasoning("Easy", "openai", opaque=done.opaque),
        FunctionCall("c", "t", "{}"),
        FunctionCallOutput("c", "t", "", is_error=False),
    ]
    assert OpenAIChat().encode(items, [], {"model": "m"})["messages"][1]["reasoning_details"] == details
    assert "reasoning_details" not in OpenAIChat("other").encode(items, [], {"model": "m"})["messages"][1]


def test_a_signature_behind_the_text_is_a_part_of_its_own() -> None:
    late = delta(reasoning_details=[{"type": "reasoning.text", "signature": "S"}])
    samples = heard(delta(reasoning="a"), delta(content="b"), late, STOP)
    assert [one.signature for one in samples if isinstance(one, s.ReasoningDone)] == [None, "S"]


def test_thinking_in_tags_is_reasoning_unless_switched_off() -> None:
    assert heard(delta(content="<think>a</think>b"), STOP)[:3] == [
        s.ReasoningDelta("a"),
        s.ReasoningDone(),
        s.TextDelta("b"),
    ]
    assert heard(delta(content="<think>a</think>b"), STOP, think_tags=False)[0] == s.TextDelta("<think>a</think>b")
    assert heard(delta(content="a</think>b"), STOP, starts_in_thinking=True)[0] == s.ReasoningDelta("a")


def test_what_was_held_back_comes_out_before_the_call_that_follows() -> None:
    samples = heard(delta(content="\n"), calls(call("{}", name="t")), STOP)
    assert [type(one) for one in samples[:2]] == [s.TextDelta, s.ToolCallDelta]


def test_halves_of_a_character_are_joined_and_a_lonely_one_is_replaced() -> None:
    samples = heard(delta(content="a\ud83d"), delta(content="\ude00b"), delta(content="\ud83d"), STOP)
    assert "".join(one.text for one in samples if isinstance(one, s.TextDelta)) == "a😀b\ufffd"


def test_other_choices_are_not_listened_to() -> None:
    assert heard({"choices": [{"index": 1, "delta": {"content": "x"}}]}, STOP) == [s.Completed("stop")]


# --- usage and errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            {
                "input_tokens": 10,
                "output_tokens": 5,
                "total_tokens": 15,
                "reasoning_tokens": 2,
                "cached_input_tokens": 4,
            },
        ),
        ({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 9}, {"input_tokens": 1, "output_tokens": 2}),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 2,
                "total_tokens": 6,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            {"input_tokens": 1, "output_tokens": 5, "total_tokens": 6, "reasoning_tokens": 3},
        ),
        ({"prompt_tokens": "1", "completion_tokens": True, "total_tokens": -1}, None),
        ({"prompt_tokens": 0}, {"input_tokens": 0}),
    ],
)
@pytest.mark.parametrize("place", ["chunk", "choice", "x_groq"])
def test_usage_is_read_wherever_it_stands(place: str, usage: JsonObject, expected: JsonObject | None) -> None:
    chunk: JsonObject = {
        "chunk": {"choices": [], "usage": usage},
        "choice": {"choices": [{"delta": {}, "usage": usage}]},
        "x_groq": {"choices": [], "x_groq": {"usage": usage}},
    }[place]
    assert heard(chunk, STOP) == [s.Completed("stop", expected)]


def test_later_usage_replaces_and_null_does_not() -> None:
    first: JsonObject = {"usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    second: JsonObject = {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    assert heard(first, second, {"usage": None}, STOP) == [s.Completed("stop", {"input_tokens": 3, "output_tokens": 2})]


@pytest.mark.parametrize(
    ("chunk", "code", "retryable"),
    [
        ({"error": {"message": "slow", "code": "rate_limit_exceeded"}}, "rate_limited", True),
        ({"error": {"message": "slow", "type": "overloaded_error"}}, "provider_overloaded", True),
        ({"error": {"message": "slow", "code": 503}}, "provider_overloaded", True),
        ({"error": {"message": "slow", "code": "504"}}, "provider_timeout", True),
        ({"error": {"message": "pay", "code": "insufficient_quota"}}, "provider_quota", False),
        ({"error": {"message": "key sk-abcdefghijkl", "code": "invalid_api_key"}}, "provider_auth", False),
        ({"error": {"message": "The maximum context length is 8", "code": 400}}, "context_length_exceeded", False),
        ({"error": {"message": "no", "code": "content_filter"}}, "content_filter", False),
        ({"error": {"message": "no", "code": "something_new", "type": "server_error"}}, "provider_error", False),
        ({"error": "a text"}, "provider_error", False),
        ({"error": [1]}, "provider_error", False),
        ({"object": "error", "message": "bad", "code": 400}, "provider_bad_request", False),
        (ended("network_error"), "provider_unavailable", True),
        (ended("error"), "provider_error", True),
    ],
)
def test_an_error_in_the_stream_is_classified(chunk: JsonObject, code: str, retryable: bool) -> None:
    with pytest.raises(ProviderError) as caught:
        heard(chunk)
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert "sk-" not in caught.value.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
ODD = JSON | st.sampled_from(["\ud83d", "<think>", "{", "null", "stop", "error", 0, 10**30])
FRAGMENT = st.fixed_dictionaries(
    {},
    optional={
        "index": ODD,
        "id": ODD,
        "extra": ODD,
        "function": ODD | st.fixed_dictionaries({"name": ODD, "arguments": ODD}),
    },
)
DELTA = st.fixed_dictionaries(
    {},
    optional={
        "content": ODD | st.lists(st.fixed_dictionaries({"type": ODD, "text": ODD, "thinking": ODD}), max_size=2),
        "reasoning": ODD,
        "reasoning_details": ODD | st.lists(st.fixed_dictionaries({"text": ODD, "type": ODD}), max_size=2),
        "refusal": ODD,
        "tool_calls": ODD | st.lists(FRAGMENT, max_size=3),
        "function_call": ODD,
    },
)
CHUNK = JSON | st.fixed_dictionaries(
    {},
    optional={
        "id": ODD,
        "error": ODD,
        "usage": ODD | st.dictionaries(st.sampled_from(["prompt_tokens", "total_tokens"]), ODD),
        "choices": ODD
        | st.lists(
            ODD | st.fixed_dictionaries({"delta": ODD | DELTA}, optional={"finish_reason": ODD, "index": ODD}),
            max_size=2,
        ),
    },
)


@examples(500)
@given(st.lists(CHUNK, max_size=4))
def test_any_json_gives_samples_or_a_classified_error(chunks: list[Any]) -> None:
    decoder = OpenAIChat().decoder(["t"])
    samples: list[s.Sample] = []
    try:
        for chunk in chunks:
            samples += decoder.feed(chunk)
        samples += decoder.feed(DONE) + decoder.finish()
    except ProviderError as error:
        orjson.dumps(error.as_payload())
        return
    assert sum(isinstance(sample, s.Completed) for sample in samples) == 1
    orjson.dumps(samples)  # everything can be stored


@pytest.mark.parametrize("place", ["arguments", "extra"])
def test_a_value_that_is_nested_too_deeply_is_a_protocol_error(place: str) -> None:
    deep: Any = []
    for _ in range(2000):
        deep = [deep]
    fragment = (
        {"index": 0, "function": {"name": "t", "arguments": deep}}
        if place == "arguments"
        else {"deep": deep, "id": "c"}
    )
    with pytest.raises(ProtocolError):
        heard(calls(fragment))
