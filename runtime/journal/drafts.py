"""Drafts: events as the rows that a journal keeps. Pure rules that every implementation shares.

A row is an event, or a pack: deltas of one part that were handed in together, for which a row each would cost more
than they say. A pack is only how they lie in the store: whoever reads gets each of them, with its own place. The row
has the place of the last, and `from_seq` is that of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from runtime.errors import StoreError
from runtime.events import (
    EVENT_TYPES,
    Event,
    MessageDelta,
    ReasoningDelta,
    Record,
    ToolCallDelta,
    ToolCallProgress,
    checksum_of,
    decode,
    encode,
)

_DELTAS = "deltas"
"""The member of a pack's payload that has the texts, in the place of `delta`."""

PART: Final[dict[type[Any], Callable[[Any], tuple[Any, ...]]]] = {
    MessageDelta: lambda delta: ("message", delta.message_id, delta.part_id, delta.content_index),
    ReasoningDelta: lambda delta: ("reasoning", delta.message_id, delta.part_id, delta.content_index),
    ToolCallDelta: lambda delta: ("call", delta.tool_call_id),
    ToolCallProgress: lambda progress: ("progress", progress.tool_call_id),
}
"""What makes two deltas pieces of the same text, or stages of the same progress."""

_PACKED: Final = frozenset({MessageDelta, ReasoningDelta, ToolCallDelta})


class Unstorable(StoreError):
    """The row cannot be stored as it is; the same row will never be."""

    code = "unstorable"
    retryable = False


class Draft(NamedTuple):
    """A row before it has a place: its events, all but one of them only if it is a pack."""

    events: Sequence[Event]
    payload: bytes
    checksum: bytes

    @property
    def event(self) -> Event:
        """The event; of a pack the last one."""
        return self.events[-1]


def drafts_of(events: Sequence[Event], *, packed: bool = True) -> list[Draft]:
    """The events as rows, without packs if they are not to be. Raises Unstorable for a payload that is not JSON (lone
    surrogates, huge integers)."""
    return [_draft(group) for group in (_groups(events) if packed else [[event] for event in events])]


def count_of(drafts: Iterable[Draft]) -> int:
    """How many events these rows are."""
    return sum([len(draft.events) for draft in drafts])


def _groups(events: Sequence[Event]) -> list[list[Event]]:
    groups: list[list[Event]] = []
    last: tuple[Any, ...] | None = None
    for event in events:
        part = PART[type(event)](event) if type(event) in _PACKED else None
        if part is not None and part == last:
            groups[-1].append(event)
        else:
            groups.append([event])
        last = part
    return groups


def _draft(events: list[Event]) -> Draft:
    try:
        payload = encode(events[0]) if len(events) == 1 else _packed(events)
    except orjson.JSONEncodeError as error:
        raise Unstorable(f"{events[0].event_type} cannot be stored as JSON: {error}.") from error
    return Draft(events, payload, checksum_of(payload))


def _packed(events: list[Any]) -> bytes:
    first = events[0]
    head = {name: getattr(first, name) for name in first.__slots__ if name != "delta"}
    return orjson.dumps({**head, _DELTAS: [event.delta for event in events]})


# --- rows that have a place ---------------------------------------------------------------------------------------


class Placed(NamedTuple):
    """A row with its place; a pack stands for what lies between, too."""

    seq: int
    from_seq: int | None
    draft: Draft


def placed(drafts: Iterable[Draft], after: int) -> list[Placed]:
    """The rows behind this seq, in order."""
    rows: list[Placed] = []
    for draft in drafts:
        first, after = after + 1, after + len(draft.events)
        rows.append(Placed(after, None if first == after else first, draft))
    return rows


def records_of(
    run_id: str,
    after: int,
    drafts: Iterable[Draft],
    occurred_at: int,
    recorded_at: int,
    root_after: int | None = None,
) -> list[Record]:
    """The events with their places behind `after`, and in their tree behind `root_after` (None: a run without children,
    whose own order is that of its tree)."""
    ahead = 0 if root_after is None else root_after - after
    records: list[Record] = []
    seq = after
    for draft in drafts:
        whole = len(draft.events) == 1
        payload, checksum = (draft.payload, draft.checksum.hex()) if whole else (None, None)
        for event in draft.events:
            seq += 1
            records.append(
                Record(run_id, seq, seq + ahead, event.event_type, event, payload, checksum, occurred_at, recorded_at)
            )
    return records


class StoredRow(NamedTuple):
    """A row as a store gives it back."""

    seq: int
    root_seq: int
    event_type: str
    payload: bytes
    checksum: bytes
    occurred_at: int
    recorded_at: int
    schema_version: int
    from_seq: int | None


def records_in(
    run_id: str, rows: Iterable[StoredRow], after: int = 0, limit: int | None = None, up_to: int | None = None
) -> list[Record]:
    """The records of one run that these rows are, in order, behind `after`: at most `limit`, and none behind `up_to`.

    Raises StoreError for a payload that cannot be read.
    """
    records: list[Record] = []
    for row in rows:
        if limit is not None and len(records) >= limit:
            break
        packed = _unpacked(run_id, row) if row.from_seq is not None else None
        if packed is None:
            records.append(_record(run_id, row))
        else:
            records += [record for record in packed if record.seq > after]
    if up_to is not None:
        records = [record for record in records if record.seq <= up_to]
    return records if limit is None else records[:limit]


def _record(run_id: str, row: StoredRow) -> Record:
    event = decoded(run_id, row.seq, row.event_type, row.payload)
    stored = (row.payload, row.checksum.hex(), row.occurred_at, row.recorded_at, row.schema_version, row.from_seq)
    return Record(run_id, row.seq, row.root_seq, row.event_type, event, *stored)


def _unpacked(run_id: str, row: StoredRow) -> list[Record] | None:
    """The records of a pack; None for a row of another kind, such as one that was compacted."""
    cls: Any = EVENT_TYPES.get(row.event_type)
    members = _members(run_id, row.seq, row.event_type, row.payload)
    deltas = members.pop(_DELTAS, None)
    if cls not in _PACKED or deltas is None:
        return None
    first, ahead = row.seq - len(deltas) + 1, row.root_seq - row.seq
    told = (row.occurred_at, row.recorded_at, row.schema_version)
    return [
        Record(run_id, seq, seq + ahead, row.event_type, cls(**members, delta=delta), None, None, *told)
        for seq, delta in enumerate(deltas, first)
    ]


def decoded(run_id: str, seq: int, event_type: str, payload: bytes) -> Event | None:
    """The event of a stored payload. Raises StoreError if it cannot be read."""
    try:
        return decode(event_type, payload)
    except (TypeError, orjson.JSONDecodeError) as error:
        raise _unreadable(run_id, seq, event_type) from error


def _members(run_id: str, seq: int, event_type: str, payload: bytes) -> dict[str, Any]:
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise _unreadable(run_id, seq, event_type) from error


def _unreadable(run_id: str, seq: int, event_type: str) -> StoreError:
    return StoreError(f"Event {seq} of run {run_id} ({event_type}) cannot be read.", code="store_corrupt")
