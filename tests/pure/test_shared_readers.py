"""Readers of one run share one projection, and each is told what it would have been told alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_bridge.encoders import SharedProjection, agui_encoder
from agui_bridge.projection import Echo, Projector
from agui_bridge.wire.events import AguiEvent
from runtime import events as e
from runtime.errors import ReaderDropped
from runtime.events import Record
from runtime.journal.drafts import drafts_of, records_of

ECHO = Echo("t1", "r1")


class Counting(Projector):
    """A projection that counts what it is given."""

    def __init__(self) -> None:
        super().__init__(ECHO)
        self.taken = 0

    def take(self, record: Record) -> Sequence[AguiEvent]:
        self.taken += 1
        return super().take(record)


def a_run(deltas: int) -> list[Record]:
    """The records of a run that says so many words."""
    message, parts = "m1", [{"part_id": "p0", "kind": "text"}]
    events: list[e.Event] = [
        e.RunStarted(0, "r1", "a", "", []),
        e.MessageStarted(message, "assistant"),
        e.RoundStarted(1, "m", "testing", {}),
        *(e.MessageDelta(message, "p0", 0, f"word {number} ") for number in range(deltas)),
        e.RoundCompleted(1, "final_response", "stop", parts, []),
        e.RunCompleted(message),
    ]
    return records_of("run_1", 0, drafts_of(events), 0, 0)


RUN = a_run(12)


@given(st.lists(st.tuples(st.integers(0, len(RUN)), st.lists(st.integers(1, 6), max_size=8)), min_size=1, max_size=5))
def test_each_is_told_what_it_would_be_told_alone(readers: list[tuple[int, Any]]) -> None:
    shared = SharedProjection(projector := Counting())
    for after, sizes in readers:
        mine, alone = shared.reader(after), agui_encoder(Projector(ECHO), after)
        start = 0
        for size in [*sizes, len(RUN)]:
            batch = RUN[start : start + size]
            assert mine(batch) == alone(batch)
            start += size
    assert projector.taken == len(RUN)


def test_readers_side_by_side_cost_one_projection() -> None:
    shared = SharedProjection(projector := Counting())
    readers = [shared.reader(0) for _ in range(16)]
    for record in RUN:
        assert len({reader([record]) for reader in readers}) == 1
    assert projector.taken == len(RUN)


def test_who_is_too_far_behind_is_sent_away_and_nobody_new_begins_there() -> None:
    shared = SharedProjection(Projector(ECHO), most=500)
    quick, slow = shared.reader(0), shared.reader(0)
    assert quick(RUN)
    assert not shared.has_all
    with pytest.raises(ReaderDropped):
        slow(RUN)
    assert shared.reader(RUN[-2].seq)(RUN)
