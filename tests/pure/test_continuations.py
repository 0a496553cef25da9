"""A run that answers interrupts and breaks off is finished before it is an error: else the page would stay locked."""

from __future__ import annotations

import pytest

from agui_bridge.projection import Echo, Projector
from runtime import events as e
from tests.pure.agui_rules import Rules
from tests.serving import JsonObject

BROKEN: list[e.Event] = [
    e.RunFailed({"code": "provider_unavailable", "message": "The provider is away.", "retryable": True}),
    e.RunInterrupted("shutdown"),
]


def stream(ending: e.Event, *, resumes: bool) -> list[JsonObject]:
    projector = Projector(Echo("t", "r", resumes=resumes))
    facts: list[e.Event] = [
        e.RunStarted(0, "r", "a", "", []),
        e.MessageStarted("m", "assistant"),
        e.RoundStarted(1, "m", "p", {"digest": "", "items": 1}),
        e.MessageDelta("m", "p0", 0, "Half "),
        ending,
    ]
    return [event for fact in facts for event in projector.feed(fact)]


@pytest.mark.parametrize("ending", BROKEN)
def test_one_that_answers_interrupts_is_finished_without_an_outcome_and_then_an_error(ending: e.Event):
    events = stream(ending, resumes=True)
    assert [event["type"] for event in events[-4:]] == [
        "TEXT_MESSAGE_END",
        "STEP_FINISHED",
        "RUN_FINISHED",
        "RUN_ERROR",
    ]
    assert events[-2] == {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


@pytest.mark.parametrize("ending", BROKEN)
def test_every_other_is_an_error_alone(ending: e.Event):
    events = stream(ending, resumes=False)
    Rules().check(events)
    assert [event["type"] for event in events].count("RUN_FINISHED") == 0


def test_one_that_does_its_work_is_finished_once():
    events = stream(e.RunCompleted("m"), resumes=True)
    Rules().check(events)
    assert events[-1]["outcome"] == {"type": "success"}
