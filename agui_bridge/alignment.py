"""Which of the messages that a page shows are which of ours.

Pure. Two questions are answered here: how far the user messages that a page shows agree with the thread's (that
decides whether something is new, repeated, cut or edited), and which single message of ours each shown one is (that
decides what a snapshot must restate, and under which ids).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agui_bridge.content import content_in
from agui_bridge.transcript import Line, owner_of
from runtime.canonical import JsonObject
from runtime.entries import Said
from runtime.items import same_words
from runtime.thread import Thread


@dataclass(frozen=True, slots=True)
class UserAlignment:
    """How the shown user messages agree with those of the branch, from the first shown known one on.

    `stored` are those of the branch, `agreed` is how many pairs are equal from the start. `matched` is False when
    nothing that is shown is known.
    """

    shown: list[JsonObject]
    stored: list[Said]
    agreed: int
    matched: bool

    @property
    def rest(self) -> list[JsonObject]:
        """The shown messages behind the agreed ones."""
        return self.shown[self.agreed :]

    @property
    def continues(self) -> bool:
        """Whether everything of the branch is shown, unchanged: the rest is new."""
        return self.agreed == len(self.stored)

    @property
    def is_cut(self) -> bool:
        """Whether the branch goes on behind everything shown."""
        return self.agreed == len(self.shown) < len(self.stored)


def align_users(shown: Sequence[JsonObject], thread: Thread) -> UserAlignment:
    """Align the user messages among `shown`: by id, or, if none is known and an assistant message is restated, by
    what they say, from the thread's start.

    A window may begin with an answer of ours: then what stands behind that answer is what it is held against.
    """
    users = [message for message in shown if message["role"] == "user"]
    start = _window(shown, thread)
    if start is not None or any(message["id"] in thread.user_ids for message in users):
        stored = thread.users(start or 0)
        agreed = _agreed(users, stored, by_id=True)
    elif users and any(message["role"] == "assistant" for message in shown):
        stored = thread.users()
        agreed = _agreed(users, stored, by_id=False)
    else:
        return UserAlignment(users, [], 0, matched=False)
    return UserAlignment(users, stored, agreed, matched=True)


def _window(shown: Sequence[JsonObject], thread: Thread) -> int | None:
    """The place in the branch where what is shown begins: at a user message that we know, or at an answer of ours with
    no user message before it."""
    places = {entry.id: index for index, entry in enumerate(thread.entries)}
    leading = True
    for message in shown:
        if message["role"] == "user":
            leading = False
            if message["id"] in places:
                return places[message["id"]]
        elif leading and owner_of(message["id"]) in places:
            return places[owner_of(message["id"])]
    return None


def _agreed(users: list[JsonObject], stored: list[Said], *, by_id: bool) -> int:
    count = 0
    for message, said in zip(users, stored, strict=False):
        if (by_id and message["id"] != said.id) or same_words(content_in(message["content"])) != said.words:
            break
        count += 1
    return count


def match_lines(shown: Sequence[JsonObject], lines: Sequence[Line]) -> list[int | None]:
    """For each shown message the index of the line that it is, or None.

    By id; else by content within the same turn: a client may have given its own ids.
    """
    by_id = {line.id: index for index, line in enumerate(lines)}
    matches: list[int | None] = []
    taken: set[int] = set()
    last = -1
    for message in shown:
        index = by_id.get(message["id"])
        if index is None or lines[index].role != message["role"]:
            index = _same_content(message, lines, last + 1, taken)
        matches.append(index)
        if index is not None:
            taken.add(index)
            last = index
    return matches


def _same_content(message: JsonObject, lines: Sequence[Line], start: int, taken: set[int]) -> int | None:
    for index in range(start, len(lines)):
        line = lines[index]
        if line.role == message["role"] and index not in taken and says_the_same(message, line.message):
            return index
        if line.role == "user":
            return None
    return None


def says_the_same(shown: JsonObject, ours: JsonObject) -> bool:
    """Whether two messages of one role have the same content; ids and metadata do not count."""
    if shown.get("toolCallId") != ours.get("toolCallId"):
        return False
    if shown["role"] == "user":
        return same_words(content_in(shown["content"])) == same_words(content_in(ours["content"]))
    return (shown.get("content") or "") == (ours.get("content") or "") and _calls(shown) == _calls(ours)


def _calls(message: JsonObject) -> list[tuple[str, str]]:
    calls: list[JsonObject] = message.get("toolCalls") or []
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
