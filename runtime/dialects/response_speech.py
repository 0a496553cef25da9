"""Who speaks in a response: text, refusals and thoughts of its items, each told in one piece.

Pure. A thought is over when anything else begins. A message that is written while another one is still open waits for
its end; one whose server never announced it does not hold up anybody.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime import samples as s
from runtime.canonical import JsonObject, clean
from runtime.dialects.response_items import REASONING, Item, text_in, texts_of
from runtime.dialects.think import Piece

SUMMARY = "summary"

_NOT_KEPT = frozenset({"type", "encrypted_content", "content", "status"})


class Speech:
    """What the items of one response say; `items` are those known, in the order in which they came."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._speaker: Item | None = None
        self._thinking: tuple[str, str, int] | None = None  # whose thought is open: item, kind, place

    def piece(self, item: Item, kind: str, at: int, piece: str, out: list[s.Sample]) -> None:
        """A piece of an item's text."""
        if text := item.piece(kind, at).feed(piece):
            self._say(item, kind, at, text, out)

    def whole(self, item: Item, kind: str, at: int, text: str, out: list[s.Sample]) -> None:
        """A text is said as a whole: give out what is missing of it."""
        if not text:
            return
        if kind in (REASONING, SUMMARY) and (kind, at) not in item.words and text in item.said:
            return  # the same thought in another member
        if rest := item.piece(kind, at).rest_of(text):
            self._say(item, kind, at, rest, out)

    def finish(self, item: Item, fields: JsonObject, out: list[s.Sample]) -> None:
        """The item is said as a whole, and over."""
        for kind, at, text in texts_of(fields):
            self.whole(item, kind, at, text, out)
        for (kind, at), words in item.words.items():
            if lonely := words.finish():
                self._say(item, kind, at, lonely, out)
        if not item.held:
            self._end_tags(item, out)
        if self._speaker is item:
            self._next_speaker(out)

    def keep(self, item: Item, fields: JsonObject, out: list[s.Sample]) -> None:
        """What goes back of a thought: it stands with the last part of it, if that is still open."""
        encrypted = text_in(fields, "encrypted_content") or None
        if self._thinking is not None and (self._thinking[0] != item.key or encrypted is None):
            self.end_thought(out)
        if encrypted is not None:
            kept = {name: value for name, value in fields.items() if name not in _NOT_KEPT and value is not None}
            self._thinking = None
            out.append(s.ReasoningDone(None, encrypted, {"type": REASONING, **clean(kept)}))

    def end_thought(self, out: list[s.Sample]) -> None:
        """Something else begins: the thought is complete."""
        if self._thinking is not None:
            self._thinking = None
            out.append(s.ReasoningDone())

    # --- one after the other --------------------------------------------------------------------------------------

    def _say(self, item: Item, kind: str, at: int, text: str, out: list[s.Sample]) -> None:
        if kind in (REASONING, SUMMARY):
            self._think((item.key, kind, at), text, out)
            return
        speaker = self._speaker
        if speaker is not item:
            if speaker is not None and speaker.announced and not speaker.done:
                item.held.append((kind, at, text))
                return
            self._speaker = item
        if kind == "refusal":
            self.end_thought(out)
            item.spoke = True
            out.append(s.RefusalDelta(text))
        elif item.tags is None:
            self._text(item, text, out)
        else:
            self._partition(item, item.tags.feed(text), out)

    def _next_speaker(self, out: list[s.Sample]) -> None:
        """A message is over: the next ones say what was held back for them, up to one that goes on."""
        self._speaker = None
        for item in self._items:
            if item.held:
                held, item.held = item.held, []
                for kind, at, text in held:
                    self._say(item, kind, at, text, out)
                if not item.done:
                    return
                self._end_tags(item, out)
                self._speaker = None

    def _end_tags(self, item: Item, out: list[s.Sample]) -> None:
        if item.tags is not None:
            self._partition(item, item.tags.finish(), out)

    def _partition(self, item: Item, pieces: list[Piece], out: list[s.Sample]) -> None:
        for kind, piece in pieces:
            if kind == "text":
                self._text(item, piece, out)
            else:
                self._think((item.key, "tag", 0), piece, out)

    def _text(self, item: Item, text: str, out: list[s.Sample]) -> None:
        if self._thinking is not None:
            self.end_thought(out)
        item.spoke = True
        out.append(s.TextDelta(text))

    def _think(self, whose: tuple[str, str, int], text: str, out: list[s.Sample]) -> None:
        if self._thinking != whose:
            self.end_thought(out)
            self._thinking = whose
        out.append(s.ReasoningDelta(text))
