"""The sampling loop's own rules, one by one: what commits a round, what refuses it, and what is to be done next."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime import events as e
from runtime import samples as s
from runtime.budget import Budget
from runtime.errors import ProviderError
from runtime.sampling import Sampling
from runtime.steps import CallModel, Fail, RunTools, Stop, Succeed
from runtime.thread import Thread
from runtime.usage import add_usage

TARGETS = {"get_time": "server", "confirm": "client"}


def loop(*, taken: set[str] | None = None, max_rounds: int = 50) -> Sampling:
    """A loop whose first round has begun."""
    numbers = count(1)
    sampling = Sampling(
        message_id="m1",
        provider="p",
        target=lambda name: TARGETS.get(name, "nobody"),
        taken=taken if taken is not None else set(),
        mint=lambda prefix: f"{prefix}_{next(numbers)}",
        budget=Budget(rounds=max_rounds),
        elapsed=lambda: 0.0,
    )
    sampling.start()
    sampling.round_started("m", {})
    return sampling


def call(name: str = "get_time", arguments: str = "{}", id_: str = "c1", key: str = "0") -> list[s.Sample]:
    return [s.ToolCallDelta(key, name, arguments, id_), s.ToolCallCommitted(key, name, arguments, id_)]


def text(words: str) -> list[s.Sample]:
    return [s.TextDelta(words), s.AssistantMessageDone()]


def kinds(events: list[e.Event]) -> list[str]:
    return [event.event_type for event in events]


def completed(events: list[e.Event]) -> e.RoundCompleted:
    return next(event for event in events if isinstance(event, e.RoundCompleted))


def failure(*samples: s.Sample) -> tuple[str, bool]:
    """The code with which a round of these samples fails, and whether it may be retried; nothing is committed."""
    sampling = loop()
    events = sampling.feed(samples)
    assert not {"round.completed", "tool.call.committed"} & set(kinds(events))
    step = sampling.next()
    assert isinstance(step, Fail)
    return step.error.code, step.error.retryable


# --- what is to be done -------------------------------------------------------------------------------------------


def test_the_loop_begins_by_calling_the_model_and_ends_with_a_round_without_calls():
    sampling = loop()
    assert sampling.next() == CallModel(2)
    sampling.feed([*text("Hi"), s.Completed("stop")])
    assert sampling.next() == Succeed([])
    assert sampling.next() == Succeed([])


def test_committed_calls_run_and_then_the_model_is_called_again():
    sampling = loop()
    sampling.feed([*call(), *call(id_="c2", key="1"), s.Completed("tool_calls")])
    step = sampling.next()
    assert isinstance(step, RunTools)
    assert [one.tool_call_id for one in step.calls] == ["c1", "c2"]
    sampling.tool_output("c2", "b", "result")
    step = sampling.next()
    assert isinstance(step, RunTools)
    assert [one.tool_call_id for one in step.calls] == ["c1"]
    sampling.tool_output("c1", "a", "error")
    assert sampling.next() == CallModel(2)


def test_calls_are_not_run_before_the_round_is_complete():
    sampling = loop()
    sampling.feed([*text("Let me see."), *call()])
    assert isinstance(sampling.next(), CallModel)


def test_frontend_calls_end_the_run_once_our_own_have_their_outputs():
    sampling = loop()
    events = sampling.feed([*call("confirm"), *call(id_="c2", key="1"), s.Completed("tool_calls")])
    assert [one.target for one in events if isinstance(one, e.ToolCallCommitted)] == ["client", "server"]
    assert isinstance(sampling.next(), RunTools)
    sampling.tool_output("c2", "noon", "result")
    assert sampling.next() == Succeed(["c1"])


def test_a_frontend_call_that_is_malformed_is_not_the_clients():
    sampling = loop()
    sampling.feed([*call("confirm", "[1]"), s.Completed("tool_calls")])
    step = sampling.next()
    assert isinstance(step, RunTools)
    assert step.calls[0].malformed


def test_the_last_allowed_round_may_end_the_run_but_not_go_on():
    sampling = loop(max_rounds=1)
    sampling.feed([*call(), s.Completed("tool_calls")])
    sampling.tool_output("c1", "noon", "result")
    assert sampling.next() == Stop("max_rounds")
    done = loop(max_rounds=1)
    done.feed([*text("Hi"), s.Completed("stop")])
    assert done.next() == Succeed([])


def test_every_kind_of_output_but_a_result_is_an_error_to_the_model():
    for kind in e.OUTPUT_KINDS:
        sampling = loop()
        sampling.feed([*call(), s.Completed("tool_calls")])
        (event,) = sampling.tool_output("c1", "x", kind)
        assert isinstance(event, e.ToolCallCompleted)
        assert event.is_error == (kind not in ("result", "client", "answered"))


# --- why a round does not commit ----------------------------------------------------------------------------------

OPEN_TEXT = s.TextDelta("a")
OPEN_CALL = s.ToolCallDelta("9", "get_time", "{", "c9")


@pytest.mark.parametrize(
    ("said", "finish", "code"),
    [
        ([*text("a"), *call()], "content_filter", "content_filter"),
        ([OPEN_TEXT, OPEN_CALL], "content_filter", "content_filter"),
        (call(), "length", "output_truncated"),
        ([OPEN_TEXT, OPEN_CALL], "length", "output_truncated"),
        ([s.ToolCallDelta("0", "", "")], "length", "output_truncated"),
        ([], "refusal", "refusal"),
        (text("I was about to"), "refusal", "refusal"),
        ([OPEN_TEXT, OPEN_CALL], "refusal", "refusal"),
        ([OPEN_TEXT, OPEN_CALL], "stop", "provider_protocol_error"),
        ([OPEN_TEXT], "length", "provider_protocol_error"),
        ([s.RefusalDelta("No")], "refusal", "provider_protocol_error"),
        ([*text("a"), OPEN_TEXT], "stop", "provider_protocol_error"),
        ([*text("a"), *call(), OPEN_CALL], "tool_calls", "provider_protocol_error"),
        ([], "stop", "empty_response"),
        ([s.AssistantMessageDone()], "stop", "empty_response"),
        ([], "length", "empty_response"),
        ([], "some_new_reason", "empty_response"),
    ],
)
def test_the_first_reason_that_counts_is_told(said: list[s.Sample], finish: str, code: str):
    assert failure(*said, s.Completed(finish)) == (code, code == "empty_response")


def test_a_call_that_stays_open_is_told_as_such():
    sampling = loop()
    sampling.feed([OPEN_CALL, s.Completed("stop")])
    step = sampling.next()
    assert isinstance(step, Fail)
    assert step.error.message == "The provider streamed tool arguments but never completed the call."


@pytest.mark.parametrize("finish", ["stop", "length", "tool_calls", "end_turn_of_the_future"])
def test_text_without_calls_is_final_whatever_the_finish_reason(finish: str):
    sampling = loop()
    done = completed(sampling.feed([*text("Hi"), s.Completed(finish)]))
    assert (done.runtime_role, done.finish) == ("final_response", finish)
    assert sampling.next() == Succeed([])


@pytest.mark.parametrize("finish", ["refusal", "stop"])
def test_a_refusal_in_words_is_an_answer(finish: str):
    sampling = loop()
    events = sampling.feed(
        [s.RefusalDelta("I "), s.RefusalDelta("won't"), s.AssistantMessageDone(), s.Completed(finish)]
    )
    assert completed(events).parts == [{"part_id": "p0", "kind": "refusal"}]
    assert sampling.next() == Succeed([])


def test_a_refusal_after_text_is_a_part_of_its_own():
    events = loop().feed([s.TextDelta("Well,"), s.RefusalDelta("no"), s.AssistantMessageDone(), s.Completed("refusal")])
    assert [part["kind"] for part in completed(events).parts] == ["text", "refusal"]


def test_reasoning_alone_is_an_answer():
    events = loop().feed([s.ReasoningDelta("Hm."), s.ReasoningDone("sig"), s.Completed("stop")])
    assert kinds(events) == ["reasoning.started", "reasoning.delta", "reasoning.completed", "round.completed"]
    assert events[2] == e.ReasoningCompleted("m1", "p0", 0, "p", "sig")


def test_reasoning_that_was_never_shown_is_kept_for_its_provider():
    events = loop().feed([s.ReasoningDone(encrypted_value="xyz"), *text("Hi"), s.Completed("stop")])
    assert kinds(events)[:2] == ["reasoning.started", "reasoning.completed"]
    assert events[1] == e.ReasoningCompleted("m1", "p0", 0, "p", None, "xyz")


def test_reasoning_that_text_ends_is_complete():
    events = loop().feed([s.ReasoningDelta("Hm."), *text("Hi"), s.Completed("stop")])
    assert kinds(events) == [
        "reasoning.started",
        "reasoning.delta",
        "reasoning.completed",
        "message.delta",
        "round.completed",
    ]


def test_a_providers_own_word_on_finality_is_kept_and_decides_nothing():
    sampling = loop()
    events = sampling.feed([s.TextDelta("Done!"), s.AssistantMessageDone("final_answer"), *call(), s.Completed("stop")])
    assert (completed(events).runtime_role, completed(events).provider_phase) == ("working_message", "final_answer")
    assert isinstance(sampling.next(), RunTools)
    other = loop()
    events = other.feed([s.TextDelta("Hm"), s.AssistantMessageDone("commentary"), s.Completed("tool_calls")])
    assert (completed(events).runtime_role, completed(events).provider_phase) == ("final_response", "commentary")


def test_what_a_provider_says_after_the_end_of_its_stream_is_an_error():
    sampling = loop()
    sampling.feed([*text("Hi"), s.Completed("stop")])
    with pytest.raises(ProviderError):
        sampling.feed([s.TextDelta("and")])


# --- what was shown, and what it cost -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sample", [s.TextDelta("a"), s.ReasoningDelta("a"), s.RefusalDelta("a"), s.ReasoningDone(), OPEN_CALL], ids=type
)
def test_a_round_that_has_shown_something_says_so(sample: s.Sample):
    sampling = loop()
    assert not sampling.has_shown_something
    sampling.feed([s.AssistantMessageDone()])
    assert not sampling.has_shown_something
    sampling.feed([sample])
    assert sampling.has_shown_something


@pytest.mark.parametrize("said", [text("a"), call(), [s.ReasoningDone()]], ids=["text", "call", "reasoning"])
def test_a_round_that_is_committed_counts_as_shown_until_the_next_one_begins(said: list[s.Sample]):
    sampling = loop()
    sampling.feed([*said, s.Completed("stop")])
    assert sampling.has_shown_something
    sampling.round_started("m", {})
    assert not sampling.has_shown_something


def test_a_round_that_failed_after_it_had_shown_something_has_shown_it():
    sampling = loop()
    sampling.feed([s.TextDelta("a"), s.Completed("content_filter")])
    assert sampling.has_shown_something


def test_another_attempt_begins_as_if_there_had_been_none():
    sampling = loop()
    sampling.feed([s.AssistantMessageDone("final_answer"), s.Completed("stop")])
    assert isinstance(sampling.next(), Fail)
    assert not sampling.has_shown_something
    sampling.attempt_started()
    assert completed(sampling.feed([*text("Noon"), s.Completed("stop")])).provider_phase is None
    assert sampling.next() == Succeed([])


def test_what_an_attempt_has_cost_is_counted_once():
    sampling = loop()
    sampling.spent(None, "m")
    sampling.spent({"input_tokens": 5}, "m")
    sampling.attempt_started()
    sampling.feed([*text("Noon"), s.Completed("stop", {"input_tokens": 5, "output_tokens": 1}, model="m")])
    sampling.spent({"input_tokens": 5, "output_tokens": 1}, "m")
    assert sampling.usage == [{"provider": "p", "model": "m", "input_tokens": 10, "output_tokens": 1}]


def test_a_run_can_be_ended_from_outside_whatever_was_to_be_done():
    sampling = loop()
    sampling.feed([*call(), s.Completed("tool_calls")])
    assert isinstance(sampling.next(), RunTools)
    assert not sampling.is_over
    sampling.end(Stop("enough"))
    assert (sampling.next(), sampling.is_over) == (Stop("enough"), True)


@pytest.mark.requirement("R-197", "R-195")
def test_usage_is_added_up_by_model_and_what_nobody_said_stays_unknown():
    sampling = loop()
    first = {"input_tokens": 10, "output_tokens": 2, "cached_input_tokens": 0}
    events = sampling.feed([*call(), s.Completed("tool_calls", first, "resp_1", "model-a")], 1, "asked")
    assert completed(events).usage == {"provider": "p", "model": "model-a", **first}
    assert completed(events).provider_response_id == "resp_1"
    sampling.tool_output("c1", "noon", "result")
    sampling.round_started("m", {})
    sampling.feed([*call(id_="c2"), s.Completed("tool_calls", {"input_tokens": 20}, None, "model-a")], 1, "asked")
    sampling.tool_output("c2", "noon", "result")
    sampling.round_started("m", {})
    sampling.feed([*call(id_="c3"), s.Completed("tool_calls", {"total_tokens": 5})], 1, "asked")
    sampling.tool_output("c3", "noon", "result")
    sampling.round_started("m", {})
    events = sampling.feed([*text("Noon"), s.Completed("stop")], 1, "asked")
    assert completed(events).usage is None
    assert sampling.usage == [
        {"provider": "p", "model": "model-a", "input_tokens": 30, "output_tokens": 2, "cached_input_tokens": 0},
        {"provider": "p", "model": "asked", "total_tokens": 5},
    ]


def test_a_round_that_fails_at_its_end_has_cost_something_all_the_same():
    sampling = loop()
    sampling.feed([s.TextDelta("a"), s.Completed("content_filter", {"output_tokens": 1})], 1, "asked")
    assert sampling.usage == [{"provider": "p", "model": "asked", "output_tokens": 1}]


def test_adding_usage_leaves_what_was_added_alone():
    totals: list[Any] = []
    usage = {"provider": "p", "model": "m", "input_tokens": 1}
    add_usage(totals, usage)
    add_usage(totals, usage)
    assert totals == [{"provider": "p", "model": "m", "input_tokens": 2}]
    assert usage["input_tokens"] == 1


# --- whatever a provider says -------------------------------------------------------------------------------------

WORDS = st.sampled_from(["", "a", "{", "{}", "null", "[]", "\ud800"])
NAMES = st.sampled_from(["", "get_time", "confirm", "unknown"])
KEYS = st.sampled_from(["0", "1"])
IDS = st.sampled_from(["", "c1", "c2"])
SAMPLES = st.one_of(
    st.builds(s.TextDelta, WORDS.filter(bool)),
    st.builds(s.RefusalDelta, WORDS.filter(bool)),
    st.builds(s.ReasoningDelta, WORDS.filter(bool)),
    st.builds(s.ReasoningDone, st.none() | WORDS),
    st.builds(s.AssistantMessageDone, st.none() | WORDS),
    st.builds(s.ToolCallDelta, KEYS, NAMES, WORDS, IDS),
    st.builds(s.ToolCallCommitted, KEYS, NAMES, WORDS, IDS),
    st.builds(s.Completed, st.sampled_from(["stop", "tool_calls", "length", "refusal", "content_filter", "new"])),
)
COMMITS = {"tool.call.committed", "round.completed"}


@given(st.lists(SAMPLES, max_size=12), st.data())
def test_nothing_commits_without_the_end_of_the_stream_and_only_providers_are_blamed(
    samples: list[s.Sample], data: st.DataObject
):
    sampling = loop()
    thread = Thread("t")
    facts: list[e.Event] = [
        e.RunStarted(0, "r1", "a", "", []),
        e.MessageStarted("m1", "assistant"),
        e.RoundStarted(1, "m", "p", {}),
    ]
    over = False
    while samples and not over:
        size = data.draw(st.integers(1, len(samples)))
        piece, samples = samples[:size], samples[size:]
        has_end = any(isinstance(sample, s.Completed) for sample in piece)
        try:
            events = sampling.feed(piece)
        except ProviderError as error:
            sampling.round_failed(error)
            break
        assert has_end or not COMMITS & set(kinds(events))
        if "tool.call.committed" in kinds(events):
            assert "round.completed" in kinds(events)
        facts += events
        over = has_end
    for seq, fact in enumerate(facts, 1):
        thread.apply("run_1", 0, seq, fact)
    step = sampling.next()
    committed = [fact for fact in facts if isinstance(fact, e.ToolCallCommitted)]
    if isinstance(step, Fail):
        assert isinstance(step.error, ProviderError)
    if not any(isinstance(fact, e.RoundCompleted) for fact in facts):
        assert thread.items() == []
        assert not isinstance(step, RunTools | Succeed)
    elif isinstance(step, RunTools | Succeed):
        assert len({one.tool_call_id for one in committed}) == len(committed)
        assert isinstance(step, RunTools) == any(one.target != "client" or one.malformed for one in committed)
