"""Server-sent events: frames out, cursors in.

Pure. Lines end with LF alone: stock AG-UI clients split a stream at LF LF and die of anything else. Data is one line
of JSON. Whether a cursor lies beyond the end of a journal is for those to say who can see the journal.
"""

from __future__ import annotations

import re
from typing import Final

from runtime.errors import InvalidCursor

KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment: every reader skips it, proxies see traffic."""

_NUMBER = re.compile(r"[0-9]{1,16}")
_LARGEST = 2**53
_SHOWN = 64


def frame(data: bytes, id: int | None = None) -> bytes:
    """One event of the AG-UI stream; without `id` exactly what the official encoder frames."""
    if id is None:
        return b"data: %b\n\n" % data
    return b"id: %d\ndata: %b\n\n" % (id, data)


def named_frame(id: int, event: str, data: bytes) -> bytes:
    """One event of the canonical stream: its seq, its type, its data."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (id, event.encode(), data)


def parse_cursor(last_event_id: str | None, after_seq: str | None) -> int:
    """The position after which to read: the larger of the two, 0 (from the start) when neither says anything.

    An empty Last-Event-ID is how a reader says that it has seen no id. Raises InvalidCursor unless each is a decimal
    number of ASCII digits up to 2^53.
    """
    header = 0 if not last_event_id else _number("Last-Event-ID", last_event_id)
    query = 0 if after_seq is None else _number("after_seq", after_seq)
    return max(header, query)


def _number(name: str, text: str) -> int:
    if _NUMBER.fullmatch(text) and (number := int(text)) <= _LARGEST:
        return number
    shown = text[:_SHOWN].encode("ascii", "backslashreplace").decode()
    raise InvalidCursor(f"{name} is not a cursor: it must be a whole number from 0 on.", details={name: shown})
