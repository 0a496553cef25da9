"""The Responses decoder: texts told several times, items of any order and index, and every kind of end."""

from __future__ import annotations

import pytest

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.dialects import DONE
from runtime.errors import ProtocolError, ProviderError
from tests.pure.responses_events import (
    added,
    args,
    call,
    called,
    completed,
    done,
    ev,
    heard,
    incomplete,
    message,
    reasoning,
    said,
    text,
)

# --- one text, told several times ---------------------------------------------------------------------------------


def test_a_stream_ends_with_its_commit_and_the_end() -> None:
    assert heard(text(0, "Hi"), completed()) == [
        s.TextDelta("Hi"),
        s.AssistantMessageDone(),
        s.Completed("stop", None, "r1", "m-1"),
    ]


@pytest.mark.parametrize(
    ("deltas", "whole", "words"),
    [
        (["Oslo", " is"], "Oslo is it.", "Oslo is it."),
        ([], "Oslo is it.", "Oslo is it."),
        (["Oslo is it.", " Yes."], "Oslo is it.", "Oslo is it. Yes."),
        (["Oslo"], "", "Oslo"),
        (["Oslo is teh"], "Oslo is the capital.", "Oslo is teh"),
        (["a\ud83d"], "a\U0001f600!", "a\U0001f600!"),
        (["a\ud83d", "\ude00"], "a\U0001f600", "a\U0001f600"),
        (["a\ud83d"], "a", "a\ufffd"),
    ],
)
def test_only_what_is_missing_follows_and_only_once(deltas: list[str], whole: str, words: str) -> None:
    tellings = [
        ev("output_text.done", output_index=0, content_index=0, text=whole),
        ev("content_part.done", output_index=0, content_index=0, part={"type": "output_text", "text": whole}),
        done(0, **message(whole)),
    ]
    spoken = [text(0, delta) for delta in deltas]
    for telling in tellings:
        assert said(added(0, type="message"), *spoken, telling, completed()) == words
    assert said(added(0, type="message"), *spoken, *tellings, *tellings, completed(message(whole))) == words
    assert said(*spoken, completed(message(whole))) == words


def test_parts_of_a_message_are_told_in_their_order() -> None:
    parts = [{"type": "output_text", "text": "One. "}, {"type": "refusal", "refusal": "No."}]
    samples = heard(text(0, "One"), done(0, type="message", content=parts), completed())
    assert samples[:3] == [s.TextDelta("One"), s.TextDelta(". "), s.RefusalDelta("No.")]


def test_messages_written_at_the_same_time_are_told_one_after_the_other() -> None:
    chunks = [
        added(0, type="message", phase="commentary"),
        added(1, type="message", phase="final_answer"),
        text(0, "A"),
        text(1, "x"),
        text(0, "B"),
        text(1, "y"),
        done(1, **message("xyz")),
        done(0, **message("ABC")),
        completed(message("ABC"), message("xyz")),
    ]
    samples = heard(*chunks)
    assert said(*chunks) == "ABCxyz"
    phases = [one.provider_phase for one in samples if isinstance(one, s.AssistantMessageDone)]
    assert phases == ["commentary", "final_answer"]


def test_a_message_that_is_never_done_holds_up_the_next_one_only_until_the_end() -> None:
    assert said(added(0, type="message"), text(0, "A"), added(1, type="message"), text(1, "b"), completed()) == "Ab"


# --- which item is meant ------------------------------------------------------------------------------------------


def test_ids_that_change_under_way_do_not_matter() -> None:
    chunks = [text(0, word, item_id=f"q{at}") for at, word in enumerate(["a", "b", "c"])]
    assert said(added(0, type="message", id="q"), *chunks, done(0, **message("abc", id="z")), completed()) == "abc"


def test_without_indexes_ids_tell_items_apart() -> None:
    samples = heard(
        added(None, type="function_call", id="f1", name="a", call_id="c1"),
        added(None, type="function_call", id="f2", name="b", call_id="c2"),
        args(None, '{"x":', item_id="f1"),
        args(None, '{"y":', item_id="f2"),
        args(None, "1}", item_id="f1"),
        args(None, "2}", item_id="f2"),
        done(None, **call('{"y":2}', "b", "c2", id="f2")),
        done(None, **call('{"x":1}', "a", "c1", id="f1")),
        completed(),
    )
    calls = [one.arguments_json for one in samples if isinstance(one, s.ToolCallCommitted)]
    assert calls == ['{"x":1}', '{"y":2}']


def test_without_indexes_and_ids_the_last_item_goes_on() -> None:
    assert said(text(None, "a"), text(None, "b"), done(None, **message("abc")), completed()) == "abc"


def test_a_server_that_gives_every_item_the_same_index_still_makes_several() -> None:
    assert called(
        added(0, type="function_call", name="a", call_id="c1"),
        args(0, "{}"),
        done(0, **call("{}", "a", "c1")),
        added(0, type="function_call", name="b", call_id="c2"),
        args(0, '{"x":1}'),
        done(0, **call('{"x":1}', "b", "c2")),
        completed(call("{}", "a", "c1"), call('{"x":1}', "b", "c2")),
    ) == [("a", "{}", "c1"), ("b", '{"x":1}', "c2")]


def test_the_list_at_the_end_may_leave_items_out() -> None:
    chunks = [done(0, **reasoning("Hm")), done(1, **message("Hi")), done(2, **call("{}"))]
    samples = heard(*chunks, completed(message("Hi"), call("{}")))
    assert samples == heard(*chunks, completed())


def test_what_only_the_list_at_the_end_has_is_said_then() -> None:
    samples = heard(completed(reasoning("Hm", encrypted_content="E", id="r"), message("Hi"), call('{"a":1}')))
    assert [type(one) for one in samples] == [
        s.ReasoningDelta,
        s.ReasoningDone,
        s.TextDelta,
        s.ToolCallDelta,
        s.AssistantMessageDone,
        s.ToolCallCommitted,
        s.Completed,
    ]


def test_items_may_be_done_in_any_order() -> None:
    chunks = [
        added(0, type="message"),
        added(1, type="function_call", name="t", call_id="c1"),
        args(1, "{"),
        text(0, "Hi"),
        args(1, "}"),
        done(1, **call("{}")),
        text(0, " there"),
        done(0, **message("Hi there")),
        completed(),
    ]
    assert said(*chunks) == "Hi there"
    assert called(*chunks) == [("t", "{}", "c1")]


# --- the end ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [None, DONE, ev("output_item.done", output_index=1, item=call("{}"))])
def test_without_the_responses_own_end_nothing_is_committed(last: JsonObject | None) -> None:
    with pytest.raises(ProtocolError) as caught:
        heard(text(0, "Hi"), *([last] if last else []))
    assert (caught.value.code, caught.value.retryable) == ("stream_cut", True)


def test_nothing_counts_behind_the_end() -> None:
    chunks = [text(0, "Hi"), completed()]
    assert heard(*chunks, text(0, "!"), DONE, ev("failed"), {"error": "late"}) == heard(*chunks)


@pytest.mark.parametrize("reason", ["max_output_tokens", None])
def test_a_length_limit_commits_no_call_but_shows_that_there_was_one(reason: str | None) -> None:
    samples = heard(text(0, "x"), args(1, "{"), incomplete(reason))
    assert [type(one) for one in samples] == [s.TextDelta, s.ToolCallDelta, s.AssistantMessageDone, s.Completed]
    assert samples[-1] == s.Completed("length")


def test_a_content_filter_commits_nothing() -> None:
    samples = heard(text(0, "x"), done(1, **call("{}")), incomplete("content_filter"))
    assert not [one for one in samples if isinstance(one, (s.AssistantMessageDone, s.ToolCallCommitted))]


def test_an_unknown_reason_is_told_as_it_is_and_commits_no_call() -> None:
    samples = heard(done(0, **call("{}")), incomplete("moon_phase"))
    assert samples[-1] == s.Completed("moon_phase")
    assert not [one for one in samples if isinstance(one, s.ToolCallCommitted)]


def test_a_response_that_is_called_completed_and_says_incomplete_is_incomplete() -> None:
    details = {"incomplete_details": {"reason": "max_output_tokens"}}
    assert heard(text(0, "x"), completed(status="incomplete", **details))[-1] == s.Completed(
        "length", None, "r1", "m-1"
    )


def test_a_call_that_the_provider_calls_incomplete_is_not_committed() -> None:
    assert called(done(0, **call("{}", status="incomplete")), completed(call("{}", status="completed"))) == []


@pytest.mark.parametrize(
    ("chunk", "code", "retryable"),
    [
        ({"type": "error", "code": "server_error", "message": "m", "sequence_number": 1}, "provider_unavailable", True),
        ({"type": "error", "error": {"code": "rate_limit_exceeded"}}, "rate_limited", True),
        ({"error": {"type": "error", "code": None, "message": "m"}}, "provider_error", False),
        (ev("failed", response={"error": {"code": "server_error", "message": "m"}}), "provider_unavailable", True),
        (ev("failed", response={"error": {"code": "invalid_prompt", "message": "m"}}), "provider_error", False),
        (ev("failed", response={"error": {"code": "context_length_exceeded"}}), "context_length_exceeded", False),
        (ev("failed", response={"error": None}), "provider_error", True),
        (ev("failed"), "provider_error", True),
        (ev("cancelled"), "provider_error", False),
        (completed(status="failed"), "provider_error", True),
        ([], "provider_protocol_error", False),
    ],
)
def test_a_failure_in_the_stream_is_classified(chunk: JsonObject, code: str, retryable: bool) -> None:
    with pytest.raises(ProviderError) as caught:
        heard(text(0, "x"), chunk)
    assert (caught.value.code, caught.value.retryable) == (code, retryable)


def test_usage_is_counted_in_totals_and_what_was_not_said_is_absent() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 130,
    }
    end = heard(text(0, "x"), completed(usage=usage))[-1]
    assert isinstance(end, s.Completed)
    assert end.usage == {
        "input_tokens": 100,
        "output_tokens": 30,
        "total_tokens": 130,
        "reasoning_tokens": 20,
        "cached_input_tokens": 60,
        "cache_write_input_tokens": 10,
    }
    assert isinstance(bare := heard(text(0, "x"), completed(usage={"input_tokens": 3}))[-1], s.Completed)
    assert bare.usage == {"input_tokens": 3}
