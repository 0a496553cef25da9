"""Rows of SQLite, to and from the port's values. Pure; which statement a row comes from is not its business."""

from __future__ import annotations

import sqlite3
from dataclasses import fields
from typing import Any

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


def run_of(row: sqlite3.Row) -> RunRecord:
    """A run from a whole row of `runs`. Raises StoreError if it cannot be read."""
    members: dict[str, Any] = {name: row[name] for name in _RUN_FIELDS}
    for name in _JSON_FIELDS:
        if members[name] is not None:
            members[name] = _json_of(members, name)
    return RunRecord(**members)


def row_of(run: RunRecord) -> dict[str, Any]:
    """A run as named parameters. Raises Unstorable if its error or usage is not JSON."""
    row: dict[str, Any] = {name: getattr(run, name) for name in _RUN_FIELDS}
    for name in _JSON_FIELDS:
        if row[name] is not None:
            try:
                row[name] = orjson.dumps(row[name])
            except orjson.JSONEncodeError as error:
                raise Unstorable(f"The run's {name} cannot be stored as JSON: {error}.") from error
    return row


def _json_of(members: dict[str, Any], name: str) -> Any:
    try:
        return orjson.loads(members[name])
    except orjson.JSONDecodeError as error:
        raise StoreError(f"The {name} of run {members['run_id']} cannot be read.", code="store_corrupt") from error


def session_of(row: sqlite3.Row) -> Session:
    """A session from a whole row of `sessions`."""
    return Session(**{name: row[name] for name in _SESSION_FIELDS})


def interrupt_of(row: sqlite3.Row) -> StoredInterrupt:
    """An interrupt from a whole row of `interrupts`. Raises StoreError if it cannot be read."""
    members: dict[str, Any] = {name: row[name] for name in _INTERRUPT_FIELDS}
    members["raised"] = raised_of(row["interrupt_id"], row["raised"])
    return StoredInterrupt(**members)


def stored_records(
    run_id: str, cursor: sqlite3.Cursor, after: int = 0, limit: int | None = None, up_to: int | None = None
) -> list[Record]:
    """The records of one run from the rows of its events, as `records_in` gives them. Raises StoreError for a payload
    that cannot be read."""
    rows = cursor.fetchall()  # first: a cursor that an error leaves half read would hold its connection in the past
    return records_in(run_id, (StoredRow(*row) for row in rows), after, limit, up_to)
