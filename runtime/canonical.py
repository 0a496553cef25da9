"""JSON as this project keeps it: one canonical text, one digest, one way to make a value safe to store.

Pure. Everything that is compared, stored by digest or sent goes through here, so that a value has the same bytes
in the journal, in a checksum and on the wire.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import orjson

Json: TypeAlias = Any
"""Any JSON value: None, bool, int, float, str, a list or a dict with string keys."""

JsonObject: TypeAlias = dict[str, Any]

_SAFE_INTEGER = 2**63 - 1


def canonical(value: Json) -> bytes:
    """The one JSON text of a value: keys sorted, no spaces, UTF-8. Equal values have equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest(value: Json) -> str:
    """SHA-256 of the canonical text, as 64 hex digits."""
    return digest_of(canonical(value))


def digest_of(data: bytes) -> str:
    """SHA-256 of bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def clean(value: object) -> Json:
    """The nearest JSON value of anything a tool or a client may hand over.

    NaN and infinities become null, a lone surrogate becomes U+FFFD, bytes are decoded as UTF-8, integers beyond
    64 bits and anything unknown become text, keys become strings, pydantic models and dataclasses become objects.
    Raises RecursionError for a value that stands within itself or nests too deep, and what a foreign `str()` raises.
    """
    try:
        return orjson.loads(orjson.dumps(value, default=_jsonable, option=orjson.OPT_NON_STR_KEYS))
    except (TypeError, orjson.JSONEncodeError):
        return _clean_slowly(value)


def clean_text(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD, so that it can be encoded as UTF-8."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _jsonable(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, (set, frozenset)):
        return sorted(cast("set[Any]", value), key=repr)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return list(cast("Sequence[Any]", value))
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return str(value)


def _clean_slowly(value: object) -> Json:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= _SAFE_INTEGER else str(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return orjson.loads(orjson.dumps(value))
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {clean_text(str(key)): _clean_slowly(item) for key, item in pairs}
    if isinstance(value, (list, tuple)):
        return [_clean_slowly(item) for item in cast("Sequence[object]", value)]
    try:
        return _clean_slowly(orjson.loads(orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS)))
    except (TypeError, orjson.JSONEncodeError):
        return _clean_slowly(_jsonable(value))
