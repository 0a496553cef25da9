"""Content parts as blocks of Anthropic's API. Pure; what the API has no block for, or would refuse, is left out."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import cast

from runtime.canonical import JsonObject
from runtime.items import Content

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_SAME = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg"}
_PDF = "application/pdf"
_TEXTS = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def parts_of(content: Content, provider: str) -> list[JsonObject]:
    """The blocks of a content. Text without words is none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    made: list[JsonObject] = []
    for part in content:
        source = part.get("source")
        if part.get("type") == "text":
            text = part.get("text")
            if isinstance(text, str) and text.strip():
                made.append({"type": "text", "text": text})
        elif isinstance(source, dict):
            made += _media(part, cast("JsonObject", source), provider)
    return made


def has_file(messages: list[JsonObject]) -> bool:
    """Whether a block of these messages names an uploaded file."""
    return any(
        isinstance(one, dict) and cast("JsonObject", one).get("source", {}).get("type") == "file"
        for message in messages
        for block in message["content"]
        for one in [block, *cast("list[object]", block["content"] if isinstance(block.get("content"), list) else [])]
        if message["role"] == "user"
    )


def _media(part: JsonObject, source: JsonObject, provider: str) -> Iterator[JsonObject]:
    kind, value = source.get("type"), source.get("value")
    if part.get("type") not in ("image", "document") or not isinstance(value, str) or not value:
        return
    mime = str(source.get("mime_type") or "").partition(";")[0].strip().lower()
    if kind == "url" and (inline := _DATA_URL.fullmatch(value)):
        kind, mime, value = "data", inline[1].lower() or mime, inline[2]
    made: JsonObject | None = None
    if kind == "data":
        made = _image(mime, value) if part["type"] == "image" else _document(mime, value)
    elif kind == "url" and value.lower().startswith(("https://", "http://")):
        made = {"type": "url", "url": value}
    elif kind == "file" and source.get("provider") in (None, provider):
        made = {"type": "file", "file_id": value}
    if made is not None:
        yield {"type": part["type"], "source": made, **_title(part)}


def _image(mime: str, data: str) -> JsonObject | None:
    kind = _SAME.get(mime, mime) or "image/png"
    return {"type": "base64", "media_type": kind, "data": data} if kind in _IMAGES else None


def _document(mime: str, data: str) -> JsonObject | None:
    if mime in ("", _PDF):
        return {"type": "base64", "media_type": _PDF, "data": data}
    if not mime.startswith("text/") and mime not in _TEXTS:
        return None
    try:
        text = base64.b64decode(data).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None
    return {"type": "text", "media_type": "text/plain", "data": text} if text.strip() else None


def _title(part: JsonObject) -> JsonObject:
    metadata = part.get("metadata")
    name = cast("JsonObject", metadata).get("filename") if isinstance(metadata, dict) else None
    return {"title": name} if part["type"] == "document" and isinstance(name, str) and name else {}
