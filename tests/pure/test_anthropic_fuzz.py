"""The Messages decoder takes whatever JSON comes, and says nothing that the loop could not bear."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from runtime import samples as s
from runtime.budget import Budget
from runtime.canonical import Json, JsonObject
from runtime.dialects import DONE
from runtime.dialects.anthropic import _DELTAS, _EVENTS, Anthropic
from runtime.errors import ProtocolError, ProviderError
from runtime.sampling import Sampling
from runtime.steps import CallModel
from tests.examples import examples
from tests.pure.anthropic_events import args, begun, block, call, ends, stop, text

ANY: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
WORD = st.sampled_from(["", "a", "ab", "<think>", "</think>", "{", '{"x":1}', "null", "\ud83d", "\ude00x"])
KIND = st.sampled_from(
    ["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result", "fallback", "x"]
)


def rarely(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what fits the member, now and then anything."""
    return st.one_of(strategy, strategy, strategy, strategy, ANY)


BLOCK = st.fixed_dictionaries(
    {"type": rarely(KIND)},
    optional={
        "id": rarely(st.sampled_from(["c1", "c2", ""])),
        "tool_use_id": rarely(st.just("c1")),
        "name": rarely(st.sampled_from(["t", "a_b", ""])),
        "input": rarely(st.sampled_from([{}, {"x": 1}, '{"x":1}'])),
        "text": rarely(WORD),
        "thinking": rarely(WORD),
        "signature": rarely(st.just("S")),
        "data": rarely(st.just("R")),
        "citations": rarely(st.just([])),
        "caller": rarely(st.just({"type": "direct"})),
    },
)
DELTA = st.fixed_dictionaries(
    {"type": rarely(st.sampled_from([*_DELTAS, "compaction_delta", "future_delta"]))},
    optional={
        "text": rarely(WORD),
        "thinking": rarely(WORD),
        "partial_json": rarely(WORD),
        "signature": rarely(st.sampled_from(["S", ""])),
        "citation": rarely(st.just({"x": 1})),
        "content": ANY,
        "stop_reason": rarely(st.sampled_from(["end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", "new"])),
        "stop_details": rarely(st.just({"explanation": "no"})),
    },
)
USAGE = st.fixed_dictionaries({"input_tokens": ANY}, optional={"output_tokens": ANY, "output_tokens_details": ANY})
EVENT = st.fixed_dictionaries(
    {"type": st.sampled_from([*(name for name in _EVENTS if name != "message_stop"), "ping", "brand_new"])},
    optional={
        "index": rarely(st.integers(0, 2)),
        "content_block": rarely(BLOCK),
        "delta": rarely(DELTA),
        "message": rarely(st.fixed_dictionaries({"id": ANY, "model": ANY, "usage": rarely(USAGE)})),
        "usage": rarely(USAGE),
    },
)
END: JsonObject = {"type": "message_stop"}


def loop() -> Sampling:
    numbers = itertools.count()
    sampling = Sampling(
        message_id="m",
        provider="anthropic",
        target=lambda _: "nobody",
        taken=set(),
        mint=lambda prefix: f"{prefix}_{next(numbers)}",
        budget=Budget(rounds=5),
        elapsed=lambda: 0.0,
    )
    sampling.round_started("m-1", {})
    return sampling


@examples(500)
@given(st.lists(st.one_of(EVENT, EVENT, EVENT, EVENT, ANY, st.just(DONE)), max_size=14))
def test_any_chunks_are_samples_or_a_provider_error(chunks: list[Any]) -> None:
    decoder = Anthropic().decoder(["t", "a.b"])
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
            assert shown.setdefault(one.key, one.name) == one.name
        elif isinstance(one, s.ToolCallCommitted):
            assert shown[one.key] == one.name, "a call is shown before it is committed"


@examples(50)
@given(st.lists(EVENT, max_size=8), st.lists(EVENT, max_size=8))
def test_two_responses_never_mix(one: list[JsonObject], other: list[JsonObject]) -> None:
    def alone(chunks: list[JsonObject]) -> list[s.Sample] | str:
        decoder = Anthropic().decoder([])
        try:
            return [sample for chunk in chunks for sample in decoder.feed(chunk)]
        except ProviderError as error:
            return error.code

    first = alone(one)
    alone(other)
    assert alone(one) == first


NOISE = st.sampled_from([{"type": "ping"}, {"type": "brand_new", "x": 1}, begun(), DONE])


@examples(200)
@given(st.text(max_size=40), st.lists(st.integers(0, 40), max_size=6), st.lists(NOISE, max_size=4), st.randoms())
def test_text_and_arguments_come_out_whole_however_they_are_cut(
    said: str, cuts: list[int], noise: list[JsonObject], dice: Any
) -> None:
    written = orjson.dumps({"said": said}).decode()

    def pieces(whole: str) -> list[str]:
        borders = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
        return [whole[begin:end] for begin, end in itertools.pairwise(borders)] or [""]

    chunks = [begun(), *block(0, "text", *(text(0, one) for one in pieces(said)))]
    chunks += [call(1), *(args(1, one) for one in pieces(written)), stop(1), *ends("tool_use")]
    for one in noise:
        chunks.insert(dice.randrange(1, len(chunks)), one)
    decoder = Anthropic(think_tags=False).decoder([])
    heard = [sample for chunk in chunks for sample in decoder.feed(chunk)] + decoder.finish()
    assert "".join(one.text for one in heard if isinstance(one, s.TextDelta)) == said
    assert "".join(one.arguments for one in heard if isinstance(one, s.ToolCallDelta)) == written
    assert [one.arguments_json for one in heard if isinstance(one, s.ToolCallCommitted)] == [written]


def test_what_is_nested_too_deeply_can_be_stored_or_is_a_protocol_error() -> None:
    deep: Json = []
    for _ in range(5000):
        deep = [deep]
    chunks = [*block(0, "web_search_tool_result", tool_use_id="s1", content=deep), call(1, given={"a": deep}), stop(1)]
    decoder = Anthropic().decoder([])
    try:
        samples = [sample for chunk in [begun(), *chunks, *ends()] for sample in decoder.feed(chunk)]
        samples += decoder.finish()
    except ProtocolError:
        return
    orjson.dumps(samples)
