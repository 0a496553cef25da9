"""The Messages decoder: what it hears in streams of every kind."""

from __future__ import annotations

from typing import Any

import pytest

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.dialects import DONE
from runtime.dialects.anthropic import Anthropic
from runtime.errors import ProtocolError, ProviderError
from tests.pure.anthropic_events import (
    answered,
    args,
    begun,
    block,
    call,
    called,
    delta,
    ends,
    finish,
    heard,
    said,
    start,
    stop,
    text,
)

HALF, OTHER_HALF = "\ud83d", "\ude00"


# --- evidence -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chunks", [[], [begun()], [begun(), *block(0, "text", text(0, "Hi"))], [begun(), *block(0, "text"), DONE]]
)
def test_a_stream_without_a_stop_reason_or_a_stop_commits_nothing(chunks: list[JsonObject]) -> None:
    with pytest.raises(ProtocolError) as caught:
        heard(*chunks)
    assert (caught.value.code, caught.value.retryable) == ("stream_cut", True)


@pytest.mark.parametrize("end", [ends()[:1], ends()[1:], ends(None), ends("")])
def test_one_of_the_two_is_evidence(end: list[JsonObject]) -> None:
    samples = heard(begun(), *block(0, "text", text(0, "Hi")), *end)
    assert samples[:2] == [s.TextDelta("Hi"), s.AssistantMessageDone()]
    assert finish(samples).finish == "stop"


def test_nothing_counts_behind_the_stop() -> None:
    samples = heard(begun(), *block(0, "text", text(0, "Hi")), *ends(), text(0, "!"), *ends("max_tokens"))
    assert said(samples) == "Hi"
    assert finish(samples).finish == "stop"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
        ("compaction", "pause_turn"),
        ("refusal", "refusal"),
        ("brand_new", "brand_new"),
    ],
)
def test_stop_reasons_have_our_words(reason: str, expected: str) -> None:
    assert finish(heard(begun(), *block(0, "text", text(0, "Hi")), *ends(reason))).finish == expected


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "tool_use", "pause_turn", None])
def test_whether_a_round_has_calls_is_decided_by_the_calls(reason: str | None) -> None:
    samples = heard(begun(), call(0), args(0, '{"a":1}'), stop(0), *ends(reason))
    assert called(samples) == [("t", '{"a":1}', "c1")]
    assert finish(samples).finish == "tool_calls"


def test_an_error_in_the_stream_is_classified() -> None:
    with pytest.raises(ProviderError) as caught:
        heard(begun(), {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    assert (caught.value.code, caught.value.retryable) == ("provider_overloaded", True)
    with pytest.raises(ProviderError):
        heard({"error": {"message": "no"}})


# --- calls --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [[], [""], ["", ""], [" "], ["null"], ["nu", "ll"]])
def test_a_call_without_arguments_has_an_empty_object(pieces: list[str]) -> None:
    assert called(answered(call(0), *(args(0, piece) for piece in pieces), stop(0))) == [("t", "{}", "c1")]


@pytest.mark.parametrize("given", [{"a": 1}, '{"a":1}'])
def test_arguments_that_come_with_the_beginning_count_only_without_deltas(given: Any) -> None:
    assert called(answered(call(0, given=given), stop(0))) == [("t", '{"a":1}', "c1")]
    assert called(answered(call(0, given=given), args(0, '{"b":2}'), stop(0))) == [("t", '{"b":2}', "c1")]


def test_arguments_are_shown_as_they_come_and_committed_as_they_were_written() -> None:
    samples = answered(call(0), args(0, '{"a": Da'), args(0, "ve}"), stop(0), reason="tool_use")
    assert samples == [
        s.ToolCallDelta("0", "t", "", "c1"),
        s.ToolCallDelta("0", "t", '{"a": Da', "c1"),
        s.ToolCallDelta("0", "t", "ve}", "c1"),
        s.ToolCallCommitted("0", "t", '{"a": Dave}', "c1"),
    ]


def test_calls_may_be_written_at_the_same_time() -> None:
    chunks = [call(0), call(1, "u", "c2"), args(0, '{"a"'), args(1, '{"b"'), args(0, ":1}"), args(1, ":2}")]
    samples = answered(*chunks, stop(1), stop(0))
    assert called(samples) == [("t", '{"a":1}', "c1"), ("u", '{"b":2}', "c2")]


@pytest.mark.parametrize("reason", ["tool_use", "end_turn", "stop_sequence"])
def test_a_block_whose_end_is_missing_is_over_when_the_message_is(reason: str) -> None:
    samples = answered(call(0), args(0, '{"a":1}'), reason=reason)
    assert called(samples) == [("t", '{"a":1}', "c1")]
    assert said(answered(start(0, "text"), text(0, "Hi"), reason=reason)) == "Hi"


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_an_answer_cut_by_its_length_commits_no_call_but_its_text(reason: str) -> None:
    samples = answered(*block(0, "text", text(0, "Hi")), call(1), args(1, "{}"), stop(1), call(2), reason=reason)
    assert called(samples) == []
    assert s.AssistantMessageDone() in samples
    assert [one.key for one in samples if isinstance(one, s.ToolCallDelta)] == ["1", "1", "2"]


@pytest.mark.parametrize("reason", ["brand_new", "pause_turn", None])
def test_a_call_that_was_not_ended_counts_only_if_the_answer_is_said_to_be_whole(reason: str | None) -> None:
    samples = answered(call(0), args(0, "{}"), stop(0), call(1, call_id="c2"), args(1, "{}"), reason=reason)
    assert called(samples) == [("t", "{}", "c1")]


def test_one_index_for_all_blocks_makes_no_difference() -> None:
    chunks = [call(0), args(0, '{"a":1}'), stop(0), call(0, call_id="c2"), args(0, '{"b":2}'), stop(0)]
    samples = answered(*block(0, "text", text(0, "Hi")), *chunks)
    assert called(samples) == [("t", '{"a":1}', "c1"), ("t", '{"b":2}', "c2")]


def test_no_index_means_the_last_block() -> None:
    samples = answered(start(None, "text"), text(None, "Hi"), stop(None), call(None), args(None, "{}"), stop(None))
    assert said(samples) == "Hi"
    assert called(samples) == [("t", "{}", "c1")]


def test_a_call_that_is_told_twice_is_one_call() -> None:
    once = [call(0), args(0, '{"a":1}'), stop(0)]
    assert called(answered(*once, *once)) == [("t", '{"a":1}', "c1")]
    assert called(answered(call(0), call(0), args(0, '{"a":1}'), stop(0))) == [("t", '{"a":1}', "c1")]


def test_what_the_provider_wants_back_with_a_call_is_kept() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    samples = answered(call(0, caller=caller, none=None), stop(0))
    assert [one.opaque for one in samples if isinstance(one, s.ToolCallCommitted)] == [{"caller": caller}]


def test_tools_that_had_to_be_renamed_are_called_by_their_own_names() -> None:
    samples = answered(call(0, "my_tool"), stop(0), call(1, "other", "c2"), stop(1), declared=("my.tool", "other"))
    assert [name for name, _, _ in called(samples)] == ["my.tool", "other"]
    assert [name for name, _, _ in called(answered(call(0, "a_b"), stop(0), declared=("a.b", "a_b")))] == ["a_b"]


def test_the_calls_of_a_model_that_declined_are_not_committed() -> None:
    fallback = block(1, "fallback", **{"from": {"model": "a"}, "to": {"model": "b"}})
    samples = answered(call(0), args(0, "{}"), stop(0), *fallback, call(2, call_id="c2"), stop(2))
    assert called(samples) == [("t", "{}", "c2")]


# --- refusals, usage, names ---------------------------------------------------------------------------------------


def test_a_refusal_commits_nothing_and_says_why() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "No, with key sk-abcdefghijkl."}
    chunks = [*block(0, "text", text(0, "Sure")), call(1), stop(1)]
    samples = heard(begun(), *chunks, *ends("refusal", stop_details=details))
    assert not [one for one in samples if isinstance(one, (s.AssistantMessageDone, s.ToolCallCommitted))]
    assert finish(samples).explanation == "No, with key [redacted]"
    assert finish(heard(begun(), *ends("refusal", stop_details={"explanation": None}))).explanation is None


FULL = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 1}


@pytest.mark.parametrize(
    ("first", "later", "expected"),
    [
        (
            FULL,
            {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}},
            {
                "input_tokens": 115,
                "output_tokens": 7,
                "total_tokens": 122,
                "reasoning_tokens": 3,
                "cached_input_tokens": 100,
                "cache_write_input_tokens": 5,
            },
        ),
        ({"input_tokens": 43}, {"input_tokens": 61, "output_tokens": 2}, {"input_tokens": 61, "output_tokens": 2}),
        ({"input_tokens": 43}, {"input_tokens": 0, "output_tokens": 2}, {"input_tokens": 43, "output_tokens": 2}),
        ({"input_tokens": 0}, {"input_tokens": 0, "output_tokens": 2}, {"output_tokens": 2}),
        ({"input_tokens": 0}, {"input_tokens": 9, "output_tokens": 2}, {"input_tokens": 9, "output_tokens": 2}),
        (FULL, None, {"input_tokens": 115, "cached_input_tokens": 100, "cache_write_input_tokens": 5}),
        ({"input_tokens": 4, "cache_read_input_tokens": None}, {"output_tokens": 0}, {"input_tokens": 4}),
        ({"cache_read_input_tokens": 4}, {"output_tokens": 3}, {"output_tokens": 3}),
        ({"input_tokens": "4"}, {"output_tokens": True}, None),
        (None, None, None),
    ],
)
@pytest.mark.requirement("R-196")
def test_counts_are_totals_and_later_ones_replace_earlier_ones(
    first: Any, later: Any, expected: JsonObject | None
) -> None:
    usage = finish(heard(begun(usage=first), *block(0, "text", text(0, "x")), *ends(usage=later))).usage
    if expected is None:
        assert usage is None
    else:
        assert usage is not None
        assert {name: usage.get(name) for name in expected} == expected
        assert usage.get("cached_input_tokens") == expected.get("cached_input_tokens")
        assert usage.get("input_tokens") == expected.get("input_tokens")


def test_the_first_beginning_names_the_message_and_its_model() -> None:
    again = begun(id="msg_2", model="m-2", usage={"input_tokens": 20})
    end = finish(heard(begun(), again, *block(0, "text", text(0, "x")), *ends()))
    assert (end.provider_response_id, end.model) == ("msg_1", "m-1")
    assert end.usage is not None
    assert end.usage["input_tokens"] == 20


def test_the_model_that_went_on_is_named() -> None:
    assert finish(heard(begun(), *block(0, "fallback", to={"model": "b"}), *ends())).model == "b"


# --- characters and nonsense --------------------------------------------------------------------------------------


def test_halves_of_a_character_are_joined() -> None:
    chunks = [*block(0, "text", text(0, "a" + HALF), text(0, OTHER_HALF)), call(1), args(1, '{"a":"' + HALF)]
    samples = answered(*chunks, args(1, OTHER_HALF + '"}'), stop(1))
    assert said(samples) == "a\U0001f600"
    assert called(samples)[0][1] == '{"a":"\U0001f600"}'
    assert said(answered(*block(0, "text", text(0, "a" + HALF)))) == "a\ufffd"


@pytest.mark.parametrize(
    "nonsense",
    [
        {"type": "ping"},
        {"type": "brand_new", "x": 1},
        {"type": 7},
        {},
        {"type": "content_block_delta"},
        {"type": "content_block_delta", "index": "0", "delta": {"type": []}},
        {"type": "content_block_start", "index": 3, "content_block": None},
        {"type": "content_block_stop", "index": 77},
        {"type": "message_delta", "delta": None, "usage": None},
        {"type": "message_start"},
        text(0, None),
        text(0, ""),
        args(0, "{}"),
        delta(0, "future_delta", zip=1),
        delta(9, "future_delta", zip=1),
        DONE,
    ],
)
def test_what_says_nothing_changes_nothing(nonsense: JsonObject) -> None:
    chunks = [begun(), start(0, "text"), text(0, "Hi"), stop(0), *ends()]
    plain = heard(*chunks)
    for at in range(2, len(chunks)):
        assert heard(*chunks[:at], nonsense, *chunks[at:]) == plain


def test_text_whose_block_nobody_began_is_said() -> None:
    assert said(answered(text(0, "Hi"))) == "Hi"


@pytest.mark.parametrize("chunk", [None, 3, "x", [], [{}]])
def test_a_chunk_that_is_no_object_is_a_protocol_error(chunk: Any) -> None:
    with pytest.raises(ProtocolError):
        Anthropic().decoder([]).feed(chunk)
