"""Whatever facts come in whatever order, what the projection says of them is legal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_bridge.projection import Echo, Projector
from runtime import events as e
from tests.pure.agui_rules import Illegal, Rules

JsonObject = dict[str, Any]
INVALID = sorted((Path(__file__).parents[1] / "conformance" / "streams" / "invalid").glob("*.jsonl"))

STARTED = e.RunStarted(0, "r1", "assistant", "", [])
INTERRUPT: JsonObject = {"interrupt_id": "i1", "reason": "tool_call", "tool_call_id": "c1", "run_id": "run_1"}
ERROR: JsonObject = {"code": "x", "message": "It broke.", "retryable": False}
message = st.sampled_from(("m1", "m2"))
part = st.sampled_from(("p0", "p1"))
call = st.sampled_from(("c1", "c2"))
child = st.sampled_from(("k1", "k2"))
round_ = st.sampled_from((1, 2))
delta = st.sampled_from(("", "a"))
index = st.just(0)
name = st.just("lookup")

ANYTHING: st.SearchStrategy[e.Event | None] = st.one_of(
    st.just(STARTED),
    st.none(),
    st.builds(e.RoundStarted, round_, st.just("x"), st.just("y"), st.just({})),
    st.builds(e.RoundCompleted, round_, st.just("final_response"), st.just("stop"), st.just([]), st.just([])),
    st.builds(e.MessageStarted, message, st.just("assistant")),
    st.builds(e.MessageDelta, message, part, index, delta),
    st.builds(e.MessageCompleted, message, st.sampled_from(("assistant", "user")), st.just([]), st.just("")),
    st.builds(e.ReasoningStarted, message, part, index),
    st.builds(e.ReasoningDelta, message, part, index, delta),
    st.builds(e.ReasoningCompleted, message, part, index, st.just("y"), st.sampled_from((None, "sig"))),
    st.builds(e.ToolCallStarted, message, part, index, call, name),
    st.builds(e.ToolCallDelta, call, delta),
    st.builds(e.ToolCallCommitted, call, name, st.just("{}"), st.just("server")),
    st.builds(e.ToolExecutionStarted, call, name, st.just("")),
    st.builds(e.ToolCallProgress, call, name, st.just(1), st.sampled_from((None, "half"))),
    st.builds(
        e.ToolCallCompleted, call, name, st.just("42"), st.just(""), st.booleans(), st.sampled_from([*e.OUTPUT_KINDS])
    ),
    st.builds(e.StateSnapshot, st.just({}), st.sampled_from(("client", "agent"))),
    st.builds(e.StateDelta, st.just([{"op": "add", "path": "/a", "value": 1}])),
    st.builds(e.Custom, st.just("agui-bridge.hook"), st.sampled_from((None, {"hook": "mine"}))),
    st.builds(e.RunCancelling, st.just("client")),
    st.builds(e.InterruptRaised, st.just("i1"), st.just("tool_call"), call, st.just(0), st.just("d"), name),
    st.builds(e.InterruptAnswered, st.just("i1"), st.sampled_from(("resolved", "cancelled"))),
    st.builds(
        e.ChildStarted, child, st.just("thr"), name, name, call, st.just(1), st.just("d"), st.none(), st.none() | child
    ),
    st.builds(e.ChildCompleted, child, st.none()),
    st.builds(e.ChildSuspended, child, st.just(["i1"])),
)
ENDS: st.SearchStrategy[e.Event] = st.one_of(
    st.builds(e.RunCompleted, message, st.sampled_from((None, ["c1"]))),
    st.just(e.RunFailed(ERROR)),
    st.just(e.RunCancelled("client", True)),
    st.just(e.RunInterrupted("executor_lost")),
    st.just(e.RunSuspended([INTERRUPT])),
)


def told(facts: list[e.Event | None]) -> list[JsonObject]:
    projector = Projector(Echo("t1", "r1"))
    return [event for fact in facts for event in projector.feed(fact)]


@given(st.lists(ANYTHING, max_size=30), ENDS, st.lists(st.one_of(ANYTHING, ENDS), max_size=3))
def test_facts_in_any_order_become_one_legal_run(
    facts: list[e.Event | None], end: e.Event, late: list[e.Event]
) -> None:
    stream = told([STARTED, *facts, end, *late])
    rules = Rules()
    rules.check(stream)
    assert rules.ended
    assert [event["type"] for event in stream].count("RUN_STARTED") == 1


@given(st.lists(st.one_of(ANYTHING, ENDS), max_size=30))
def test_facts_in_any_order_become_a_legal_beginning(facts: list[e.Event | None]) -> None:
    Rules().check(told(facts))


# --- the orders that must not be -----------------------------------------------------------------------------------


def _text(event: JsonObject, made: str) -> e.Event:
    return e.MessageDelta(event.get("messageId", "m1"), made, 0, event.get("delta") or "")


def _thought(event: JsonObject, made: str) -> e.Event:
    return e.ReasoningDelta(event.get("messageId", "m1"), "p0", 0, event.get("delta") or "")


def _thought_over(event: JsonObject, made: str) -> e.Event:
    return e.ReasoningCompleted(event.get("messageId", "m1"), "p0", 0, "y")


def _call(event: JsonObject, made: str) -> e.Event:
    return e.ToolCallStarted("m1", made, 0, event.get("toolCallId", "c1"), "lookup")


def _step_over(event: JsonObject, made: str) -> e.Event:
    return e.RoundCompleted(1, "final_response", "stop", [], [])


FACTS: dict[str, Callable[[JsonObject, str], e.Event]] = {
    "RUN_STARTED": lambda event, made: STARTED,
    "RUN_FINISHED": lambda event, made: e.RunCompleted("m1"),
    "RUN_ERROR": lambda event, made: e.RunFailed(ERROR),
    "STEP_STARTED": lambda event, made: e.RoundStarted(1, "x", "y", {}),
    "STEP_FINISHED": _step_over,
    "TEXT_MESSAGE_START": _text,
    "TEXT_MESSAGE_CONTENT": _text,
    "TEXT_MESSAGE_CHUNK": _text,
    "TEXT_MESSAGE_END": _step_over,
    "TOOL_CALL_START": _call,
    "TOOL_CALL_CHUNK": _call,
    "TOOL_CALL_ARGS": lambda event, made: e.ToolCallDelta(event["toolCallId"], event["delta"]),
    "TOOL_CALL_END": lambda event, made: e.ToolCallCommitted(event["toolCallId"], "lookup", "{}", "server"),
    "REASONING_START": _thought,
    "REASONING_MESSAGE_START": _thought,
    "REASONING_MESSAGE_CONTENT": _thought,
    "REASONING_MESSAGE_END": _thought_over,
    "REASONING_END": _thought_over,
}
"""The facts that come closest to each event."""


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_the_facts_nearest_to_a_refused_stream_become_a_legal_one(path: Path) -> None:
    refused = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    facts = [FACTS[event["type"]](event, f"p{n}") for n, event in enumerate(refused) if event["type"] in FACTS]
    stream = told(list(facts))
    Rules().check(stream)
    try:
        Rules().check(refused)
    except Illegal:
        assert [event["type"] for event in stream] != [event["type"] for event in refused]


def test_a_run_that_was_interrupted_shows_what_it_has_cost() -> None:
    usage = [{"provider": "p", "model": "m", "input_tokens": 3}]
    last = told([STARTED, e.RunInterrupted("shutdown", usage)])[-1]
    assert (last["type"], last["code"]) == ("RUN_ERROR", "run_interrupted")
    assert last["usage"] == [{"provider": "p", "model": "m", "inputTokens": 3}]


# --- outputs of calls of earlier runs -----------------------------------------------------------------------------

CLOSED = e.output_of("c0", "lookup", "Not run.", "cancelled")


def test_what_came_with_the_request_is_for_the_prelude_to_tell():
    told_of = told([STARTED, CLOSED, e.MessageStarted("m1", "assistant"), e.RunCompleted("m1")])
    assert [event["type"] for event in told_of] == ["RUN_STARTED", "RUN_FINISHED"]


@pytest.mark.parametrize("begun", [e.MessageStarted("m1", "assistant"), e.RunCancelling("client")])
def test_what_a_run_makes_of_an_older_call_is_told(begun: e.Event):
    told_of = told([STARTED, begun, CLOSED, e.RunCancelled("client", True)])
    assert [event["type"] for event in told_of] == ["RUN_STARTED", "TOOL_CALL_RESULT", "RUN_FINISHED"]


def test_a_run_names_as_pending_the_calls_that_it_has_made_and_no_older_ones():
    facts = [STARTED, e.ToolCallStarted("m1", "p0", 0, "c1", "pick"), e.ToolCallCommitted("c1", "pick", "{}", "client")]
    last = told([*facts, e.RunCompleted("m1", ["c0", "c1"])])[-1]
    assert last["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    assert told([STARTED, e.RunCompleted("m1", ["c0"])])[-1]["outcome"] == {"type": "success"}
