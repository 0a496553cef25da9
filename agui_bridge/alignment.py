"""Which of the messages that a page shows are which of ours.

Pure. Two questions are answered here: how far the user messages that a page shows agree with the thread's (that
decides whether something is new, repeated, cut or edited), and which single message of ours each shown one is (that
decides what a snapshot must restate, and under which ids).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agui_bridge.content import content_in
from agui_bridge.transcript import Line, owner_of
from runtime.canonical import JsonObject, canonical
from runtime.entries import Said, Turn
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


def align_users(shown: Sequence[JsonObject], thread: Thread, lines: Sequence[Line]) -> UserAlignment:
    """Align the user messages among `shown`: by id, or, if none is known and an assistant message of ours is restated,
    by what they say, from the thread's start. `lines` are the thread's transcript.

    A page may have ids of its own for what it showed before the first message that we know by id: if those say what
    ours before it say, they are ours.
    """
    users = [message for message in shown if message["role"] == "user"]
    branch = thread.users()
    if any(message["id"] in thread.user_ids for message in users):
        start, unnamed = _window(shown, users, thread, branch)
    elif (place := _leading_answer(shown, thread, (Turn, Said))) is not None:
        start, unnamed = place, 0
    elif users and _restates(shown, lines):
        start, unnamed = 0, len(users)
    else:
        return UserAlignment(users, [], 0, matched=False)
    stored = branch[start:]
    return UserAlignment(users, stored, _agreed(users, stored, unnamed), matched=True)


def _window(
    shown: Sequence[JsonObject], users: Sequence[JsonObject], thread: Thread, branch: Sequence[Said]
) -> tuple[int, int]:
    """Where in the branch's user messages the shown ones begin, and how many of these go by what they say.

    It is at the first user message that we know, or at an answer of ours with no user message before it.
    """
    if (place := _leading_answer(shown, thread, (Turn,))) is not None:
        return place, 0
    places = {said.id: index for index, said in enumerate(branch)}
    known = next((index for index, message in enumerate(users) if message["id"] in places), None)
    if known is None:
        return 0, 0
    place = places[users[known]["id"]]
    ours = branch[max(place - known, 0) : place]
    if known and len(ours) == known and all(map(_says, users, ours)):
        return place - known, known
    return place, 0


def _leading_answer(shown: Sequence[JsonObject], thread: Thread, kinds: tuple[type, ...]) -> int | None:
    """How many user messages stand before the answer of ours with which the shown history begins; None if it begins
    with something else."""
    places: dict[str, int] | None = None
    for message in shown:
        if message["role"] == "user":
            return None
        if message["role"] in ("assistant", "reasoning", "tool"):
            places = _answer_places(thread, kinds) if places is None else places
            for id_ in (message["id"], owner_of(message["id"])):
                if id_ in places:
                    return places[id_]
    return None


def _answer_places(thread: Thread, kinds: tuple[type, ...]) -> dict[str, int]:
    users = 0
    places: dict[str, int] = {}
    for entry in thread.entries:
        if isinstance(entry, Said) and entry.is_users:
            users += 1
        elif isinstance(entry, kinds) and (isinstance(entry, Turn) or entry.role == "assistant"):
            places[entry.id] = users
    return places


def _restates(shown: Sequence[JsonObject], lines: Sequence[Line]) -> bool:
    """Whether an answer of ours is among what is shown, whatever its id."""
    ours = {_answer(line.message) for line in lines if line.role == "assistant"}
    return any(_answer(message) in ours for message in shown if message["role"] == "assistant")


def _agreed(users: Sequence[JsonObject], stored: Sequence[Said], unnamed: int) -> int:
    """How many pairs are the same; of the first `unnamed` the ids do not count."""
    count = 0
    for message, said in zip(users, stored, strict=False):
        if (count >= unnamed and message["id"] != said.id) or not _says(message, said):
            break
        count += 1
    return count


def _says(message: JsonObject, said: Said) -> bool:
    content = message["content"]
    return content == said.content or same_words(content_in(content)) == said.words


def match_lines(shown: Sequence[JsonObject], lines: Sequence[Line]) -> list[int | None]:
    """For each shown message the index of the line that it is, or None.

    By id; else by content within the same turn: a client may have given its own ids.
    """
    by_id = {line.id: index for index, line in enumerate(lines)}
    matches: list[int | None] = []
    for message in shown:
        index = by_id.get(message["id"])
        matches.append(index if index is not None and lines[index].role == message["role"] else None)
    _match_users_under_other_ids(shown, lines, matches)
    taken = {index for index in matches if index is not None}
    last = -1
    for place, index in enumerate(matches):
        if index is None:
            index = matches[place] = _same_content(shown[place], lines, last + 1, taken)
        if index is not None:
            taken.add(index)
            last = index
    return matches


def _match_users_under_other_ids(shown: Sequence[JsonObject], lines: Sequence[Line], matches: list[int | None]) -> None:
    """The users' messages before the first known one, if they say what ours before it say: see `align_users`."""
    users = [index for index, message in enumerate(shown) if message["role"] == "user"]
    unnamed = next((count for count, index in enumerate(users) if matches[index] is not None), 0)
    if not unnamed:
        return
    ours = [index for index, line in enumerate(lines) if line.role == "user"]
    place = next(count for count, index in enumerate(ours) if index == matches[users[unnamed]])
    pairs = list(zip(users[:unnamed], ours[place - unnamed : place], strict=True)) if place >= unnamed else []
    if all(says_the_same(shown[index], lines[our].message) for index, our in pairs):
        for index, our in pairs:
            matches[index] = our


def _same_content(message: JsonObject, lines: Sequence[Line], start: int, taken: Collection[int]) -> int | None:
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
    content, own = shown.get("content") or "", ours.get("content") or ""
    if shown["role"] == "user":
        return content == own or same_words(content_in(content)) == same_words(content_in(own))
    return content == own and _calls(shown) == _calls(ours)


def _answer(message: JsonObject) -> bytes:
    """An assistant message as it can be compared with many."""
    return canonical([message.get("content") or "", _calls(message)])


def _calls(message: JsonObject) -> list[tuple[str, str]]:
    calls: list[JsonObject] | None = message.get("toolCalls")
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls] if calls else []
