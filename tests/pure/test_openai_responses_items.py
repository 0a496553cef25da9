"""The Responses decoder, by kinds of items: calls, thoughts, and what is only kept."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.dialects.openai_responses import OpenAIResponses
from tests.pure.responses_events import (
    added,
    args,
    call,
    called,
    completed,
    done,
    ev,
    heard,
    message,
    reasoning,
    summary,
    text,
)

# --- calls --------------------------------------------------------------------------------------------------------


def test_a_call_is_shown_as_soon_as_it_has_a_name() -> None:
    decoder = OpenAIResponses().decoder([])
    assert decoder.feed(args(0, '{"a"')) == []
    assert decoder.feed(args(0, ":1}", name="t")) == [s.ToolCallDelta("0", "t", '{"a":1}')]
    assert OpenAIResponses().decoder([]).feed(added(0, type="function_call", name="t", call_id="c")) == [
        s.ToolCallDelta("0", "t", "", "c")
    ]


@pytest.mark.parametrize(
    ("deltas", "whole", "arguments"),
    [
        (['{"a"', ":1}"], '{"a":1}', '{"a":1}'),
        (['{"a"'], '{"a":1}', '{"a":1}'),
        ([], '{"a":1}', '{"a":1}'),
        ([], {"a": 1}, '{"a":1}'),
        (['{"a": 1}'], {"a": 1}, '{"a": 1}'),
        (['{"a":1}'], "", '{"a":1}'),
        (['{"a":1}'], None, '{"a":1}'),
        (['{"a":1}'], "{}", '{"a":1}'),
        (['{"a":1}', '{"a":1}'], '{"a":1}', '{"a":1}'),
        (['{"a":1}'], '{"a":2}', '{"a":2}'),
        ([], "", "{}"),
        (["null"], "null", "{}"),
        (['{"a":'], '{"a":', '{"a":'),
    ],
)
def test_arguments_are_used_once_and_the_last_word_counts_if_it_makes_sense(
    deltas: list[str], whole: object, arguments: str
) -> None:
    chunks = [added(0, type="function_call", name="t", call_id="c1"), *(args(0, delta) for delta in deltas)]
    said_again = ev("function_call_arguments.done", output_index=0, arguments=whole)
    assert called(*chunks, said_again, done(0, **call(whole)), completed(call(whole))) == [("t", arguments, "c1")]


def test_arguments_that_stand_in_the_announcement_only_are_used() -> None:
    assert called(added(0, **call('{"a":1}')), completed()) == [("t", '{"a":1}', "c1")]


def test_a_call_that_says_nothing_is_none() -> None:
    assert called(done(0, type="function_call"), text(1, "x"), completed()) == []


def test_what_the_provider_wants_back_with_a_call_is_kept() -> None:
    samples = heard(done(0, **call("{}", namespace="crm", status="completed", id="fc", extra=None)), completed())
    opaque = [one.opaque for one in samples if isinstance(one, s.ToolCallCommitted)]
    assert opaque == [{"type": "function_call", "namespace": "crm"}]


def test_free_text_is_streamed_as_the_json_that_it_is_committed_as() -> None:
    words = 'say "hi"\n\U0001f600 SELECT'
    pieces = ['say "', 'hi"\n\ud83d', "\ude00 SEL"]
    samples = heard(
        added(0, type="custom_tool_call", name="sql", call_id="c"),
        *(ev("custom_tool_call_input.delta", output_index=0, delta=piece) for piece in pieces),
        ev("custom_tool_call_input.done", output_index=0, input=words),
        done(0, type="custom_tool_call", name="sql", call_id="c", input=words),
        completed(),
    )
    shown = "".join(one.arguments for one in samples if isinstance(one, s.ToolCallDelta))
    committed = next(one for one in samples if isinstance(one, s.ToolCallCommitted))
    assert orjson.loads(committed.arguments_json) == {"input": words}
    assert committed.arguments_json == shown + '"}'
    assert committed.opaque == {"type": "custom_tool_call"}


@pytest.mark.parametrize("words", ["", "null"])
def test_free_text_may_be_nothing_or_null(words: str) -> None:
    item: JsonObject = {"type": "custom_tool_call", "name": "sql", "call_id": "c", "input": words}
    assert called(done(0, **item), completed()) == [("sql", orjson.dumps({"input": words}).decode(), "c")]


# --- thoughts -----------------------------------------------------------------------------------------------------


def test_each_part_of_a_summary_is_a_part_and_the_last_one_has_what_goes_back() -> None:
    item = reasoning("One", "Two", id="rs_1", encrypted_content="E", status="completed")
    assert heard(summary(0, "One"), summary(1, "Two"), done(0, **item), text(1, "x"), completed())[:4] == [
        s.ReasoningDelta("One"),
        s.ReasoningDone(),
        s.ReasoningDelta("Two"),
        s.ReasoningDone(None, "E", {"type": "reasoning", "id": "rs_1", "summary": item["summary"]}),
    ]


def test_a_thought_without_words_is_kept_if_there_is_something_to_keep() -> None:
    kept = heard(done(0, **reasoning(id="rs_1", encrypted_content="E")), completed())
    assert kept[0] == s.ReasoningDone(None, "E", {"type": "reasoning", "id": "rs_1", "summary": []})
    assert heard(done(0, **reasoning(id="rs_1")), completed()) == [s.Completed("stop", None, "r1", "m-1")]


def test_the_encrypted_value_of_an_announcement_is_not_trusted() -> None:
    samples = heard(added(0, **reasoning(encrypted_content="half")), summary(0, "Hm"), completed())
    assert samples[:2] == [s.ReasoningDelta("Hm"), s.ReasoningDone()]


def test_a_thought_that_is_complete_only_after_the_answer_began_is_kept_behind_it() -> None:
    samples = heard(summary(0, "Hm"), text(1, "Hi"), done(0, **reasoning("Hm", encrypted_content="E")), completed())
    assert samples[1] == s.ReasoningDone()
    assert [one.encrypted_value for one in samples if isinstance(one, s.ReasoningDone)] == [None, "E"]


def test_a_thought_of_another_item_is_another_part() -> None:
    samples = heard(summary(0, "One"), summary(0, "Two", index=1), text(2, "x"), completed())
    assert [one for one in samples if isinstance(one, s.ReasoningDone)] == [s.ReasoningDone()] * 2


def test_a_thought_in_two_members_is_one_thought() -> None:
    content = [{"type": "reasoning_text", "text": "Hm"}]
    thought = ev("reasoning_text.delta", output_index=0, content_index=0, delta="Hm")
    samples = heard(thought, done(0, **reasoning("Hm", content=content)), text(1, "x"), completed())
    assert [one.text for one in samples if isinstance(one, s.ReasoningDelta)] == ["Hm"]


@pytest.mark.parametrize("name", ["reasoning_text.delta", "output_text.delta"])
def test_what_a_reasoning_item_says_is_never_the_answer(name: str) -> None:
    part = ev("content_part.done", output_index=0, content_index=0, part={"type": "reasoning_text", "text": "Hm."})
    thought = ev(name, output_index=0, content_index=0, delta="Hm")
    samples = heard(added(0, type="reasoning"), thought, part, text(1, "x"), completed())
    assert samples[:4] == [s.ReasoningDelta("Hm"), s.ReasoningDelta("."), s.ReasoningDone(), s.TextDelta("x")]


def test_thinking_in_tags_is_reasoning_unless_told_otherwise() -> None:
    chunks = [text(0, "<thi"), text(0, "nk>Hm</think>Hi"), done(0, **message("<think>Hm</think>Hi!")), completed()]
    assert heard(*chunks)[:4] == [s.ReasoningDelta("Hm"), s.ReasoningDone(), s.TextDelta("Hi"), s.TextDelta("!")]
    plain = [one.text for one in heard(*chunks, think_tags=False) if isinstance(one, s.TextDelta)]
    assert "".join(plain) == "<think>Hm</think>Hi!"


# --- what we only keep --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["web_search_call", "mcp_call", "compaction", "program", "shell_call", "brand_new"])
def test_other_items_are_kept_once_as_they_came(kind: str) -> None:
    item = {"type": kind, "id": "i1", "x": [1, {"y": None}]}
    samples = heard(
        added(0, type=kind, id="i1"),
        ev(f"{kind}.progress", output_index=0, delta="?"),
        args(0, "{}"),
        done(0, **item),
        done(0, **item),
        text(1, "x"),
        completed(item),
    )
    assert samples[:2] == [s.ReasoningDone(opaque=item), s.TextDelta("x")]
    assert not [one for one in samples if isinstance(one, (s.ToolCallDelta, s.ToolCallCommitted))]


def test_a_thought_before_a_hosted_tool_ends_there() -> None:
    samples = heard(summary(0, "Hm"), done(1, type="web_search_call"), text(2, "x"), completed())
    assert samples[1:3] == [s.ReasoningDone(), s.ReasoningDone(opaque={"type": "web_search_call"})]


@pytest.mark.parametrize("tell", [added, done])
def test_an_approval_that_is_asked_for_is_a_call_at_the_providers(tell: Any) -> None:
    samples = heard(text(0, "x"), tell(1, type="mcp_approval_request", id="a1", name="pay"), completed())
    opaque = {"type": "mcp_approval_request", "id": "a1"}
    (call,) = [sample for sample in samples if isinstance(sample, s.ToolCallCommitted)]
    assert call == s.ToolCallCommitted("1", "pay", "{}", "a1", opaque, at_provider=True)
