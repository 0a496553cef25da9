"""What the store keeps of a request is all that another process needs, and nothing that proves who asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtime import events as e
from runtime.authority import Principal
from runtime.budget import Budget, Price
from runtime.errors import StoreError
from runtime.items import ToolSpec
from runtime.journal.inbox import ENQUEUE
from runtime.progress import progress_of
from runtime.request import RunRequest
from runtime.run import QUEUED, RunRecord
from runtime.stored_request import request_of, stored_request

RUN = RunRecord("run_1", "t", "me", "thr_1", "s1", "assistant", "r1", "d1", 1, QUEUED, 7, 0, 1, "run_1", 0)
SAID = e.MessageCompleted("u1", "user", [{"type": "text", "text": "Hi"}], "0", None, {"name": "Ann"})
REQUEST = RunRequest(
    principal=Principal("me", "t"),
    agent_id="assistant",
    session_id="s1",
    client_run_id="r1",
    input_digest="d1",
    base=7,
    facts=[SAID],
    call_model=True,
    client_tools=[ToolSpec("ask", "Asks", {"type": "object"})],
    context=[{"description": "d", "value": "v"}],
    forwarded_props={"a": [1, None]},
    budget=Budget(rounds=3, cost=0.5, prices={"m": Price(1.0, 2.0)}),
    cancel_when_unread=False,
)


def test_a_request_is_read_as_it_was_stored():
    waiting = replace(REQUEST, when_busy=ENQUEUE)
    assert request_of(replace(RUN, when_busy=ENQUEUE), stored_request(waiting)) == waiting


def test_the_messages_of_a_run_that_did_not_have_to_wait_are_in_its_journal_alone():
    assert request_of(RUN, stored_request(REQUEST)) == replace(REQUEST, facts=[])
    other = replace(REQUEST, facts=[], client_run_id="r2", input_digest="d2", base=9)
    assert stored_request(REQUEST) == stored_request(other), "the requests of a conversation are one content"


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"principal": {}}'])
def test_a_request_that_cannot_be_read_is_an_error_of_the_store(data: bytes):
    with pytest.raises(StoreError):
        request_of(RUN, data)


def test_a_run_can_be_gone_on_with_only_between_two_rounds_and_before_its_calls_begin():
    call = e.ToolCallCommitted("c1", "work", "{}", "server")
    done = e.RoundCompleted(1, "working_message", "tool_calls", [], ["c1"], usage={"input_tokens": 2})
    facts: list[e.Event | None] = [
        e.MessageStarted("msg_1", "assistant"),
        e.RoundStarted(1, "m", "p", {}),
        e.MessageDelta("msg_1", "p0", 0, "Let me see."),
        None,
        e.ToolCallStarted("msg_1", "p1", 1, "c1", "work"),
        call,
        done,
        e.ToolExecutionStarted("c1", "work", "k"),
        e.output_of("c1", "work", "done", "result"),
    ]
    may = [progress_of(facts[:end], "pause_turn").can_go_on for end in range(len(facts) + 1)]
    assert may == [False, True, False, False, False, False, False, True, False, True]
    progress = progress_of(facts[:7], "pause_turn")
    assert (progress.message_id, progress.rounds, progress.parts) == ("msg_1", 1, 2)
    assert progress.open_calls == [call]
    assert progress.usage == [{"input_tokens": 2}]
