"""Thinking in tags: parts a message's text deltas into reasoning and text, over the borders of chunks.

Pure; knows no provider. The rules:

1. The tags are `<think>` and `<thinking>`, exactly so (`<think/>` is an empty block). `<THINK>`, `<thinking-mode>`
   or a tag with attributes are text.
2. A tag is special only before visible text. As soon as something other than white space and blocks was said,
   everything is text: an answer may speak of tags. So a second block behind visible text is text, tags included.
3. Within a block openings and closings are counted (any of the names), and the nested tags themselves are dropped. An
   opening within backticks is the thinking's own text; a closing always counts, so that an answer is never swallowed.
4. Blank lines at the borders of a block are dropped on both sides. Other white space stays.
5. Blocks that follow each other are one reasoning, on lines of their own.
6. A closing tag without an opening one (the server's template wrote that) is never shown: the first one in a message
   is dropped, unless it stands within backticks or an opening tag was seen before. The text before it was shown and
   stays text; with `starts_in_thinking` it is reasoning from the start, and a first opening tag is superfluous.
7. What might become a tag is held back, never more than one tag's length; `finish()` gives it out as what it was.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["text", "reasoning"]
Piece: TypeAlias = tuple[Kind, str]

_OPENING = ("<think>", "<thinking>")
_CLOSING = ("</think>", "</thinking>")
_EMPTY = ("<think/>", "<thinking/>")
_TAGS = (*_OPENING, *_CLOSING, *_EMPTY)
_TAG = re.compile("|".join(re.escape(tag) for tag in _TAGS))
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)+")
_LINE_ENDS = "\r\n"


class ThinkTags:
    """The partitioner of one message's text."""

    __slots__ = (
        "_after_block",
        "_at_border",
        "_blank",
        "_depth",
        "_held",
        "_implied",
        "_reasoned",
        "_stray",
        "_tail",
        "_ticks",
    )

    def __init__(self, *, starts_in_thinking: bool = False) -> None:
        self._depth = int(starts_in_thinking)
        self._implied = starts_in_thinking
        self._at_border = True  # nothing was given out since the message, the block or the text after it began
        self._after_block = False
        self._reasoned = False
        self._stray = not starts_in_thinking  # whether a closing tag may still be one without an opening
        self._ticks = 0
        self._held: list[str] = []  # white space of which the next character decides
        self._blank: str = ""
        self._tail = ""  # what may be the beginning of a tag

    def feed(self, text: str) -> list[Piece]:
        """What this delta says, in order; no piece is empty, neighbours differ in kind."""
        if not text:
            return []
        if not self._depth and not self._at_border and not self._tail and ("<" not in text or not self._stray):
            self._ticks += text.count("`")  # the hot case: an answer goes on
            return [("text", text)]
        data, self._tail = self._tail + text, ""
        out: list[Piece] = []
        at = 0
        for match in _TAG.finditer(data):
            self._say(data[at : match.start()], out)
            self._tag(match.group(), out)
            at = match.end()
        rest = data[at:]
        is_plain = not self._depth and not self._at_border and not self._stray
        self._tail = "" if is_plain else _possible_tag(rest)
        self._say(rest[: len(rest) - len(self._tail)], out)
        return out

    def finish(self) -> list[Piece]:
        """What was held back, because no text follows for now. The state stays: a block may go on afterwards."""
        out: list[Piece] = []
        tail, self._tail = self._tail, ""
        self._say(tail, out)
        held = "".join(self._held)
        self._held.clear()
        if held and not self._depth and not self._after_block:
            _add(out, "text", held)
        return out

    # --- what stands between tags ---------------------------------------------------------------------------------

    def _say(self, text: str, out: list[Piece]) -> None:
        if not text:
            return
        self._ticks += text.count("`")
        if self._depth:
            self._think(text, out)
        elif self._at_border:
            self._begin_text(text, out)
        else:
            _add(out, "text", text)

    def _think(self, text: str, out: list[Piece]) -> None:
        if self._at_border:
            text = self._blank + text
            self._blank = ""
            if text.isspace():  # whether it is a blank line or an indent shows with what follows
                self._blank = text
                return
            text = _without_blank_lines(text)
        body = text.rstrip(_LINE_ENDS)
        if body:
            _add(out, "reasoning", "".join([*self._held, body]))
            self._held.clear()
            self._at_border = False
            self._reasoned = True
        if not self._at_border and len(body) < len(text):
            self._held.append(text[len(body) :])

    def _begin_text(self, text: str, out: list[Piece]) -> None:
        if text.isspace():
            self._held.append(text)
            return
        whole = "".join([*self._held, text])
        self._held.clear()
        self._at_border = False
        _add(out, "text", _without_blank_lines(whole) if self._after_block else whole)

    # --- tags -----------------------------------------------------------------------------------------------------

    def _tag(self, tag: str, out: list[Piece]) -> None:
        if self._depth:
            self._tag_within(tag, out)
        elif not self._at_border:
            self._tag_in_text(tag, out)
        elif tag in _OPENING:
            self._open()
        else:  # an empty block, or the end of one whose opening the template wrote
            self._held.clear()
            self._after_block = True
            self._stray = False

    def _open(self) -> None:
        self._depth = 1
        self._blank = ""
        self._stray = False
        self._ticks = 0
        self._held = ["\n"] if self._reasoned else []

    def _tag_within(self, tag: str, out: list[Piece]) -> None:
        if tag in _CLOSING:
            self._implied = False
            self._depth -= 1
            if not self._depth:
                self._held.clear()
                self._at_border = self._after_block = True
                self._ticks = 0
        elif tag in _EMPTY or self._ticks % 2:
            self._say(tag, out)
        elif self._implied and self._at_border:
            self._implied = False
        else:
            self._depth += 1

    def _tag_in_text(self, tag: str, out: list[Piece]) -> None:
        if self._stray and tag in _CLOSING and self._ticks % 2 == 0:
            self._stray = False
            return
        if tag in _OPENING:
            self._stray = False
        _add(out, "text", tag)


def _possible_tag(text: str) -> str:
    """The end of the text that may be the beginning of a tag."""
    at = text.rfind("<")
    tail = text[at:] if at >= 0 else ""
    return tail if tail and any(tag.startswith(tail) for tag in _TAGS) else ""


def _without_blank_lines(text: str) -> str:
    match = _BLANK_LINES.match(text)
    return text[match.end() :] if match else text


def _add(out: list[Piece], kind: Kind, text: str) -> None:
    if not text:
        return
    if out and out[-1][0] == kind:
        out[-1] = (kind, out[-1][1] + text)
    else:
        out.append((kind, text))
