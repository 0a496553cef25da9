"""Deltas that are handed in together share a row, and whoever reads gets each of them as it was."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import StoreError
from runtime.events import (
    Event,
    MessageDelta,
    MessageStarted,
    ReasoningDelta,
    Record,
    ToolCallDelta,
    ToolCallProgress,
)
from runtime.journal.drafts import StoredRow, Unstorable, count_of, drafts_of, placed, records_in, records_of

EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(MessageDelta, st.just("m"), st.sampled_from(["p0", "p1"]), st.just(0), st.text(max_size=5)),
    st.builds(ReasoningDelta, st.just("m"), st.just("p2"), st.just(1), st.text(max_size=5)),
    st.builds(ToolCallDelta, st.sampled_from(["c1", "c2"]), st.text(max_size=5)),
    st.integers(1, 3).map(lambda number: ToolCallProgress("c1", "t", number, {"at": number})),
    st.just(MessageStarted("m", "assistant")),
)


def stored(events: Sequence[Event], after: int = 0, ahead: int = 0) -> list[StoredRow]:
    """The rows that a store has of these events."""
    return [
        StoredRow(seq, seq + ahead, draft.event.event_type, draft.payload, draft.checksum, 1, 2, 1, from_seq)
        for seq, from_seq, draft in placed(drafts_of(events), after)
    ]


def told(records: Sequence[Record]) -> list[tuple[int, int, Event | None, bytes, str]]:
    return [(r.seq, r.root_seq, r.event, r.payload, r.payload_checksum) for r in records]


@given(st.lists(EVENTS, max_size=20), st.integers(0, 9), st.integers(0, 9))
def test_what_is_read_is_what_was_written(events: list[Event], after: int, ahead: int) -> None:
    drafts = drafts_of(events)
    assert count_of(drafts) == len(events)
    written = records_of("r", after, drafts, 1, 2, after + ahead)
    alone = records_of("r", after, drafts_of(events, packed=False), 1, 2, after + ahead)
    assert told(records_in("r", stored(events, after, ahead))) == told(written) == told(alone)


@given(st.lists(EVENTS, max_size=20), st.integers(0, 25), st.integers(0, 25), st.integers(0, 25))
def test_a_reader_may_begin_and_end_within_a_row(events: list[Event], after: int, limit: int, up_to: int) -> None:
    rows = [row for row in stored(events) if row.seq > after]
    whole = records_in("r", stored(events))
    wanted = [record for record in whole if after < record.seq <= up_to][:limit]
    assert told(records_in("r", rows, after, limit, up_to)) == told(wanted)


def test_only_deltas_of_one_part_that_follow_each_other_share_a_row() -> None:
    def say(part: str, text: str) -> MessageDelta:
        return MessageDelta("m", part, 0, text)

    rows = placed(drafts_of([say("a", "1"), say("a", "2"), say("b", "3"), ToolCallDelta("c", "4"), say("a", "5")]), 7)
    assert [(row.from_seq, row.seq) for row in rows] == [(8, 9), (None, 10), (None, 11), (None, 12)]


def test_one_bad_text_cannot_be_stored_and_says_so() -> None:
    with pytest.raises(Unstorable, match=r"message\.delta"):
        drafts_of([MessageDelta("m", "p", 0, "good"), MessageDelta("m", "p", 0, "\ud800")])


def test_a_row_that_cannot_be_read_is_an_error_that_names_it() -> None:
    [row] = stored([ToolCallDelta("c", "1"), ToolCallDelta("c", "2")])
    with pytest.raises(StoreError, match="Event 2 of run r"):
        records_in("r", [row._replace(payload=b"{")])
