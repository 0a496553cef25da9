"""Compaction changes no projection and no history: whatever a run said, whenever it ended, however often it happens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agui_bridge.encoders import SharedEncoder, canonical_encoder
from agui_bridge.transcript import transcript
from runtime import events as e
from runtime.errors import EventsExpired
from runtime.journal.compaction import Place, compacted, stretches_of
from runtime.run import RunRecord
from runtime.thread import Thread
from tests.pure.histories import Drawn, Performed, Theatre
from tests.pure.stock_page import Page


def performed(data: st.DataObject) -> Performed:
    theatre = Theatre(Drawn(data))
    return theatre.run([{"id": "u1", "role": "user", "content": "Hi"}], {})


def folded(run: Performed, records: list[e.Record]) -> Thread:
    thread = Thread("thr_1")
    for record in records:
        thread.apply(run.run_id, run.base, record.seq, record.event)
    return thread


def page_of(run: Performed, records: list[e.Record]) -> Page:
    page = Page()
    projector = run.projector()
    page.apply(event for record in records for event in projector.feed(record.event))
    return page


@given(st.data())
def test_compaction_at_any_point_changes_no_history_and_nothing_that_a_page_ends_with(data: st.DataObject) -> None:
    run = performed(data)
    for end in {len(run.records), data.draw(st.integers(1, len(run.records)))}:
        whole = run.records[:end]
        slim = compacted(whole)
        before, after = folded(run, whole), folded(run, slim)
        assert after.items() == before.items()
        assert transcript(after) == transcript(before)
        assert (after.state, after.position, after.last_run) == (before.state, before.position, before.last_run)
        assert page_of(run, slim).messages == page_of(run, whole).messages
        assert page_of(run, slim).state == page_of(run, whole).state


@given(st.data())
def test_what_is_compacted_has_every_place_once_and_loses_no_word(data: st.DataObject) -> None:
    whole = performed(data).records
    slim = compacted(whole)
    places = [place for record in slim for place in range(record.first_seq, record.seq + 1)]
    assert places == [record.seq for record in whole]
    assert len(whole) - len(slim) == sum(stretch.saved for stretch in stretches_of(whole))
    for kind in e.DELTAS:
        assert _words(slim, kind) == _words(whole, kind)
    assert compacted(slim) == slim
    assert [r.event_type for r in slim if type(r.event) not in e.DELTAS] == [
        r.event_type for r in whole if type(r.event) not in e.DELTAS
    ]


def _words(records: list[e.Record], kind: type[e.Event]) -> str:
    return "".join(getattr(record.event, "delta", "") for record in records if type(record.event) is kind)


@given(st.data())
def test_only_the_deltas_of_a_run_tell_what_it_can_be_compacted_to(data: st.DataObject) -> None:
    whole = performed(data).records
    assert stretches_of(whole) == stretches_of(r for r in whole if type(r.event) in e.DELTAS)


@given(st.data())
def test_a_reader_from_the_beginning_goes_on_anywhere_and_one_from_within_is_told(data: st.DataObject) -> None:
    whole = performed(data).records
    slim = compacted(whole)
    at = data.draw(st.integers(0, len(whole)))
    place = Place()
    place.passed(whole[:at])
    rest = [record for record in slim if record.seq > at]
    if rest:
        given_ = [*whole[:at], place.rest_of(rest[0], at), *rest[1:]]
        for kind in e.DELTAS:
            assert _words(given_, kind) == _words(whole, kind)
        assert rest[0].first_seq <= at + 1
        if rest[0].first_seq <= at:
            try:
                Place().rest_of(rest[0], at)
            except EventsExpired:
                pass
            else:
                raise AssertionError("a place within is none")


def test_shared_frames_of_a_rest_are_not_those_of_the_whole() -> None:
    def record(from_seq: int, text: str) -> e.Record:
        event = e.MessageDelta("m", "p", 0, text)
        return e.Record("r", 9, 9, "message.delta", event, e.encode(event), "0", 0, 0, from_seq=from_seq)

    run = RunRecord("r", "-", "me", "t", None, "a", "c", "d", 1, "succeeded", 0, 9, 1, "r", 0)
    encode = SharedEncoder(canonical_encoder(run, full=False))
    assert b'"delta":"abc"' in encode([record(7, "abc")])
    assert b'"delta":"bc"' in encode([record(8, "bc")])
    assert b'"from_seq":7' in encode([record(7, "abc")])
