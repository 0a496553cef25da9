"""Thinking in tags: what is reasoning, what is text, and that nothing is lost or shown by half."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.dialects.think import ThinkTags


def parted(*chunks: str, starts_in_thinking: bool = False) -> tuple[str, str]:
    """(reasoning, text)."""
    tags = ThinkTags(starts_in_thinking=starts_in_thinking)
    pieces = [piece for chunk in chunks for piece in tags.feed(chunk)] + tags.finish()
    assert all(text for _, text in pieces)
    reasoning = "".join(text for kind, text in pieces if kind == "reasoning")
    return reasoning, "".join(text for kind, text in pieces if kind == "text")


@pytest.mark.parametrize("tag", ["think", "thinking"])
def test_a_block_before_the_answer_is_reasoning(tag: str) -> None:
    assert parted(f"\n <{tag}>plan</{tag}>\n\nAnswer") == ("plan", "Answer")


@pytest.mark.parametrize(
    "look_alike", ["<THINK>", "<thinking-mode>", "<thinker>", '<think a="b">', "< think>", "<think"]
)
def test_a_look_alike_is_text(look_alike: str) -> None:
    assert parted(f"{look_alike}a</b>") == ("", f"{look_alike}a</b>")


@pytest.mark.parametrize("block", ["<think/>", "<think></think>", "<think>\n\n</think>", "<thinking/>\n"])
def test_an_empty_block_leaves_nothing(block: str) -> None:
    assert parted(f"{block}\n\nVisible") == ("", "Visible")


def test_tags_behind_visible_text_are_text() -> None:
    assert parted("See <think>b</think>.") == ("", "See <think>b</think>.")
    assert parted("<think>a</think>One. <think>b</think>Two.") == ("a", "One. <think>b</think>Two.")


def test_blocks_in_a_row_are_one_reasoning() -> None:
    assert parted("<think>a</think>\n<think>\nb\n</think>\nText") == ("a\nb", "Text")


def test_nested_openings_are_counted() -> None:
    assert parted("<think>a<think>b</think>c</think>Answer") == ("abc", "Answer")


def test_an_opening_tag_in_backticks_within_the_thinking_does_not_count() -> None:
    assert parted("<think>they ask for `<think>` tags</think>Answer") == ("they ask for `<think>` tags", "Answer")


def test_a_closing_tag_without_an_opening_is_never_shown() -> None:
    assert parted("plan it", "</think>", "\n\nAnswer") == ("", "plan it\n\nAnswer")
    assert parted("</think>\n\nAnswer") == ("", "Answer")


def test_a_closing_tag_that_is_spoken_of_stays() -> None:
    assert parted("Write `</think>` at the end.") == ("", "Write `</think>` at the end.")
    assert parted("Write <think> and </think>.") == ("", "Write <think> and </think>.")


def test_a_message_may_start_in_thinking() -> None:
    assert parted("plan", "</think>Answer", starts_in_thinking=True) == ("plan", "Answer")
    assert parted("\n<think>\nplan</think>Answer", starts_in_thinking=True) == ("plan", "Answer")
    assert parted("plan only", starts_in_thinking=True) == ("plan only", "")


def test_white_space_of_an_answer_without_thinking_stays() -> None:
    assert parted("\n", "  Hi \n") == ("", "\n  Hi \n")
    assert parted("\n") == ("", "\n")
    assert parted("<think>a</think>\n\n    code\n") == ("a", "    code\n")


def test_no_more_than_a_possible_tag_is_held_back() -> None:
    tags = ThinkTags()
    assert tags.feed("a < b and c <") == [("text", "a < b and c ")]
    assert tags.feed("thi") == []
    assert tags.feed("s") == [("text", "<this")]
    assert tags.finish() == []


def test_a_long_answer_is_never_held_back() -> None:
    tags = ThinkTags()
    tags.feed("<think>a</think>b")
    assert tags.feed("<think") == [("text", "<think")]


def test_finish_gives_out_what_was_held_and_a_block_may_go_on() -> None:
    tags = ThinkTags()
    assert tags.feed("<think>a </thi") == [("reasoning", "a ")]
    assert tags.finish() == [("reasoning", "</thi")]
    assert tags.feed("b</think>c") == [("reasoning", "b"), ("text", "c")]


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<thinking>",
            "</thinking>",
            "<think/>",
            "<",
            "thi",
            "nk>",
            "/",
            "`",
            "\n",
            " ",
            "a",
            "é",
        ]
    ),
    max_size=12,
)


@given(FRAGMENTS, st.booleans(), st.data())
def test_where_chunks_are_cut_changes_nothing(parts: list[str], starts: bool, data: st.DataObject) -> None:
    whole = "".join(parts)
    cut = data.draw(st.integers(0, len(whole)))
    assert parted(whole[:cut], whole[cut:], starts_in_thinking=starts) == parted(whole, starts_in_thinking=starts)
    assert parted(*whole, starts_in_thinking=starts) == parted(whole, starts_in_thinking=starts)


@given(st.text(alphabet="ab<>/`\n think", max_size=40))
def test_text_without_a_tag_comes_out_as_it_went_in(text: str) -> None:
    if not any(tag in text for tag in ("think>", "thinking>", "/>")):
        assert parted(*text) == ("", text)
