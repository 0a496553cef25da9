"""Joins the halves of a character that a provider cut between two deltas.

A character beyond the basic plane is two halves in JSON escapes (`\\ud83d\\ude00`); some servers put a border between
them. Pure.
"""

from __future__ import annotations

from runtime.canonical import clean_text


class Halves:
    """One stream of text. A half without its other half becomes U+FFFD."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first = ""

    def feed(self, text: str) -> str:
        """The text that is whole so far; a first half at the end is held back."""
        if text.isascii() and not self._first:
            return text
        if not text:
            return ""
        text, self._first = self._first + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._first = text[:-1], text[-1]
        return clean_text(text)

    def finish(self) -> str:
        """What is left: U+FFFD for a first half that stayed alone, else nothing."""
        lonely, self._first = self._first, ""
        return "\ufffd" if lonely else ""
