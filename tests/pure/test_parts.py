"""Where the parts of a message begin and end."""

from __future__ import annotations

from inline_snapshot import snapshot

from runtime.parts import REASONING, REFUSAL, TEXT, Boundary, Finished, Part, PartDelta, PartStarted, PartStream


def words(boundaries: list[Boundary]) -> list[str]:
    """One short line a boundary."""
    lines: list[str] = []
    for boundary in boundaries:
        match boundary:
            case PartStarted(part_id, kind, round_, index):
                lines.append(f"{kind} start {part_id} round {round_} at {index}")
            case PartDelta(part_id, kind, _, delta):
                lines.append(f"{kind} delta {part_id} {delta!r}")
            case Finished():
                lines.append("finish")
            case _:
                lines.append(f"{boundary.kind} finish {boundary.part_id}")
    return lines


def test_text_then_reasoning_then_the_end() -> None:
    stream = PartStream()
    assert words([*stream.append(TEXT, 1, "Yes"), *stream.append(REASONING, 1, "Why?"), *stream.finish()]) == snapshot(
        [
            "text start p0 round 1 at 0",
            "text delta p0 'Yes'",
            "text finish p0",
            "reasoning start p1 round 1 at 1",
            "reasoning delta p1 'Why?'",
            "reasoning finish p1",
            "finish",
        ]
    )


def test_pieces_of_one_kind_and_round_are_one_part() -> None:
    stream = PartStream()
    assert words(
        [*stream.append(TEXT, 1, "a"), *stream.append(TEXT, 1, "b"), *stream.append(TEXT, 2, "c"), *stream.finish()]
    ) == snapshot(
        [
            "text start p0 round 1 at 0",
            "text delta p0 'a'",
            "text delta p0 'b'",
            "text finish p0",
            "text start p1 round 2 at 1",
            "text delta p1 'c'",
            "text finish p1",
            "finish",
        ]
    )


def test_a_refusal_is_not_text() -> None:
    stream = PartStream()
    assert words([*stream.append(TEXT, 1, "Well"), *stream.append(REFUSAL, 1, "no"), *stream.finish()]) == snapshot(
        [
            "text start p0 round 1 at 0",
            "text delta p0 'Well'",
            "text finish p0",
            "refusal start p1 round 1 at 1",
            "refusal delta p1 'no'",
            "refusal finish p1",
            "finish",
        ]
    )


def test_calls_are_written_side_by_side_and_end_in_the_order_in_which_they_began() -> None:
    stream = PartStream()
    assert words(
        [
            *stream.append(TEXT, 1, "So"),
            *stream.call("b", 1, "{"),
            *stream.call("a", 1, "{"),
            *stream.call("b", 1, "}"),
            *stream.append(TEXT, 1, "there"),
            *stream.call("a", 1, "}"),
            *stream.finish(),
        ]
    ) == snapshot(
        [
            "text start p0 round 1 at 0",
            "text delta p0 'So'",
            "text finish p0",
            "tool_call start p1 round 1 at 1",
            "tool_call delta p1 '{'",
            "tool_call start p2 round 1 at 2",
            "tool_call delta p2 '{'",
            "tool_call delta p1 '}'",
            "text start p3 round 1 at 3",
            "text delta p3 'there'",
            "tool_call delta p2 '}'",
            "text finish p3",
            "tool_call finish p1",
            "tool_call finish p2",
            "finish",
        ]
    )


def test_reasoning_without_words_is_a_part_all_the_same() -> None:
    stream = PartStream()
    assert words([*stream.append(TEXT, 1, "So"), *stream.whole(REASONING, 1), *stream.finish()]) == snapshot(
        [
            "text start p0 round 1 at 0",
            "text delta p0 'So'",
            "text finish p0",
            "reasoning start p1 round 1 at 1",
            "reasoning finish p1",
            "finish",
        ]
    )


def test_an_ended_part_is_not_ended_again() -> None:
    stream = PartStream()
    stream.append(TEXT, 1, "Yes")
    assert len(stream.end()) == 1
    assert stream.end() == []
    assert stream.flowing is None
    assert stream.finish() == [Finished()]


def test_a_part_reads_as_its_pieces_and_is_stored_with_its_kind_and_round() -> None:
    part = Part("p0", TEXT, 1, 0, ["Half ", "a ", "word"])
    assert part.text == "Half a word"
    part.pieces.append("!")
    assert part.as_payload() == snapshot(
        {"part_id": "p0", "kind": "text", "round": 1, "committed": False, "text": "Half a word!"}
    )
