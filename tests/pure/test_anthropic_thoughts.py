"""The Messages decoder: thoughts, and what only the provider understands."""

from __future__ import annotations

from typing import Any

import pytest

from runtime import samples as s
from runtime.canonical import JsonObject
from tests.pure.anthropic_events import (
    answered,
    args,
    block,
    call,
    delta,
    said,
    signature,
    start,
    stop,
    text,
    thinking,
)

# --- thoughts -----------------------------------------------------------------------------------------------------


def thoughts(samples: list[s.Sample]) -> list[Any]:
    return [
        one.text if isinstance(one, s.ReasoningDelta) else (one.signature, one.encrypted_value)
        for one in samples
        if isinstance(one, (s.ReasoningDelta, s.ReasoningDone))
    ]


@pytest.mark.parametrize("pieces", [["SIG1=="], ["SI", "G1=="], ["SIG1==", "SIG1=="], ["SI", "SIG1=="], ["", "SIG1=="]])
def test_a_signature_is_put_together_byte_for_byte(pieces: list[str]) -> None:
    samples = answered(*block(0, "thinking", thinking(0, "Hm"), *(signature(0, piece) for piece in pieces)))
    assert thoughts(samples) == ["Hm", ("SIG1==", None)]


def test_a_thought_may_come_whole_with_its_beginning() -> None:
    assert thoughts(answered(*block(0, "thinking", thinking="Hm", signature="S"))) == ["Hm", ("S", None)]
    assert said(answered(*block(0, "text", text(0, "!"), text="Hi"))) == "Hi!"


def test_a_thought_whose_block_nobody_began_is_one() -> None:
    assert thoughts(answered(thinking(0, "Hm"))) == ["Hm", (None, None)]


def test_a_thought_without_text_is_one_if_it_is_signed() -> None:
    assert thoughts(answered(*block(0, "thinking", signature(0, "S")))) == [("S", None)]
    assert thoughts(answered(*block(0, "thinking", thinking="", signature=""))) == []


def test_thoughts_of_any_kind_follow_each_other_each_with_what_is_its_own() -> None:
    samples = answered(
        *block(0, "thinking", thinking(0, "A"), signature(0, "S1")),
        *block(1, "redacted_thinking", data="R1"),
        *block(2, "thinking", thinking(2, "B"), signature(2, "S2")),
        *block(3, "text", text(3, "Hi")),
    )
    assert thoughts(samples) == ["A", ("S1", None), (None, "R1"), "B", ("S2", None)]


def test_a_thought_whose_end_is_missing_keeps_its_signature() -> None:
    samples = answered(start(0, "thinking"), thinking(0, "A"), signature(0, "S"), *block(1, "text", text(1, "Hi")))
    assert thoughts(samples) == ["A", ("S", None)]


def test_a_thought_that_something_interrupts_is_not_signed_for() -> None:
    chunks = [start(0, "thinking"), thinking(0, "A"), text(1, "Hi"), thinking(0, "B"), signature(0, "S"), stop(0)]
    assert thoughts(answered(*chunks)) == ["A", (None, None), "B", (None, None)]


def test_thinking_in_tags_is_parted_from_the_text() -> None:
    chunks = block(0, "text", text(0, "<thi"), text(0, "nk>Hm</thi"), text(0, "nk>\n\nHi"))
    assert thoughts(answered(*chunks)) == ["Hm", (None, None)]
    assert said(answered(*chunks)) == "Hi"
    assert said(answered(*chunks, think_tags=False)) == "<think>Hm</think>\n\nHi"


def test_what_might_have_become_a_tag_is_said_before_a_call() -> None:
    samples = answered(start(0, "text"), text(0, "a <"), call(1), stop(1))
    assert said(samples) == "a <"
    assert isinstance(samples[-1], s.ToolCallCommitted)


# --- what only the provider understands ---------------------------------------------------------------------------


def kept(samples: list[s.Sample]) -> list[JsonObject]:
    return [one.opaque for one in samples if isinstance(one, s.ReasoningDone) and one.opaque]


def test_a_server_tool_is_kept_with_the_input_of_its_deltas() -> None:
    use = block(0, "server_tool_use", args(0, '{"q"'), args(0, ":1}"), id="s1", name="web_search", input={})
    result = block(1, "web_search_tool_result", tool_use_id="s1", content=[])
    samples = answered(*use, *result)
    assert kept(samples) == [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": 1}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    ]
    assert not [one for one in samples if isinstance(one, (s.ToolCallDelta, s.ToolCallCommitted))]


def test_a_server_tools_input_that_is_no_json_is_wrapped() -> None:
    use = block(0, "server_tool_use", args(0, '{"q": x}'), id="s1", name="web_search", input={})
    assert kept(answered(*use))[0]["input"] == {"INVALID_JSON": '{"q": x}'}


def test_a_server_tool_that_was_cut_is_not_kept() -> None:
    chunks = [*block(0, "text", text(0, "Hi")), start(1, "server_tool_use", id="s1", input={}), args(1, '{"q')]
    assert kept(answered(*chunks, reason="max_tokens")) == []
    assert kept(answered(*chunks)) == []


def test_an_unknown_block_is_kept_unless_half_of_it_was_not_understood() -> None:
    assert kept(answered(*block(0, "hologram", x=[1, None]))) == [{"type": "hologram", "x": [1, None]}]
    assert kept(answered(*block(0, "hologram", delta(0, "hologram_delta", y=1), x=[1]))) == []
    samples = answered(*block(0, "hologram", text(0, "not an answer"), x=[1]))
    assert (kept(samples), said(samples)) == ([], "")


def test_a_compaction_is_kept_with_what_its_delta_says() -> None:
    chunks = block(0, "compaction", delta(0, "compaction_delta", content="Sum", encrypted_content="E"), content=None)
    assert kept(answered(*chunks)) == [{"type": "compaction", "content": "Sum", "encrypted_content": "E"}]


def test_citations_are_kept_behind_the_text_that_they_belong_to() -> None:
    cited = block(1, "text", delta(1, "citations_delta", citation={"x": 1}), text(1, "b"), text="", citations=[])
    samples = answered(*block(0, "text", text(0, "a")), *cited, *block(2, "text", text(2, "c")))
    assert samples == [
        s.TextDelta("a"),
        s.TextDelta("b"),
        s.ReasoningDone(opaque={"type": "text", "text": "b", "citations": [{"x": 1}]}),
        s.TextDelta("c"),
        s.AssistantMessageDone(),
    ]
