"""Content between two spellings: AG-UI's parts (`mimeType`) and the runtime's (`mime_type`, see `runtime.items`).

Pure. It also reads the binary part that AG-UI 1.0 retired. Content is expected to be checked already.
"""

from __future__ import annotations

from typing import cast

from agui_bridge.shapes import content_in_order
from runtime.canonical import Json, JsonObject
from runtime.items import Content

_MEDIA = frozenset({"image", "audio", "video"})


def content_in(content: Json) -> Content:
    """The runtime's content of AG-UI's; the parts are new, what is opaque in them is shared."""
    if isinstance(content, str):
        return content
    return [_renamed(part, "mimeType", "mime_type") for part in cast("list[JsonObject]", content)]


def content_out(content: Content) -> Json:
    """AG-UI's content of the runtime's, members in the official order and without nulls."""
    if isinstance(content, str):
        return content
    return content_in_order([_renamed(part, "mime_type", "mimeType") for part in content])


def from_binary(part: JsonObject) -> JsonObject | None:
    """The part of today that a retired `{type: "binary", mimeType, data | url, filename?}` stands for.

    None when it names neither data nor a url (an id alone means something only to the server that issued it), or no
    media type. A file name is kept in the metadata.
    """
    mime_type = part.get("mimeType")
    if not isinstance(mime_type, str) or "/" not in mime_type:
        return None
    family = mime_type.partition("/")[0].strip().lower()
    for kind in ("data", "url"):
        value = part.get(kind)
        if isinstance(value, str) and value:
            break
    else:
        return None
    translated: JsonObject = {
        "type": family if family in _MEDIA else "document",
        "source": {"type": kind, "value": value, "mimeType": mime_type},
    }
    filename = part.get("filename")
    if isinstance(filename, str):
        translated["metadata"] = {"filename": filename}
    return translated


def _renamed(part: JsonObject, old: str, new: str) -> JsonObject:
    source = part.get("source")
    if source is None:
        return dict(part)
    return {**part, "source": {new if name == old else name: value for name, value in source.items()}}
