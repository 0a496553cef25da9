"""Which calls of a round run together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.schedule import batches

rounds = st.lists(st.tuples(st.integers(), st.booleans()))


def _is_parallel(call: tuple[int, bool]) -> bool:
    return call[1]


@given(rounds)
def test_every_call_is_in_exactly_one_batch_and_the_order_stays(calls: list[tuple[int, bool]]):
    assert [call for batch in batches(calls, _is_parallel) for call in batch] == calls


@given(rounds)
def test_one_call_that_is_not_parallel_makes_all_run_one_at_a_time(calls: list[tuple[int, bool]]):
    made = batches([*calls, (0, False)], _is_parallel)

    assert {len(batch) for batch in made} == {1}


@given(st.lists(st.tuples(st.integers(), st.just(True)), min_size=1))
def test_calls_that_are_all_parallel_run_together(calls: list[tuple[int, bool]]):
    assert batches(calls, _is_parallel) == [calls]


def test_a_round_without_calls_has_no_batch():
    assert batches([], _is_parallel) == []
