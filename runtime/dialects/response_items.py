"""The output items of one response while they are streamed, and how the same item is known again.

Pure. An item is said several times: announced, in deltas, done, and once more in the list at the end. Each time it
may have another id, say less or more, or be missing. What was given out stays; only what is missing follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import orjson

from runtime.canonical import Json, JsonObject, clean, clean_text
from runtime.dialects.call_fragments import argument_text
from runtime.dialects.surrogates import Halves
from runtime.dialects.think import ThinkTags

MESSAGE = "message"
REASONING = "reasoning"
FUNCTION_CALL = "function_call"
CUSTOM_CALL = "custom_tool_call"

APPROVAL = "mcp_approval_request"
"""A call that the provider performs, once somebody has said that it may."""

CALLS = frozenset({FUNCTION_CALL, CUSTOM_CALL, APPROVAL})
SPOKEN = frozenset({MESSAGE, REASONING})

_CALL_MEMBERS = frozenset({"type", "id", "call_id", "name", "arguments", "input", "status"})
_PARTS = {"output_text": ("text", "text"), "text": ("text", "text"), "refusal": ("refusal", "refusal")}
_OPENING = '{"input":"'


class Words:
    """A text that comes in pieces and is said again as a whole, perhaps several times."""

    __slots__ = ("_halves", "_pieces")

    def __init__(self) -> None:
        self._halves = Halves()
        self._pieces: list[str] = []

    def feed(self, piece: str) -> str:
        """The next piece, as far as its characters are whole."""
        text = self._halves.feed(piece)
        if text:
            self._pieces.append(text)
        return text

    @property
    def text(self) -> str:
        """What was given out so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def rest_of(self, whole: str) -> str:
        """What the whole says beyond the pieces; nothing if it says something else."""
        said = self.text
        if len(whole) <= len(said) or not whole.startswith(said):
            return ""
        self._halves.finish()
        rest = whole[len(said) :]
        self._pieces.append(rest)
        return rest

    def finish(self) -> str:
        """What was held back: nothing follows."""
        lonely = self._halves.finish()
        if lonely:
            self._pieces.append(lonely)
        return lonely


class Item:
    """One output item. `key` is our own name for it, unique in the response."""

    def __init__(self, key: str, kind: str, index: int | None) -> None:
        self.key = key
        self.kind = kind
        self.index = index
        self.announced = False
        self.id = ""
        self.done = False
        self.fields: JsonObject = {}
        """All that was said of it; the last word counts."""
        self.words: dict[tuple[str, int], Words] = {}
        self.phase: str | None = None
        self.spoke = False
        """Whether text or a refusal of it was given out."""
        self.held: list[tuple[str, int, str]] = []
        self.tags: ThinkTags | None = None

    def describe(self, fields: JsonObject) -> None:
        """What `fields` say of the item besides its texts."""
        self.fields = {**self.fields, **fields}
        self.id = text_in(fields, "id") or self.id
        self.phase = text_in(fields, "phase") or self.phase

    def piece(self, kind: str, at: int) -> Words:
        """The text of this kind at this place in the item."""
        words = self.words.get((kind, at))
        if words is None:
            words = self.words[(kind, at)] = Words()
        return words

    @property
    def said(self) -> str:
        """All that was given out of it, of whatever kind."""
        return "".join(words.text for words in self.words.values())

    def is_said_by(self, fields: JsonObject, *, exactly: bool) -> bool:
        """Whether `fields` may say this item again: at its own place, or (`exactly`) anywhere."""
        if fields.get("id") and fields["id"] == self.id:
            return True
        if self.kind not in SPOKEN:
            return not exactly
        if not exactly and (not self.done or self.kind == REASONING):
            return True
        whole, said = whole_text(fields), self.said
        if not self.done:
            return whole.startswith(said)
        if whole in (said, whole_text(self.fields)):
            return True
        return not exactly and (whole.startswith(said) or said.startswith(whole))

    @property
    def order(self) -> int:
        """Where it stands in the response, as far as that is known."""
        return self.index if self.index is not None else int(self.key)


class CallItem(Item):
    """A function call, or the call of a custom tool, whose free text is the member `input` of its arguments."""

    def __init__(self, key: str, kind: str, index: int | None) -> None:
        super().__init__(key, kind, index)
        self.name = ""
        self.call_id = ""
        self.shown = False
        self.cut = False
        self._held: list[str] = []
        self._flowing = False
        self._words = Words()
        self._whole: str | None = None  # the arguments, where they are not what the deltas said

    def describe(self, fields: JsonObject) -> None:
        """What `fields` say of the call besides its arguments; the first name and id stay."""
        super().describe(fields)
        self.name = self.name or text_in(fields, "name")
        self.call_id = self.call_id or text_in(fields, "id" if self.kind == APPROVAL else "call_id")
        self.cut = self.cut or fields.get("status") == "incomplete"

    def feed(self, piece: str) -> None:
        """More of the arguments."""
        if text := self._words.feed(piece):
            self._held.append(text)

    def absorb(self, whole: str) -> None:
        """The arguments once more, or for the first time. They count unless the deltas made better sense."""
        if rest := self._words.rest_of(whole):
            self._held.append(rest)
            self._whole = None
        elif self.kind == CUSTOM_CALL:
            self._whole = whole or self._whole
        elif whole != self._words.text:
            ours, theirs = _object_of(self._words.text), _object_of(whole)
            if theirs is not None and (ours is None or (theirs and theirs != ours)):
                self._whole = whole

    def finish(self) -> None:
        """Nothing follows."""
        if lonely := self._words.finish():
            self._held.append(lonely)

    def take(self) -> str | None:
        """The argument text that may be given out now; None if there is nothing to say of the call yet."""
        if not self.name:
            return None
        text = "".join(self._held)
        if not self._flowing and "null".startswith(text.strip()) and self.kind == FUNCTION_CALL:
            text = ""  # nothing and `null` stand for `{}`: they are not shown as if they were arguments
        elif text:
            self._held.clear()
            if self.kind == CUSTOM_CALL:
                text = ("" if self._flowing else _OPENING) + orjson.dumps(text)[1:-1].decode()
            self._flowing = True
        if not text and self.shown:
            return None
        self.shown = True
        return text

    @property
    def arguments(self) -> str:
        """The arguments as they are committed."""
        text = self._whole if self._whole is not None else self._words.text
        if self.kind == CUSTOM_CALL:
            return orjson.dumps({"input": text}).decode()
        return "{}" if text.strip() in ("", "null") else text

    @property
    def says_nothing(self) -> bool:
        """Whether there is nothing by which it could be a call."""
        return not (self.name or self.call_id or self._words.text)

    @property
    def opaque(self) -> JsonObject | None:
        """What the provider wants back with the call."""
        extra = {n: v for n, v in self.fields.items() if n not in _CALL_MEMBERS and v is not None}
        if self.kind == FUNCTION_CALL and not extra:
            return None
        if self.kind == APPROVAL:
            extra["id"] = self.call_id  # whatever the call is named here, the answer names the request
        return {"type": self.kind, **clean(extra)}

    def is_said_by(self, fields: JsonObject, *, exactly: bool) -> bool:
        """Whether `fields` may say this call again: calls have an id that is theirs."""
        call_id = text_in(fields, "call_id")
        if call_id and self.call_id:
            return call_id == self.call_id
        if fields.get("id") and fields["id"] == self.id:
            return True
        name, whole = text_in(fields, "name"), arguments_in(fields)
        if self.name and name and name != self.name:
            return False
        if not self.done and not exactly:
            return True
        return whole == self._words.text if self.done else whole.startswith(self._words.text)


class Items:
    """The items of one response, in the order in which they came, and which of them an event means."""

    def __init__(self, *, think_tags: bool) -> None:
        self.all: list[Item] = []
        self._think_tags = think_tags
        self._at_index: dict[int, Item] = {}

    def announced(self, index: int | None, fields: JsonObject) -> Item:
        """The item that begins: a new one, unless its own deltas were quicker."""
        item = self._at_index.get(index) if index is not None else None
        if item is None or item.announced or item.done or item.kind != text_in(fields, "type"):
            item = self._open(text_in(fields, "type"), index)
        item.announced = True
        return item

    def of_delta(self, index: int | None, item_id: Json, kind: str) -> Item | None:
        """The item that a delta belongs to; None for what an item that we only keep says of itself."""
        at_index = self._at_index.get(index) if index is not None else None
        if at_index is not None and _takes(at_index, kind):
            return at_index
        for trusts_id in (True, False):
            for item in reversed(self.all):
                fits = _takes(item, kind) and not item.done and (index is None or item.index is None)
                if fits and (item.id == item_id if trusts_id else index is None):
                    return item
        if kind in CALLS and at_index is not None:
            return None
        return self._open(kind, index)

    def done(self, index: int | None, fields: JsonObject) -> Item:
        """The item that is said as a whole; a place where nothing stood is that of a new one."""
        if index is not None and index not in self._at_index:
            return self._open(text_in(fields, "type"), index)
        return self._known(index, fields) or self._open(text_in(fields, "type"), index)

    def listed(self, at: int, fields: JsonObject) -> Item:
        """The item that the list at the end has at this place, which may have shifted."""
        return self._known(at, fields) or self._open(text_in(fields, "type"), None)

    def _open(self, kind: str, index: int | None) -> Item:
        item = (CallItem if kind in CALLS else Item)(str(len(self.all)), kind, index)
        if kind == MESSAGE and self._think_tags:
            item.tags = ThinkTags()
        self.all.append(item)
        if index is not None:
            self._at_index[index] = item
        return item

    def _known(self, index: int | None, fields: JsonObject) -> Item | None:
        """The item that is said again."""
        kind, id_ = text_in(fields, "type"), text_in(fields, "id")
        at_index = self._at_index.get(index) if index is not None else None
        if at_index is not None and at_index.kind == kind and at_index.is_said_by(fields, exactly=False):
            return at_index
        others = [item for item in self.all if item.kind == kind]
        others.sort(key=lambda item: (not id_ or item.id != id_, item.done))
        return next((one for one in others if one.is_said_by(fields, exactly=index is not None)), None)


def _takes(item: Item, kind: str) -> bool:
    return item.kind in CALLS if kind in CALLS else item.kind in SPOKEN


def texts_of(fields: JsonObject) -> Iterator[tuple[str, int, str]]:
    """What an item says in text: kind, place and text. A summary's kind is `summary`."""
    kind = fields.get("type")
    content = fields.get("content")
    if isinstance(content, str):
        yield ("text" if kind == MESSAGE else REASONING), 0, clean_text(content)
    for at, part in enumerate(_list(fields.get("summary")) if kind == REASONING else []):
        yield "summary", at, part_text(part, REASONING)[1]
    for at, part in enumerate(_list(content)):
        said, text = part_text(part, str(kind))
        yield said, at, text


def whole_text(fields: JsonObject) -> str:
    """All that an item says in text."""
    return "".join(text for _, _, text in texts_of(fields))


def part_text(part: Json, kind: str) -> tuple[str, str]:
    """Kind and text of a content part of an item of this kind."""
    if not isinstance(part, dict):
        return REASONING if kind == REASONING else "text", ""
    fields = cast("JsonObject", part)
    said, member = _PARTS.get(str(fields.get("type")), (REASONING, "text"))
    return REASONING if kind == REASONING else said, text_in(fields, member)


def arguments_in(fields: JsonObject) -> str:
    """The argument text of a call's item or event; a server that sends the value itself gets its JSON text."""
    value = fields.get("input") if fields.get("input") is not None else fields.get("arguments")
    return clean_text(argument_text(value))


def text_in(fields: JsonObject, name: str) -> str:
    """A member's text, without halves of characters; nothing if it is no text."""
    value = fields.get(name)
    return clean_text(value) if isinstance(value, str) else ""


def _list(value: Json) -> list[Json]:
    return cast("list[Json]", value) if isinstance(value, list) else []


def _object_of(text: str) -> JsonObject | None:
    try:
        value = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None
