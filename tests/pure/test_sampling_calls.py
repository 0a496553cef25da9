"""Tool calls in the sampling loop: their ids, their names, what is shown of them, and what counts as malformed."""

from __future__ import annotations

import pytest

from runtime import events as e
from runtime import samples as s
from runtime.steps import RunTools
from tests.pure.test_sampling import call, completed, kinds, loop


def test_an_id_of_the_provider_is_kept_while_it_is_unique_in_the_thread():
    sampling = loop(taken={"c1"})
    events = sampling.feed([*call(id_="c1"), *call(id_="c2", key="1"), *call(id_="c2", key="2"), s.Completed("x")])
    made = [(one.tool_call_id, one.provider_call_id) for one in events if isinstance(one, e.ToolCallCommitted)]
    assert made == [("call_1", "c1"), ("c2", None), ("call_2", "c2")]


def test_a_call_without_an_id_gets_one_and_its_deltas_have_it_too():
    events = loop().feed([*call(id_=""), s.Completed("tool_calls")])
    ids = {
        one.tool_call_id for one in events if isinstance(one, e.ToolCallStarted | e.ToolCallDelta | e.ToolCallCommitted)
    }
    assert ids == {"call_1"}
    assert next(one for one in events if isinstance(one, e.ToolCallCommitted)).provider_call_id is None


def test_an_id_that_is_known_only_at_the_end_is_kept_beside_ours():
    samples = [s.ToolCallDelta("0", "get_time", "{}"), s.ToolCallCommitted("0", "get_time", "{}", "late")]
    events = loop().feed([*samples, s.Completed("tool_calls")])
    committed = next(one for one in events if isinstance(one, e.ToolCallCommitted))
    assert (committed.tool_call_id, committed.provider_call_id) == ("call_1", "late")


def test_a_call_that_is_committed_without_a_delta_is_shown_whole():
    events = loop().feed([s.ToolCallCommitted("0", "get_time", '{"tz": 1}', "c1"), s.Completed("tool_calls")])
    assert events[:2] == [e.ToolCallStarted("m1", "p0", 0, "c1", "get_time"), e.ToolCallDelta("c1", '{"tz": 1}')]


def test_what_the_deltas_left_out_is_shown_at_the_commit():
    samples = [s.ToolCallDelta("0", "get_time", '{"tz', "c1"), s.ToolCallCommitted("0", "get_time", '{"tz": 1}', "c1")]
    events = loop().feed(samples)
    assert [one.delta for one in events if isinstance(one, e.ToolCallDelta)] == ['{"tz', '": 1}']


@pytest.mark.parametrize(("written", "kept"), [("", "{}"), (" null ", "{}"), ('{"a":1}', '{"a":1}'), ("{ }", "{ }")])
def test_no_arguments_are_an_empty_object_and_others_stay_as_they_were_written(written: str, kept: str):
    events = loop().feed([s.ToolCallCommitted("0", "get_time", written, "c1"), s.Completed("tool_calls")])
    committed = next(one for one in events if isinstance(one, e.ToolCallCommitted))
    assert (committed.arguments_json, committed.malformed) == (kept, False)


@pytest.mark.parametrize("written", ["{", "[]", '"text"', "1", "nul", '{"a": "\ud800"}'])
def test_arguments_that_are_no_object_are_committed_as_malformed(written: str):
    events = loop().feed([s.ToolCallCommitted("0", "get_time", written, "c1"), s.Completed("tool_calls")])
    assert next(one for one in events if isinstance(one, e.ToolCallCommitted)).malformed


def test_a_call_without_a_name_is_nobodys_and_is_never_shown():
    sampling = loop()
    events = sampling.feed([*call(""), s.Completed("tool_calls")])
    assert kinds(events) == ["tool.call.committed", "round.completed"]
    assert events[0] == e.ToolCallCommitted("c1", "", "{}", "nobody")
    assert isinstance(sampling.next(), RunTools)


def test_a_name_that_is_known_only_at_the_commit_is_shown_then():
    sampling = loop()
    samples = [s.ToolCallDelta("0", "", '{"tz', "c1"), s.ToolCallCommitted("0", "get_time", '{"tz": 1}', "c1")]
    events = sampling.feed([*samples, s.Completed("tool_calls")])
    assert events[:2] == [e.ToolCallStarted("m1", "p0", 0, "c1", "get_time"), e.ToolCallDelta("c1", '{"tz": 1}')]


def test_calls_are_committed_in_the_order_in_which_they_began():
    one, other = call(id_="c1"), call(id_="c2", key="1")
    events = loop().feed([one[0], other[0], other[1], one[1], s.Completed("tool_calls")])
    assert completed(events).tool_call_ids == ["c1", "c2"]
