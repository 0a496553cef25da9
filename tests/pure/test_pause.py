"""How a thread stands whose calls wait for somebody outside, when something else comes than an answer."""

from __future__ import annotations

import pytest

from runtime import events as e
from runtime.entries import Turn
from runtime.pause import abandoned, sleeps, standing
from runtime.thread import Thread


def thread_of(*facts: e.Event) -> Thread:
    """A thread whose one run has called `c1`, and these facts."""
    thread = Thread("thr_1")
    called = e.ToolCallCommitted("c1", "send", "{}", "server")
    begun = e.RunStarted(0, "r1", "assistant", "", []), e.MessageStarted("m1", "assistant")
    for seq, fact in enumerate([*begun, e.RoundStarted(1, "m", "p", {}), called, *facts], 1):
        thread.apply("run_1", 0, seq, fact)
    return thread


def asleep(*facts: e.Event) -> bool:
    thread = thread_of(*facts)
    return sleeps(thread, thread.calls["c1"])


def asks(number: int, interrupt_id: str = "i1", expires_at: int | None = None) -> e.InterruptRaised:
    return e.InterruptRaised(interrupt_id, "confirmation", "c1", number, "d", "send", expires_at=expires_at)


def turns_of(thread: Thread) -> list[Turn]:
    return [entry for entry in thread.entries if isinstance(entry, Turn)]


def test_calls_that_the_user_leaves_behind_are_closed_with_what_they_ask():
    thread = thread_of(asks(0), e.RunSuspended([]))
    answered, output = abandoned(thread, turns_of(thread))
    assert isinstance(answered, e.InterruptAnswered)
    assert answered.by_itself == "forked"
    assert isinstance(output, e.ToolCallCompleted)


EXPIRED = asks(0, expires_at=5), e.RunSuspended([])
LOST = asks(0), e.InterruptAnswered("i1", "resolved", {"approved": True}), e.RunInterrupted("executor_lost")


@pytest.mark.parametrize(("facts", "closes"), [(EXPIRED, ["i1"]), (LOST, [])], ids=["expired", "lost"])
def test_what_was_closed_already_is_not_closed_again(facts: tuple[e.Event, ...], closes: list[str]):
    thread = thread_of(*facts)
    told = standing(thread, now=10).facts
    both = [*told, *abandoned(thread, turns_of(thread), told)]
    assert [fact.interrupt_id for fact in both if isinstance(fact, e.InterruptAnswered)] == closes
    assert [fact.tool_call_id for fact in both if isinstance(fact, e.ToolCallCompleted)] == ["c1"]


def test_a_call_sleeps_until_what_it_asked_last_is_answered():
    first = asks(1), e.RunSuspended([])
    assert asleep(*first)
    answered = *first, e.InterruptAnswered("i1", "resolved", "S")
    assert not asleep(*answered)


def test_whether_a_call_may_run_at_all_is_not_what_it_asks():
    assert not asleep(asks(0), e.RunSuspended([]))


def test_a_call_sleeps_until_one_of_the_questions_of_its_child_is_answered():
    started = e.ChildStarted("run_2", "thr_2", "helper", "helper", "c1", 1, "d")
    facts = started, e.ChildSuspended("run_2", ["i7", "i8"]), e.RunSuspended([])
    assert asleep(*facts)
    answered = *facts, e.InterruptAnswered("i8", "cancelled")
    assert not asleep(*answered)
    gone_on = *answered, e.ChildStarted("run_3", "thr_2", "helper", "helper", "c1", 1, "d", continues="run_2")
    assert not asleep(*gone_on)
