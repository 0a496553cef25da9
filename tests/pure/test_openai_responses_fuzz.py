"""The Responses decoder takes whatever JSON comes, and says nothing that the loop could not bear."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime import samples as s
from runtime.budget import Budget
from runtime.canonical import Json, JsonObject
from runtime.dialects import DONE
from runtime.dialects.openai_responses import _EVENTS, OpenAIResponses
from runtime.errors import ProtocolError, ProviderError
from runtime.sampling import Sampling
from runtime.steps import CallModel
from tests.examples import examples

ANY: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
WORD = st.sampled_from(["", "a", "ab", "abc", "<think>", "</think>", "{", '{"x":1}', "null", "\ud83d", "\ude00x"])
KIND = st.sampled_from(
    [
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "web_search_call",
        "mcp_approval_request",
        "shell_call",
    ]
)


def rarely(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what fits the member, now and then anything."""
    return st.one_of(strategy, strategy, strategy, strategy, ANY)


PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["output_text", "refusal", "reasoning_text", "summary_text"])},
    optional={"text": rarely(WORD), "refusal": rarely(WORD)},
)
ITEM = st.fixed_dictionaries(
    {"type": rarely(KIND)},
    optional={
        "id": rarely(st.sampled_from(["i1", "i2"])),
        "call_id": rarely(st.sampled_from(["c1", "c2", ""])),
        "name": rarely(st.sampled_from(["t", "u", ""])),
        "arguments": rarely(WORD),
        "input": rarely(WORD),
        "status": rarely(st.sampled_from(["completed", "incomplete"])),
        "phase": rarely(st.just("commentary")),
        "content": rarely(st.lists(PART, max_size=2)),
        "summary": rarely(st.lists(PART, max_size=2)),
        "encrypted_content": rarely(st.just("E")),
    },
)
RESPONSE = st.fixed_dictionaries(
    {},
    optional={
        "id": rarely(st.just("r1")),
        "status": rarely(st.sampled_from(["completed", "incomplete", "in_progress"])),
        "incomplete_details": rarely(st.just({"reason": "max_output_tokens"})),
        "output": rarely(st.lists(ITEM, max_size=3)),
        "usage": rarely(st.fixed_dictionaries({"input_tokens": ANY, "output_tokens": ANY})),
    },
)
EVENT = st.fixed_dictionaries(
    {"type": st.sampled_from([*_EVENTS, "response.brand_new"])},
    optional={
        "output_index": rarely(st.integers(0, 2)),
        "content_index": rarely(st.integers(0, 1)),
        "summary_index": rarely(st.integers(0, 1)),
        "item_id": rarely(st.sampled_from(["i1", "i2"])),
        "delta": rarely(WORD),
        "text": rarely(WORD),
        "refusal": rarely(WORD),
        "arguments": rarely(WORD),
        "name": rarely(st.just("t")),
        "part": rarely(PART),
        "item": rarely(ITEM),
        "response": rarely(RESPONSE),
    },
)
END: JsonObject = {"type": "response.completed", "response": {"id": "r"}}


def loop() -> Sampling:
    sampling = Sampling(
        message_id="m",
        provider="openai",
        target=lambda _: "nobody",
        taken=set(),
        mint=lambda prefix: f"{prefix}_{next(numbers)}",
        budget=Budget(rounds=5),
        elapsed=lambda: 0.0,
    )
    numbers = iter(range(1000))
    sampling.round_started("m-1", {})
    return sampling


@examples(500)
@given(st.lists(st.one_of(EVENT, EVENT, EVENT, ANY, st.just(DONE)), max_size=12))
def test_any_chunks_are_samples_or_a_provider_error(chunks: list[Any]) -> None:
    decoder = OpenAIResponses().decoder(["t"])
    sampling = loop()
    samples: list[s.Sample] = []
    try:
        for chunk in [*chunks, END]:
            assert not any(isinstance(one, (s.Completed, s.ToolCallCommitted)) for one in samples)
            samples += decoder.feed(chunk)
        samples += decoder.finish()
        said = sampling.feed(samples)
    except ProviderError as error:
        orjson.dumps(error.as_payload())
        return
    assert sampling.next() != CallModel(1)
    orjson.dumps(said)  # nothing that could not be stored
    assert [type(one) for one in samples].count(s.Completed) == 1
    assert isinstance(samples[-1], s.Completed)
    shown: dict[str, str] = {}
    for one in samples:
        if isinstance(one, (s.TextDelta, s.ReasoningDelta, s.RefusalDelta)):
            assert one.text
        elif isinstance(one, s.ToolCallDelta):
            shown[one.key] = one.name
        elif isinstance(one, s.ToolCallCommitted):
            assert shown[one.key] == one.name, "a call is shown before it is committed"


@examples(200)
@given(st.lists(EVENT, max_size=8), st.lists(EVENT, max_size=8))
def test_two_responses_never_mix(one: list[JsonObject], other: list[JsonObject]) -> None:
    def alone(chunks: list[JsonObject]) -> list[s.Sample] | str:
        decoder = OpenAIResponses().decoder([])
        try:
            return [sample for chunk in chunks for sample in decoder.feed(chunk)]
        except ProviderError as error:
            return error.code

    first = alone(one)
    alone(other)
    assert alone(one) == first


@examples(200)
@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=6), st.integers(0, 60))
def test_a_text_comes_out_whole_however_it_is_cut_and_told(text: str, cuts: list[int], told: int) -> None:
    borders = sorted({0, min(told, len(text)), *(cut for cut in cuts if cut < min(told, len(text)))})
    decoder = OpenAIResponses(think_tags=False).decoder([])
    where: JsonObject = {"output_index": 0, "content_index": 0}
    chunks = [
        {"type": "response.output_text.delta", "delta": text[start:end], **where}
        for start, end in itertools.pairwise(borders)
    ]
    chunks += [{"type": "response.output_text.done", "text": text, **where}] * 2
    heard = [sample for chunk in [*chunks, END] for sample in decoder.feed(chunk)] + decoder.finish()
    assert "".join(one.text for one in heard if isinstance(one, s.TextDelta)) == text


def test_what_is_nested_too_deeply_is_a_protocol_error() -> None:
    deep: Json = []
    for _ in range(5000):
        deep = [deep]
    item = {"type": "web_search_call", "x": deep}
    with pytest.raises(ProtocolError):
        OpenAIResponses().decoder([]).feed({"type": "response.output_item.done", "output_index": 0, "item": item})
