"""What a session is called by its first words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime import events as e
from runtime.canonical import Json
from runtime.titles import MOST, first_words, one_line


def said(content: Json, role: str = "user", runtime_role: str | None = None) -> e.MessageCompleted:
    return e.MessageCompleted("m1", role, content, "", runtime_role)


def test_the_first_words_of_the_first_user_are_the_title():
    assert first_words([said("Tea\n  or\tcoffee?"), said("Coffee.")]) == "Tea or coffee?"
    assert first_words([said("late", runtime_role="late_tool_answer"), said("Hi")]) == "Hi"
    assert first_words([said("Hello", "assistant")]) is None
    assert first_words([]) is None


def test_a_picture_alone_is_no_title():
    picture = {"type": "image", "source": {"type": "url", "value": "https://a.example/b.png"}}
    assert first_words([said([picture])]) is None
    assert first_words([said([picture, {"type": "text", "text": "What is this?"}])]) == "What is this?"


def test_an_adopted_history_gives_its_first_user_message():
    messages = [
        {"id": "s", "role": "system", "content": "Be kind."},
        {"id": "a", "role": "assistant", "tool_calls": []},
        {"id": "u", "role": "user", "content": "Hi"},
    ]
    assert first_words([e.HistorySeeded(messages)]) == "Hi"


def test_long_words_are_cut_behind_a_word_where_that_leaves_most_of_them():
    assert one_line("a" * MOST) == "a" * MOST
    assert one_line("a" * (MOST + 1)) == "a" * (MOST - 1) + "…"
    assert one_line("one two three", 9) == "one two…"
    assert one_line("one two three", 8) == "one two…"


@given(st.text(), st.integers(2, 100))
def test_a_title_is_one_printable_line_that_fits(text: str, most: int):
    line = one_line(text, most)
    assert len(line) <= most
    assert line.isprintable()
    assert line == line.strip()
