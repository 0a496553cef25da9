"""Compaction: the deltas of a run that is over, each stretch of them as one event.

Pure. Deltas of one part that follow each other without anything in between become the last of them, with all their
words: the journal keeps its order and its end, and whoever reads it from the start is told the same. Of a call's
progress the last says all. A place within such a stretch is no place any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from runtime.errors import EventsExpired
from runtime.events import Event, MessageDelta, ReasoningDelta, Record, ToolCallDelta, ToolCallProgress
from runtime.journal.drafts import PART, Draft, drafts_of


class Stretch(NamedTuple):
    """The deltas `from_seq` to `seq` as one event, and how many events it saves."""

    from_seq: int
    seq: int
    draft: Draft
    saved: int


def stretches_of(records: Iterable[Record]) -> list[Stretch]:
    """What the records of a run, given in order, can be compacted to; others than deltas may be left out. What was
    compacted before may be among them.
    """
    return [_stretch(group) for group in _groups(records) if len(group) > 1]


def compacted(records: Sequence[Record]) -> list[Record]:
    """The records as they are after compaction."""
    out: list[Record] = []
    stretches = {stretch.seq: stretch for stretch in stretches_of(records)}
    inside = {seq for each in stretches.values() for seq in range(each.from_seq, each.seq)}
    for record in records:
        if record.seq in inside:
            continue
        stretch = stretches.get(record.seq)
        out.append(record if stretch is None else _as_one(record, stretch))
    return out


def _as_one(record: Record, stretch: Stretch) -> Record:
    draft = stretch.draft
    return record._replace(
        event=draft.event, stored=draft.payload, stored_checksum=draft.checksum.hex(), from_seq=stretch.from_seq
    )


def _groups(records: Iterable[Record]) -> Iterator[list[Record]]:
    group: list[Record] = []
    last: tuple[str, ...] | None = None
    for record in records:
        part = _part_of(record.event)
        if group and (part != last or record.first_seq != group[-1].seq + 1):
            yield group
            group = []
        last = part
        if part is not None:
            group.append(record)
    if group:
        yield group


def _part_of(event: Event | None) -> tuple[str, ...] | None:
    key = PART.get(type(event))
    return None if key is None else key(event)


def _stretch(group: Sequence[Record]) -> Stretch:
    words = "".join(_delta_of(record.event) for record in group)
    [draft] = drafts_of([_saying(group[-1].event, words)])
    return Stretch(group[0].first_seq, group[-1].seq, draft, len(group) - 1)


def _delta_of(event: Event | None) -> str:
    """The words of a delta; progress has none, and is told as a whole each time."""
    assert isinstance(event, MessageDelta | ReasoningDelta | ToolCallDelta | ToolCallProgress), "only these are grouped"
    return "" if isinstance(event, ToolCallProgress) else event.delta


def _saying(event: Any, words: str) -> Event:
    """The delta with these words in the place of its own."""
    return event if isinstance(event, ToolCallProgress) else replace(event, delta=words)


# --- readers ------------------------------------------------------------------------------------------------------


class Place:
    """How far a reader is within a stretch of deltas: what it was given of it is known by length, so that it can go
    on when the stretch is compacted before its eyes."""

    __slots__ = ("_from_seq", "_given", "_part")

    def __init__(self) -> None:
        self._part: tuple[str, ...] | None = None
        self._from_seq = 0
        self._given = 0

    def passed(self, records: Iterable[Record]) -> None:
        """The reader was given these records, the next ones of its run."""
        for record in records:
            part = _part_of(record.event)
            if part is None:
                self._part = None
                continue
            if part != self._part:
                self._part, self._from_seq, self._given = part, record.first_seq, 0
            self._given += len(_delta_of(record.event))

    def rest_of(self, record: Record, after: int) -> Record:
        """What of this record stands behind `after`; the record itself if that is all of it.

        Raises EventsExpired if `after` is a place within it that the reader did not come to from its beginning.
        """
        if record.first_seq > after:
            return record
        if _part_of(record.event) != self._part or self._part is None or self._from_seq != record.first_seq:
            raise EventsExpired
        [draft] = drafts_of([_saying(record.event, _delta_of(record.event)[self._given :])])
        return _as_one(record, Stretch(after + 1, record.seq, draft, 0))
