"""Media in content parts: where their bytes are, and what they say of themselves. Pure.

A source of the kind `blob` stands in stored content in the place of bytes that were kept once, under their digest:
`{"type": "blob", "id", "digest", "mime_type", "size"}`. `id` names the medium in the store (`journal.media`), and is
made of the thread and the digest, so that the same picture is the same medium however often it is restated.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from runtime.canonical import Json, JsonObject, digest_of

Parts: TypeAlias = "str | list[JsonObject]"
"""A content: see `items`."""

BLOB: Final = "blob"
INLINE_BYTES: Final = 64 * 1024
"""Media up to this size stay where they stand."""
MOST_TEXT: Final = 200_000
"""How many characters of a document a model is told."""

_DATA_URL: Final = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),(.*)", re.DOTALL | re.IGNORECASE)
_PLAIN: Final = str.maketrans("-_", "+/", " \t\r\n\f")
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,127}/[\w.+-]{1,127}", re.ASCII)
_TEXTS: Final = frozenset(
    {
        "application/json",
        "application/ld+json",
        "application/x-ndjson",
        "application/jsonl",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
        "application/javascript",
        "application/x-javascript",
        "application/typescript",
        "application/x-sh",
        "application/x-httpd-php",
        "application/csv",
        "image/svg+xml",
    }
)
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


@dataclass(frozen=True, slots=True)
class Inline:
    """Bytes that stand in a content part, with their media type, which may be empty."""

    data: bytes
    mime_type: str


def inline_of(source: JsonObject) -> Inline | None:
    """The bytes that a source of the kind `data`, or a `data:` URL, holds; None if it holds none, or no base64."""
    kind, value = source.get("type"), source.get("value")
    if not isinstance(value, str):
        return None
    mime_type = str(source.get("mime_type") or "")
    if kind == "url" and (match := _DATA_URL.fullmatch(value)) and match[2].lower().endswith(";base64"):
        kind, mime_type, value = "data", match[1] or mime_type, match[3]
    data = decoded(value) if kind == "data" else None
    return None if data is None else Inline(data, mime_type)


def decoded(value: str) -> bytes | None:
    """The bytes of a base64 text, with or without padding and line ends, in the alphabet for URLs too."""
    text = value.translate(_PLAIN).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def encoded(data: bytes) -> str:
    """Bytes as base64."""
    return base64.b64encode(data).decode("ascii")


def data_source(data: bytes, mime_type: str) -> JsonObject:
    """The source of a part that holds these bytes."""
    return {"type": "data", "value": encoded(data), "mime_type": mime_type}


def blob_source(id_: str, digest: str, mime_type: str, size: int) -> JsonObject:
    """The source of a part whose bytes are kept."""
    return {"type": BLOB, "id": id_, "digest": digest, "mime_type": mime_type, "size": size}


def medium_id(thread_id: str, digest: str, given_id: str = "") -> str:
    """The id of the medium that names these bytes in this thread; `given_id` is how its owner referred to it."""
    return f"med_{digest_of(' '.join((thread_id, digest, given_id)).encode())[:32]}"


def source_of(part: JsonObject) -> JsonObject | None:
    """The source of a media part; None for text."""
    source = part.get("source")
    return cast("JsonObject", source) if isinstance(source, dict) else None


def blobs_in(content: Parts) -> Iterator[JsonObject]:
    """The parts of a content whose bytes are kept."""
    if not isinstance(content, str):
        yield from (part for part in content if (source_of(part) or {}).get("type") == BLOB)


def with_sources(content: Parts, other: Callable[[JsonObject], JsonObject | None]) -> Parts:
    """The content with other sources: `other` is asked of the source of each media part; None leaves it. What is not
    changed stays the same object."""
    if isinstance(content, str):
        return content
    made = [(part, other(source) if (source := source_of(part)) is not None else None) for part in content]
    if all(source is None for _, source in made):
        return content
    return [part if source is None else {**part, "source": source} for part, source in made]


def same_source(source: Json) -> Json:
    """What counts of a source when two contents are compared: the digest of its bytes, where it is known."""
    if not isinstance(source, dict):
        return source
    known = cast("JsonObject", source)
    if known.get("type") == BLOB:
        return {"digest": known.get("digest")}
    inline = inline_of(known)
    return known if inline is None else {"digest": digest_of(inline.data)}


# --- what they say of themselves ----------------------------------------------------------------------------------


def media_type_of(mime_type: str, beginning: bytes = b"") -> str:
    """A media type without parameters, in small letters; "" for what is none. What the bytes begin with is trusted more
    than what a client says of them: providers refuse what is named wrongly, and with it the whole history."""
    if found := next((kind for mark, kind in _BEGINNINGS if beginning.startswith(mark)), None):
        return found
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    said = mime_type.partition(";")[0].strip().lower()
    return said if _MEDIA_TYPE.fullmatch(said) else ""


def kind_of(media_type: str) -> str:
    """The kind of content part in which media of this type are given."""
    family = media_type.partition("/")[0]
    return family if family in ("image", "audio", "video") and media_type != "image/svg+xml" else "document"


def name_of(part: JsonObject) -> str:
    """The file name that a client gave with a part; "" if it gave none."""
    metadata = part.get("metadata")
    name = cast("JsonObject", metadata).get("filename") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def text_in(media_type: str, data: bytes) -> str | None:
    """The text of a document that is text already; None for every other one."""
    if not (media_type.startswith("text/") or media_type in _TEXTS or media_type.endswith(("+json", "+xml"))):
        return None
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = data.decode(encoding, "replace")
    return text if text.strip() else None


def labelled(text: str, name: str, media_type: str) -> str:
    """The text of a document as a model is told it, with where it begins and ends."""
    title = f"[Text of the document {name or 'without a name'} ({media_type})]"
    cut = f"\n[Only the first {MOST_TEXT} of {len(text)} characters are shown.]" if len(text) > MOST_TEXT else ""
    return f"{title}\n{text[:MOST_TEXT]}{cut}\n[End of the document]"
