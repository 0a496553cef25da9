"""Whatever a thread goes through, its streams are legal and leave a page with what the server holds."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agui_bridge.encoders import agui_encoder
from agui_bridge.transcript import transcript
from runtime import events as e
from runtime.items import FunctionCall, FunctionCallOutput
from runtime.thread import Thread
from tests.pure.agui_rules import Rules
from tests.pure.conversation import Conversation
from tests.pure.histories import Drawn, Performed

JsonObject = dict[str, Any]
STEPS = 4


@cache
def schema(event_type: str) -> Draft202012Validator:
    """The official schema of an event of this type."""
    path = Path(__file__).parents[2] / "agui_check" / "schema-1.0.json"
    name = "".join(word.capitalize() for word in event_type.split("_")) + "Event"
    return Draft202012Validator({**json.loads(path.read_text(encoding="utf-8")), "$ref": f"#/$defs/{name}"})


@given(st.data())
def test_every_stream_is_legal_and_leaves_the_page_with_what_the_server_holds(data: st.DataObject) -> None:
    conversation = Conversation(Drawn(data))
    for _ in range(STEPS):
        stream = conversation.step().stream
        rules = Rules()
        rules.check(stream)
        assert rules.ended
        assert conversation.page.messages == conversation.theatre.shown()
        assert conversation.page.state == conversation.theatre.thread.state
        assert conversation.page.surprises == []


@given(st.data())
def test_every_event_has_the_shape_of_the_official_schema(data: st.DataObject) -> None:
    conversation = Conversation(Drawn(data))
    for _ in range(STEPS):
        for event in conversation.step().stream:
            schema(event["type"]).validate(event)


@given(st.data())
def test_a_reader_that_comes_back_gets_exactly_the_rest(data: st.DataObject) -> None:
    conversation = Conversation(Drawn(data))
    for _ in range(STEPS):
        turn = conversation.step()
        whole = frames(turn.performed, 0)
        assert [said(frame) for frame in whole] == turn.stream
        for after in range(len(turn.performed.records) + 1):
            seen = max((n for n, frame in enumerate(whole, 1) if 0 < place(frame) <= after), default=0)
            assert frames(turn.performed, after) == whole[seen:]


@given(st.data())
def test_the_deltas_of_runs_that_are_over_say_nothing_new(data: st.DataObject) -> None:
    conversation = Conversation(Drawn(data))
    slim = Thread("thr_1")
    for _ in range(STEPS):
        performed = conversation.step().performed
        for record in performed.records:
            if type(record.event) not in e.DELTAS:
                slim.apply(performed.run_id, performed.base, record.seq, record.event)
        whole = conversation.theatre.thread
        assert slim.items() == whole.items()
        assert transcript(slim) == transcript(whole)
        assert slim.state == whole.state
        assert slim.position == whole.position


@given(st.data())
def test_the_model_sees_each_call_with_its_one_output_in_the_order_of_the_calls(data: st.DataObject) -> None:
    conversation = Conversation(Drawn(data))
    for _ in range(STEPS):
        conversation.step()
        owed: list[str] = []
        for item in conversation.theatre.thread.items():
            if isinstance(item, FunctionCall):
                owed.append(item.call_id)
            elif isinstance(item, FunctionCallOutput):
                skipped = owed[: owed.index(item.call_id)]
                assert set(skipped) <= set(conversation.owed())
                owed.remove(item.call_id)
        assert owed == conversation.owed()


def frames(performed: Performed, after: int) -> list[bytes]:
    """The frames of a run for a reader that has seen everything up to `after`."""
    body = agui_encoder(performed.projector(), after)(performed.records)
    return [frame for frame in body.split(b"\n\n") if frame]


def place(frame: bytes) -> int:
    """The id of a frame, 0 if it has none."""
    first = frame.split(b"\n", 1)[0]
    return int(first[4:]) if first.startswith(b"id: ") else 0


def said(frame: bytes) -> JsonObject:
    """The event in a frame."""
    return orjson.loads(frame.rpartition(b"data: ")[2])
