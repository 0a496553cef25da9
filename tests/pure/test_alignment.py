"""Which shown messages are which of ours: by id, by what they say, and where a window begins."""

from __future__ import annotations

from typing import Any

import pytest

from agui_bridge.alignment import align_users, match_lines, says_the_same
from agui_bridge.transcript import transcript
from tests.pure.test_reconcile import Told, answer, asking, result, says, user

JsonObject = dict[str, Any]

ONE, TWO, THREE = user("u1", "one"), user("u2", "two"), user("u3", "three")
NEW = user("u9", "new")


def told() -> Told:
    """Three questions and their answers, the second behind an answer of the page's tool."""
    return Told().run(says("u1", "one")).asks("c1", user="u2").run(says("u3", "three"))


def own(*messages: JsonObject) -> list[JsonObject]:
    """The messages under ids that nobody here has seen."""
    return [{**message, "id": f"own-{index}"} for index, message in enumerate(messages)]


def greeting(text: str = "Welcome") -> JsonObject:
    """Something that nobody here said."""
    return {"id": "hello", "role": "assistant", "content": text}


U2 = user("u2", "pick")

ALIGNED: dict[str, tuple[list[JsonObject], tuple[bool, list[str], int, list[str]]]] = {
    # what is shown: whether it is known, the stored ones it is held against, how many agree, what is left
    "nothing": ([], (False, [], 0, [])),
    "no user message": ([greeting()], (False, [], 0, [])),
    "everything": ([ONE, answer(1), U2, THREE], (True, ["u1", "u2", "u3"], 3, [])),
    "everything and more": ([ONE, U2, THREE, NEW], (True, ["u1", "u2", "u3"], 3, ["u9"])),
    "the beginning": ([ONE, U2], (True, ["u1", "u2", "u3"], 2, [])),
    "a window": ([U2, THREE, NEW], (True, ["u2", "u3"], 2, ["u9"])),
    "a window that begins with an answer": ([answer(1), U2, THREE], (True, ["u2", "u3"], 2, [])),
    "a window that begins with a thought": (
        [{"id": "m2-p0", "role": "reasoning", "content": "hm"}, asking(2, "c1"), THREE],
        (True, ["u3"], 1, []),
    ),
    "the last answer and something new": ([answer(3), NEW], (True, [], 0, ["u9"])),
    "an edit": ([ONE, user("u2", "or this")], (True, ["u1", "u2", "u3"], 1, ["u2"])),
    "another message in its place": ([ONE, NEW], (True, ["u1", "u2", "u3"], 1, ["u9"])),
    "only something new": ([NEW], (False, [], 0, ["u9"])),
    "the same words under a new id": ([user("u9", "one")], (False, [], 0, ["u9"])),
    "the same words behind our answer": (own(ONE, answer(1)), (True, ["u1", "u2", "u3"], 1, [])),
    "the same words behind a foreign answer": (
        own(ONE, greeting()),
        (False, [], 0, ["own-0"]),
    ),
    "a foreign answer and something new": ([greeting(), NEW], (False, [], 0, ["u9"])),
    "all under other ids": (own(ONE, answer(1), U2, asking(2, "c1"), THREE), (True, ["u1", "u2", "u3"], 3, [])),
    "other ids, then known ones": ([*own(ONE, answer(1), U2), THREE, NEW], (True, ["u1", "u2", "u3"], 3, ["u9"])),
    "a window of other ids, then known ones": ([*own(U2), THREE], (True, ["u2", "u3"], 2, [])),
    "other words before a known one": ([user("x", "what?"), THREE], (True, ["u3"], 0, ["x", "u3"])),
    "more before a known one than there is": (
        [user("x", "one"), user("y", "one"), U2],
        (True, ["u2", "u3"], 0, ["x", "y", "u2"]),
    ),
}


@pytest.mark.parametrize("case", ALIGNED)
def test_the_shown_users_are_held_against_the_stored_ones(case: str):
    shown, (matched, stored, agreed, rest) = ALIGNED[case]
    thread = told().thread
    users = align_users(shown, thread, transcript(thread))
    assert users.matched is matched
    assert [said.id for said in users.stored] == stored
    assert users.agreed == agreed
    assert [message["id"] for message in users.rest] == rest


def test_a_message_of_an_older_branch_is_known_though_the_branch_has_it_not():
    thread = told().thread
    thread.entries = thread.entries[:2]
    users = align_users([ONE, U2, THREE], thread, transcript(thread))
    assert (users.matched, users.agreed, [m["id"] for m in users.rest]) == (True, 1, ["u2", "u3"])


# --- single messages ----------------------------------------------------------------------------------------------

MATCHED: dict[str, tuple[list[JsonObject], list[int | None]]] = {
    "by id": ([ONE, answer(1), U2, asking(2, "c1"), THREE, answer(3)], [0, 1, 2, 3, 4, 5]),
    "by id, whatever it says": ([ONE, {**answer(1), "content": "forged"}], [0, 1]),
    "by content": (own(ONE, answer(1), U2, asking(2, "c1"), THREE, answer(3)), [0, 1, 2, 3, 4, 5]),
    "by content within its turn only": ([ONE, *own(answer(3))], [0, None]),
    "by content before a known one": ([*own(U2, asking(2, "c1")), THREE], [2, 3, 4]),
    "what another one names is taken": ([user("x", "one"), ONE], [None, 0]),
    "another role under our id": ([{**ONE, "role": "assistant"}], [None]),
    "what is not ours": ([greeting(), result("c9")], [None, None]),
}


@pytest.mark.parametrize("case", MATCHED)
def test_each_shown_message_is_one_of_ours_or_none(case: str):
    shown, lines = MATCHED[case]
    assert match_lines(shown, transcript(told().thread)) == lines


@pytest.mark.parametrize(
    ("shown", "ours", "same"),
    [
        ({"content": "a"}, {"content": "a", "metadata": {"x": 1}}, True),
        ({"content": "a"}, {"content": "b"}, False),
        ({"content": None}, {}, True),
        ({"toolCalls": []}, {}, True),
        ({"content": ""}, {"toolCalls": asking(1, "c")["toolCalls"]}, False),
        ({"toolCalls": asking(1, "c")["toolCalls"]}, {"toolCalls": asking(1, "d")["toolCalls"]}, True),
    ],
)
def test_what_two_answers_say_is_their_text_and_their_calls(shown: JsonObject, ours: JsonObject, same: bool):
    assert says_the_same({"role": "assistant", **shown}, {"role": "assistant", **ours}) is same


def test_results_of_different_calls_are_never_the_same():
    assert not says_the_same(result("c1"), result("c2"))
