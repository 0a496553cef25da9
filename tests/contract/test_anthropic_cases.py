"""The case log of Anthropic's Messages API as data: streams.

Every stream runs twice: parsed, through the decoder, and as bytes in many pieces, through the real SDK's client.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random

import pytest

from runtime import events as e
from runtime import samples as s
from runtime.budget import Budget
from runtime.dialects.anthropic import Anthropic
from runtime.errors import ProviderError
from runtime.sampling import Sampling
from runtime.steps import CallModel, Fail, RunTools, Step, Succeed
from tests.contract.anthropic_cases import (
    INDEX,
    PAUSED,
    Response,
    bodies_of,
    chunks_of,
    listen,
    listen_on_the_wire,
)

NAMES = sorted(name for name in INDEX if name != PAUSED)
LENGTH_IS_FINAL = "C-078"


def check(name: str, heard: Response) -> None:
    expect = INDEX[name]["expect"]
    outcome = expect["outcome"]
    assert heard.text == expect["text"]
    assert heard.reasoning == expect["reasoning"]
    if name in ("C-070", "C-076"):
        assert heard.error is not None
        assert heard.error.retryable
        assert not heard.ends
        assert not heard.calls
        assert not heard.committed_text
        return
    assert heard.error is None
    assert len(heard.ends) == 1
    wanted = [(tool, json.loads(arguments)) for tool, arguments in expect["tool_calls"]]
    assert heard.runnable == wanted
    assert heard.rejected == expect.get("rejected", [])
    assert heard.committed_text == (bool(heard.text) and outcome != "refusal")
    assert len({call.key for call in heard.calls}) == len(heard.calls)
    if "signatures" in expect:
        assert [done.signature for done in heard.done] == expect["signatures"]
    if "redacted" in expect:
        assert [done.encrypted_value for done in heard.done] == expect["redacted"]
        assert not any(done.opaque or done.signature for done in heard.done)
    if "usage" in expect:
        usage = heard.ends[0].usage
        assert usage is not None
        assert [usage["input_tokens"], usage["output_tokens"]] == expect["usage"]


@pytest.mark.parametrize("name", NAMES)
def test_the_decoder_hears_what_the_case_says(name: str) -> None:
    check(name, listen(chunks_of(name)))


@pytest.mark.parametrize("name", NAMES)
async def test_the_real_client_hears_the_same_however_the_bytes_are_cut(name: str) -> None:
    body = bodies_of(name)[0]
    cuts = random.Random(name)
    borders = sorted({0, len(body), *(cuts.randrange(1, len(body)) for _ in range(20))})
    check(name, await listen_on_the_wire([body[start:end] for start, end in itertools.pairwise(borders)]))


async def test_many_streams_at_once_do_not_mix() -> None:
    heard = await asyncio.gather(*(listen_on_the_wire(bodies_of(name)) for name in NAMES))
    for name, one in zip(NAMES, heard, strict=True):
        check(name, one)


# --- what the loop makes of them ----------------------------------------------------------------------------------


def looped(name: str) -> tuple[Step, list[e.Event]]:
    """What the loop does with the case's first response, and what it says of it."""
    sampling = Sampling(
        message_id="m1",
        provider="anthropic",
        target=lambda _: "server",
        taken=set(),
        mint=lambda prefix: f"{prefix}_1",
        budget=Budget(rounds=5),
        elapsed=lambda: 0.0,
    )
    said = [*sampling.start(), *sampling.round_started("m-test", {})]
    decoder = Anthropic().decoder([])
    try:
        for chunk in chunks_of(name):
            said += sampling.feed(decoder.feed(chunk))
        said += sampling.feed(decoder.finish())
    except ProviderError as error:
        sampling.round_failed(error)
    return sampling.next(), said


@pytest.mark.parametrize("name", NAMES)
def test_the_loop_goes_where_the_case_says(name: str) -> None:
    expect = INDEX[name]["expect"]
    step, _ = looped(name)
    if expect["outcome"] == "final" or name == LENGTH_IS_FINAL:
        assert step == Succeed([])
    elif expect["outcome"] == "tool_calls":
        assert isinstance(step, RunTools)
        named = [tool for tool, _ in expect["tool_calls"]] + expect.get("rejected", [])
        assert [call.tool_name for call in step.calls] == named
        assert [call.malformed for call in step.calls] == [name in expect.get("rejected", []) for name in named]
    else:
        assert isinstance(step, Fail)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("C-062", "output_truncated"),
        ("C-068", "refusal"),
        ("C-069", "refusal"),
        ("C-070", "provider_overloaded"),
        ("C-075", "empty_response"),
        ("C-076", "stream_cut"),
    ],
)
def test_a_failed_round_says_why(name: str, code: str) -> None:
    step, said = looped(name)
    assert isinstance(step, Fail)
    assert step.error.code == code
    assert not [one for one in said if isinstance(one, (e.ToolCallCommitted, e.RoundCompleted))]


def test_a_refusal_says_what_the_provider_said_of_it_C_068() -> None:
    step, _ = looped("C-068")
    assert isinstance(step, Fail)
    assert "blocked" in step.error.message


def test_a_turn_that_was_paused_is_no_final_answer_C_067() -> None:
    step, said = looped(PAUSED)
    assert step == CallModel(2)
    assert not [one for one in said if isinstance(one, e.RoundCompleted) and one.runtime_role == "final_response"]


def test_the_parts_of_a_round_keep_their_order_C_077() -> None:
    heard = listen(chunks_of("C-077"))
    kinds = [type(one).__name__ for one in heard.samples if not isinstance(one, s.AssistantMessageDone)]
    assert kinds == ["TextDelta", "ToolCallDelta", "ToolCallDelta", "TextDelta", "ToolCallCommitted", "Completed"]
