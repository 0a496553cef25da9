"""Pages of lists: what a request may say of the page that it wants, and the cursor that leads to the next one. Pure.

A cursor is opaque: it is given back as it was given, and what is in it may change with any release.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Final, TypeAlias, cast

import orjson

from agui_bridge.run_input import is_id
from runtime.canonical import Json
from runtime.errors import InvalidCursor, InvalidInput
from runtime.journal.catalogue import Place

MOST: Final = 200
"""The most entries of a page."""

USUAL: Final = 50
"""How many entries a page has if the request does not say."""

_LARGEST: Final = 2**63 - 1
_NO_CURSOR: Final = "This cursor is none that this list has given."

Query: TypeAlias = Mapping[str, str]


def limit_of(query: Query) -> int:
    """How many entries are wanted. Raises InvalidInput."""
    given = query.get("limit", str(USUAL))
    if not (given.isascii() and given.isdecimal() and len(given) <= 3 and 1 <= int(given) <= MOST):
        raise InvalidInput(f"limit is a whole number from 1 to {MOST}.", details={"path": "limit"})
    return int(given)


def place_of(query: Query) -> Place | None:
    """Behind which place the page begins. Raises InvalidCursor."""
    match _decoded(query):
        case None:
            return None
        case [int(created_at), str(id_)] if type(created_at) is int and 0 <= created_at <= _LARGEST and is_id(id_):
            return Place(created_at, id_)
        case _:
            raise InvalidCursor(_NO_CURSOR, details={"path": "cursor"})


def message_of(query: Query) -> str | None:
    """Before which message the page ends. Raises InvalidCursor."""
    match _decoded(query):
        case None:
            return None
        case [str(id_)] if is_id(id_):
            return id_
        case _:
            raise InvalidCursor(_NO_CURSOR, details={"path": "cursor"})


def cursor(*place: int | str) -> str:
    """The cursor for a place."""
    return urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def _decoded(query: Query) -> list[Json] | None:
    given = query.get("cursor")
    if given is None:
        return None
    try:
        decoded = orjson.loads(urlsafe_b64decode(given.encode("ascii") + b"=" * (-len(given) % 4)))
    except (ValueError, NotBase64):
        decoded = None
    if not isinstance(decoded, list):
        raise InvalidCursor(_NO_CURSOR, details={"path": "cursor"})
    return cast("list[Json]", decoded)
