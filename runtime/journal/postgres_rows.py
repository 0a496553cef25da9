"""Rows of PostgreSQL, to and from the port's values. Pure; which statement a row comes from is not its business."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, Protocol

import orjson

from runtime.errors import StoreError
from runtime.events import Record
from runtime.journal import Session
from runtime.journal.drafts import StoredRow, Unstorable, records_in
from runtime.journal.interrupts import StoredInterrupt, raised_of
from runtime.run import RunRecord

_RUN_FIELDS = tuple(f.name for f in fields(RunRecord))
_SESSION_FIELDS = tuple(f.name for f in fields(Session))
_INTERRUPT_FIELDS = tuple(f.name for f in fields(StoredInterrupt))
_JSON_FIELDS = ("error", "usage")


class Columns(Protocol):
    """A row: its values by the names of their columns."""

    def __getitem__(self, name: str, /) -> Any: ...


def run_of(row: Columns) -> RunRecord:
    """A run from a whole row of `runs` with its lease's end. Raises StoreError if it cannot be read."""
    members: dict[str, Any] = {name: row[name] for name in _RUN_FIELDS}
    for name in _JSON_FIELDS:
        if members[name] is not None:
            members[name] = _json_of(members, name)
    return RunRecord(**members)


def stored_json(name: str, value: Any) -> bytes | None:
    """The run's error or usage as bytes. Raises Unstorable if it is not JSON."""
    if value is None:
        return None
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise Unstorable(f"The run's {name} cannot be stored as JSON: {error}.") from error


def session_of(row: Columns) -> Session:
    """A session from a whole row of `sessions`."""
    return Session(**{name: row[name] for name in _SESSION_FIELDS})


def interrupt_of(row: Columns) -> StoredInterrupt:
    """An interrupt from a whole row of `interrupts`. Raises StoreError if it cannot be read."""
    members: dict[str, Any] = {name: row[name] for name in _INTERRUPT_FIELDS}
    members["raised"] = raised_of(row["interrupt_id"], row["raised"])
    return StoredInterrupt(**members)


def stored_rows(rows: Iterable[Columns]) -> Iterator[StoredRow]:
    """The rows of events."""
    return (
        StoredRow(
            row["seq"],
            row["root_seq"],
            row["event_type"],
            row["payload"],
            row["payload_checksum"],
            row["occurred_at"],
            row["recorded_at"],
            row["schema_version"],
            row["from_seq"],
        )
        for row in rows
    )


def stored_records(
    run_id: str, rows: Iterable[Columns], after: int = 0, limit: int | None = None, up_to: int | None = None
) -> list[Record]:
    """The records of one run from the rows of its events, as `records_in` gives them. Raises StoreError for a payload
    that cannot be read."""
    return records_in(run_id, stored_rows(rows), after, limit, up_to)


def _json_of(members: dict[str, Any], name: str) -> Any:
    try:
        return orjson.loads(members[name])
    except orjson.JSONDecodeError as error:
        raise StoreError(f"The {name} of run {members['run_id']} cannot be read.", code="store_corrupt") from error
