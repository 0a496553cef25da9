"""How times are written: pure."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(ms: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC, such as `2026-01-31T08:00:00.250Z`."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_or_none(ms: int | None) -> str | None:
    """The same for a time that may not have come yet."""
    return None if ms is None else iso(ms)
