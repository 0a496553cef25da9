"""The content blocks of one Anthropic response while they are streamed.

Pure. Text, thinking and calls have classes of their own; a block of any other kind (server tools and their results,
fallbacks, compactions, what is yet to be invented) is kept whole, to go back as it came.
"""

from __future__ import annotations

from typing import cast

import orjson

from runtime.canonical import Json, JsonObject, clean, clean_text
from runtime.dialects.call_fragments import argument_text
from runtime.dialects.surrogates import Halves

TEXT = "text"
THINKING = "thinking"
REDACTED = "redacted_thinking"
TOOL_USE = "tool_use"
FALLBACK = "fallback"

_CALL_MEMBERS = frozenset({"type", "id", "name", "input"})
_COMPACTED = ("content", "encrypted_content")


class Block:
    """A content block. `key` is our own name for it, unique in the response."""

    __slots__ = ("done", "fields", "halves", "key", "kind", "pieces", "repeats")

    def __init__(self, key: str, kind: str, fields: JsonObject) -> None:
        self.key = key
        self.kind = kind
        self.fields = fields
        self.done = False
        self.repeats = False
        """Whether it says a finished call once more: then nothing of it counts."""
        self.pieces: list[str] = []
        self.halves = Halves()

    def feed(self, piece: str) -> str:
        """More of its text or arguments, as far as the characters are whole."""
        text = self.halves.feed(piece)
        if text:
            self.pieces.append(text)
        return text

    def rest(self) -> str:
        """What was held back: nothing follows."""
        lonely = self.halves.finish()
        if lonely:
            self.pieces.append(lonely)
        return lonely

    @property
    def text(self) -> str:
        """All that it said."""
        return "".join(self.pieces)


class TextBlock(Block):
    """Visible text, perhaps with the sources that it cites."""

    __slots__ = ("citations",)

    def __init__(self, key: str, fields: JsonObject) -> None:
        super().__init__(key, TEXT, fields)
        given = fields.get("citations")
        self.citations: list[Json] = list(cast("list[Json]", given)) if isinstance(given, list) else []

    @property
    def opaque(self) -> JsonObject | None:
        """The block as the provider wants it back; None if its text says it all."""
        if not self.citations or not self.pieces:
            return None
        return clean({"type": TEXT, "text": self.text, "citations": self.citations})


class ThinkingBlock(Block):
    """A thought. `signature` is what the provider checks it by."""

    __slots__ = ("signature", "told")

    def __init__(self, key: str, fields: JsonObject) -> None:
        super().__init__(key, THINKING, fields)
        self.signature = text_in(fields, "signature")
        self.told = False
        """Whether its end was given out: from then on its signature covers nothing."""

    def sign(self, piece: str) -> None:
        """A piece of the signature, or all that is known of it once more."""
        said = self.signature
        self.signature = piece if piece.startswith(said) else said + piece


class CallBlock(Block):
    """A call of one of the request's tools."""

    __slots__ = ("call_id", "declined", "name")

    def __init__(self, key: str, fields: JsonObject) -> None:
        super().__init__(key, TOOL_USE, fields)
        self.name = text_in(fields, "name")
        self.call_id = text_in(fields, "id")
        self.declined = False
        """Whether the model that wrote it gave up its turn to another one."""

    @property
    def arguments(self) -> str:
        """The arguments as they are committed: the deltas, else what the block began with."""
        text = self.text
        if not text.strip():
            text = clean_text(argument_text(self.fields.get("input")))
        return "{}" if text.strip() in ("", "null") else text

    @property
    def says_nothing(self) -> bool:
        """Whether there is nothing by which it could be a call."""
        return not (self.name or self.call_id or self.pieces)

    @property
    def opaque(self) -> JsonObject | None:
        """What the provider wants back with the call."""
        extra = {name: value for name, value in self.fields.items() if name not in _CALL_MEMBERS and value is not None}
        return clean(extra) if extra else None


class KeptBlock(Block):
    """A block that is kept as it came."""

    __slots__ = ("broken",)

    def __init__(self, key: str, fields: JsonObject) -> None:
        super().__init__(key, text_in(fields, "type"), dict(fields))
        self.broken = False

    def absorb(self, kind: str, delta: JsonObject) -> None:
        """A delta that is no input. Half a block would be refused, so one that is not understood spoils the block."""
        if kind == "compaction_delta" and self.kind == "compaction":
            self.fields.update({name: delta[name] for name in _COMPACTED if name in delta})
        else:
            self.broken = True

    @property
    def is_whole(self) -> bool:
        """Whether its input is what JSON allows."""
        return not self.pieces or _object_of(self.text) is not None

    @property
    def opaque(self) -> JsonObject | None:
        """The block as it goes back; None if it is nothing that could."""
        if self.broken or not self.kind:
            return None
        if self.text.strip():
            parsed = _object_of(self.text)
            return clean({**self.fields, "input": {"INVALID_JSON": self.text} if parsed is None else parsed})
        return clean(self.fields)


def block_of(key: str, fields: JsonObject) -> Block:
    """The block that begins with these members."""
    match fields.get("type"):
        case "text":
            return TextBlock(key, fields)
        case "thinking":
            return ThinkingBlock(key, fields)
        case "redacted_thinking":
            return Block(key, REDACTED, fields)
        case "tool_use":
            return CallBlock(key, fields)
        case _:
            return KeptBlock(key, fields)


def text_in(fields: JsonObject, name: str) -> str:
    """A member's text, without halves of characters; nothing if it is no text."""
    value = fields.get(name)
    return clean_text(value) if isinstance(value, str) else ""


def _object_of(text: str) -> JsonObject | None:
    try:
        value = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None
