"""A reader that is cut anywhere and comes back with its last id gets exactly the rest, in both formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agui_bridge.encoders import Encoder, agui_encoder, canonical_encoder
from runtime import events as e
from tests.pure.conversation import Conversation
from tests.pure.histories import Chance, Drawn, Performed
from tests.pure.stock_page import Page
from tests.pure.test_reopening import record
from tests.serving import events_in

JsonObject = dict[str, Any]
FORMATS = ("agui", "canonical", "full")


def reader(run: Performed, wanted: str, after: int) -> tuple[Encoder, list[e.Record]]:
    """What turns records into frames for a reader that has seen everything up to `after`, and the records it is
    given."""
    if wanted == "agui":
        return agui_encoder(run.projector(), after), run.records
    rest = [each for each in run.records if each.seq > after]
    return canonical_encoder(record(run, len(run.records)), full=wanted == "full"), rest


def in_pages(encode: Encoder, records: Sequence[e.Record], chance: Chance) -> bytes:
    """The frames of these records, which come in pages of any size."""
    frames, place = b"", 0
    while place < len(records):
        size = chance.pick(range(1, 9))
        frames += encode(records[place : place + size])
        place += size
    return frames


def id_of(frame: bytes) -> int | None:
    first = frame.partition(b"\n")[0]
    return int(first[4:]) if first.startswith(b"id: ") else None


def seen_of(frames: bytes, cut: int) -> tuple[bytes, int]:
    """What a reader keeps of a stream that is cut behind so many bytes: everything up to its last id, and that id."""
    *whole, _ = frames[:cut].split(b"\n\n")
    while whole and id_of(whole[-1]) is None:
        whole.pop()
    return b"".join(frame + b"\n\n" for frame in whole), (id_of(whole[-1]) or 0) if whole else 0


@given(st.data())
def test_cut_and_resumed_at_any_bytes_the_stream_is_the_one_that_was_never_cut(data: st.DataObject) -> None:
    chance = Drawn(data)
    conversation = Conversation(chance)
    conversation.step()
    turn = conversation.step()
    wanted = chance.pick(FORMATS)
    run = turn.performed
    encode, records = reader(run, wanted, 0)
    whole = encode(records)
    kept, after = b"", 0
    for _ in range(4):
        encode, records = reader(run, wanted, after)
        frames = in_pages(encode, records, chance)
        assert kept + frames == whole
        seen, last = seen_of(frames, chance.pick(range(len(frames) + 1)))
        kept, after = kept + seen, max(after, last)


@given(st.data())
def test_a_page_that_was_cut_off_in_its_stream_and_read_on_shows_what_a_page_shows_that_was_not(
    data: st.DataObject,
) -> None:
    chance = Drawn(data)
    conversation = Conversation(chance)
    conversation.step()
    turn = conversation.step()
    run, page = turn.performed, Page(turn.messages, turn.state)
    encode, records = reader(run, "agui", 0)
    frames = encode(records)
    seen, after = seen_of(frames, chance.pick(range(len(frames) + 1)))
    page.apply(events_in(seen))
    encode, records = reader(run, "agui", after)
    page.apply(events_in(encode(records)))
    assert page.messages == conversation.page.messages
    assert page.state == conversation.page.state
    assert page.surprises == []
