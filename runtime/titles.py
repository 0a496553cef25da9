"""What a session is called as long as nobody has given it a title: the first words that were said in it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from runtime import events as e
from runtime.canonical import Json, clean_text
from runtime.items import text_of

LONGEST: Final = 200
"""How many characters any title may have."""

MOST: Final = 80
"""How many characters such a title has at most."""


def first_words(facts: Iterable[e.Event]) -> str | None:
    """The title that these first facts of a run give to a session without one; None if no user says anything."""
    for fact in facts:
        for content in _said(fact):
            if words := one_line(text_of(content)):  # a picture alone is no title
                return words
    return None


def one_line(text: str, most: int = MOST) -> str:
    """The text in one line of at most so many characters, cut behind a word; "" if there is nothing to be read."""
    line = " ".join(_printable(clean_text(text[: most * 20])).split())
    if len(line) <= most:
        return line
    head = line[: most - 1]
    if line[most - 1] != " " and " " in head[most // 2 :]:
        head = head.rpartition(" ")[0]
    return f"{head.rstrip()}…"


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _said(fact: e.Event) -> Iterable[Json]:
    match fact:
        case e.MessageCompleted(role="user", runtime_role=None):
            return [fact.content]
        case e.HistorySeeded():
            users = (each for each in fact.messages if each["role"] == "user")
            return [each["content"] for each in users if each.get("content")]
        case _:
            return []
