"""What a message of Anthropic's API says, one after the other: text, thoughts and what is kept between them.

Pure. Whatever begins ends what was open before it; a thought that something interrupts is no longer what its
signature covers.
"""

from __future__ import annotations

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.dialects.anthropic_blocks import CallBlock, ThinkingBlock
from runtime.dialects.think import Piece, ThinkTags


class Speech:
    """The samples of one message, in order. With `tags`, thinking in tags is parted from the text."""

    def __init__(self, tags: ThinkTags | None) -> None:
        self.spoke = False
        """Whether any text was given out."""
        self._tags = tags
        self._thinking: ThinkingBlock | ThinkTags | None = None  # whose thought is open

    def say(self, text: str, out: list[s.Sample]) -> None:
        """More of the visible text."""
        if not text:
            return
        if self._tags is not None:
            self._partition(self._tags.feed(text), out)
        else:
            self._text(text, out)

    def think(self, whose: ThinkingBlock, text: str, out: list[s.Sample]) -> None:
        """More of a thought."""
        if text:
            if self._thinking is not whose:
                self.end(out)
                self._thinking = whose
            out.append(s.ReasoningDelta(text))

    def end_thought(self, thought: ThinkingBlock, out: list[s.Sample]) -> None:
        """The thought is over. It counts if it said something, or if it is signed."""
        signature = None if thought.told else thought.signature or None
        thought.told = True
        if self._thinking is not thought:
            if signature is None:
                return
            self.end(out)
        self._thinking = None
        out.append(s.ReasoningDone(signature))

    def call(self, call: CallBlock, text: str, out: list[s.Sample]) -> None:
        """A call begins, or more of its arguments comes."""
        if not text or self._thinking is not None:
            self.end(out)
        out.append(s.ToolCallDelta(call.key, call.name, text, call.call_id))

    def keep(self, opaque: JsonObject | None, encrypted: str | None, out: list[s.Sample]) -> None:
        """What is only kept stands here."""
        if opaque is not None or encrypted is not None:
            self.end(out)
            out.append(s.ReasoningDone(encrypted_value=encrypted, opaque=opaque))

    def end(self, out: list[s.Sample]) -> None:
        """Something else begins than text."""
        if self._tags is not None:
            self._partition(self._tags.finish(), out)
        self._end_open(out)

    def _partition(self, pieces: list[Piece], out: list[s.Sample]) -> None:
        for kind, piece in pieces:
            if kind == "text":
                self._text(piece, out)
                continue
            if self._thinking is not self._tags:
                self._end_open(out)
                self._thinking = self._tags
            out.append(s.ReasoningDelta(piece))

    def _text(self, text: str, out: list[s.Sample]) -> None:
        if self._thinking is not None:
            self._end_open(out)
        self.spoke = True
        out.append(s.TextDelta(text))

    def _end_open(self, out: list[s.Sample]) -> None:
        if isinstance(self._thinking, ThinkingBlock):
            self.end_thought(self._thinking, out)
        elif self._thinking is not None:
            self._thinking = None
            out.append(s.ReasoningDone())
