"""The fold: what facts leave behind, and that nothing which was handed out changes under its reader."""

from __future__ import annotations

import copy
import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agui_bridge.told import late_fact
from agui_bridge.transcript import transcript
from runtime import events as e
from runtime.canonical import digest
from runtime.items import FunctionCallOutput
from runtime.state_delta import change, diff
from runtime.thread import Thread
from tests.pure.conversation import Conversation
from tests.pure.histories import Drawn
from tests.pure.test_reconcile import Told, says

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(("", "a", "b/c", "~")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
STATES = st.dictionaries(st.sampled_from(("a", "b/c", "d~", "")), JSON, max_size=3) | st.lists(JSON, max_size=4)


@given(st.lists(STATES, min_size=2, max_size=5))
def test_a_state_that_was_read_stays_as_it_was_and_so_do_the_facts(states: list[Any]):
    thread = Thread("thr")
    facts: list[e.Event] = [e.StateSnapshot(states[0], "agent")]
    seen: list[Any] = []
    kept: list[Any] = []
    for before, after in itertools.pairwise(states):
        if (fact := change(before, after)) is not None:
            facts.append(fact)
    written = copy.deepcopy(facts)
    for seq, fact in enumerate(facts, 1):
        thread.apply("run", 0, seq, fact)
        seen.append(thread.state)
        kept.append(copy.deepcopy(thread.state))
    assert facts == written
    assert seen == kept
    assert digest(thread.state) == digest(states[-1])


def test_a_value_that_a_change_brought_may_be_changed_by_the_next_operation():
    thread = Thread("thr")
    fact = e.StateDelta([{"op": "add", "path": "/a", "value": {"n": [1]}}, {"op": "add", "path": "/a/n/-", "value": 2}])
    thread.apply("run", 0, 1, fact)
    assert thread.state == {"a": {"n": [1, 2]}}
    assert fact.delta[0]["value"] == {"n": [1]}
    thread.apply("run", 0, 2, e.StateDelta([{"op": "move", "from": "/a/n", "path": "/b"}]))
    assert thread.state == {"a": {}, "b": [1, 2]}


def test_a_change_shares_what_it_does_not_touch():
    thread = Thread("thr")
    thread.state = {"large": {"rows": [1, 2, 3]}, "n": 1}
    large = thread.state["large"]
    thread.apply("run", 0, 1, e.StateDelta(diff({"n": 1}, {"n": 2})))
    assert thread.state["large"] is large


def test_facts_of_a_later_release_move_the_position_only():
    told = Told().run(says("u1", "one"))
    items = told.thread.items()
    told.thread.apply("run9", told.thread.position, 1, None)
    assert told.thread.items() == items


def test_a_second_output_of_a_call_changes_nothing():
    told = Told().asks("c1")
    first = e.output_of("c1", "pick", "red", "client")
    for seq, fact in enumerate((first, e.output_of("c1", "pick", "green", "client")), 50):
        told.thread.apply("run1", 0, seq, fact)
    (output,) = (item for item in told.thread.items() if isinstance(item, FunctionCallOutput))
    assert output.output == "red"


def test_an_answer_that_comes_late_stands_behind_the_results_that_are_there():
    thread = Thread("thr_1")
    message = {"id": "a1", "role": "tool", "toolCallId": "c1", "content": "blue"}
    facts: list[e.Event] = [
        e.RunStarted(0, "r1", "assistant", "", []),
        e.MessageStarted("m1", "assistant"),
        e.RoundStarted(1, "m", "p", {}),
        *(e.ToolCallStarted("m1", f"p{n}", n, f"c{n}", "pick") for n in (1, 2)),
        e.ToolCallCommitted("c1", "pick", "{}", "client"),
        e.ToolCallCommitted("c2", "look", "{}", "server"),
        e.output_of("c1", "pick", "Not answered by the client.", "unanswered"),
        e.output_of("c2", "look", "seen", "result"),
        late_fact(message),
    ]
    for seq, fact in enumerate(facts, 1):
        thread.apply("run_1", 0, seq, fact)
    assert [line.id for line in transcript(thread)] == ["m1-1", "result-c2", "a1"]


def test_a_fork_behind_what_is_not_there_cuts_nothing():
    told = Told().run(says("u1", "one"))
    told.thread.apply("run2", told.thread.position, 1, e.HistoryForked("never seen", ["nor this"]))
    assert [entry.id for entry in told.thread.entries] == ["u1", "m1"]


def test_a_fork_to_the_beginning_and_back_keeps_the_entries_as_they_were():
    told = Told().run(says("u1", "one")).run(says("u2", "two"))
    entries = list(told.thread.entries)
    told.thread.apply("run3", told.thread.position, 1, e.HistoryForked(None, []))
    assert told.thread.items() == []
    assert not told.thread.is_empty
    told.thread.apply("run3", told.thread.position, 2, e.HistoryForked(None, [entry.key for entry in entries]))
    assert told.thread.entries == entries


@given(st.data())
def test_folding_in_pieces_is_folding_at_once(data: st.DataObject):
    conversation = Conversation(Drawn(data))
    for _ in range(3):
        conversation.step()
    told = Thread("thr_1")
    for run in conversation.theatre.runs:
        for record in run.records:
            told.apply(run.run_id, run.base, record.seq, record.event)
    live = conversation.theatre.thread
    assert told.items() == live.items()
    assert transcript(told) == transcript(live)
    assert told.state == live.state
    assert told.archive.keys() == live.archive.keys()
    assert [call.call_id for call in told.open_calls()] == [call.call_id for call in live.open_calls()]
