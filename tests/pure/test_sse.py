"""Frames and cursors of event streams."""

from __future__ import annotations

import pytest

from agui_bridge.wire.sse import KEEP_ALIVE, frame, named_frame, parse_cursor
from runtime.errors import InvalidCursor


def test_a_frame_is_one_line_of_data_and_a_blank_line():
    assert frame(b'{"type":"X"}') == b'data: {"type":"X"}\n\n'


def test_an_id_stands_before_the_data():
    assert frame(b"{}", 7) == b"id: 7\ndata: {}\n\n"
    assert frame(b"{}", 0) == b"id: 0\ndata: {}\n\n"


def test_a_canonical_frame_names_its_seq_and_its_type():
    assert named_frame(3, "run.started", b"{}") == b"id: 3\nevent: run.started\ndata: {}\n\n"


def test_frames_have_no_carriage_return_and_keep_alive_is_a_comment():
    assert KEEP_ALIVE == b": keep-alive\n\n"
    assert b"\r" not in frame(b"{}", 1) + named_frame(1, "x", b"{}") + KEEP_ALIVE


@pytest.mark.parametrize(
    ("header", "query", "expected"),
    [
        (None, None, 0),
        ("", None, 0),
        ("", "4", 4),
        ("5", None, 5),
        (None, "5", 5),
        ("5", "9", 9),
        ("9", "5", 9),
        ("0", "0", 0),
        (str(2**53), None, 2**53),
    ],
)
def test_the_larger_cursor_counts_and_silence_means_the_start(header: str | None, query: str | None, expected: int):
    assert parse_cursor(header, query) == expected


BAD = ["-1", "1e3", " 7", "7 ", "7\n", "+5", "٣", "1.0", "0x1", "1_0", "abc", "²", str(2**53 + 1), "9" * 400, "\x00"]


@pytest.mark.parametrize("bad", BAD)
def test_a_malformed_cursor_is_refused_wherever_it_stands(bad: str):
    for header, query in [(bad, None), (None, bad), (bad, "5"), ("5", bad)]:
        with pytest.raises(InvalidCursor) as caught:
            parse_cursor(header, query)
        assert (caught.value.status, caught.value.code) == (422, "invalid_cursor")
        assert all(len(shown) < 700 and shown.isascii() for shown in caught.value.details.values())


def test_an_empty_query_is_no_number():
    with pytest.raises(InvalidCursor):
        parse_cursor(None, "")
