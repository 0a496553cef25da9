"""The protobuf form: the bytes of the official encoder, the fields of its schema, and a module that is up to date."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st

from agui_bridge.wire import ag_ui_pb2 as pb
from agui_bridge.wire import events as e
from agui_bridge.wire.proto_codec import PROTO, encode_proto, proto_frame
from tests.contract.test_codec_parity import CASES, STREAMED, Make, values

ROOT = Path(__file__).parents[2]
CONFORMANCE = ROOT / "tests" / "conformance"
VECTORS: list[dict[str, Any]] = [
    json.loads(line) for line in (CONFORMANCE / "proto-vectors.jsonl").read_text("utf-8").splitlines()
]
SCHEMA: dict[str, Any] = json.loads((CONFORMANCE / "proto-schema.json").read_text("utf-8"))

EQUAL_WHEN_DECODED = {
    "state_snapshot_object": "maps are written in the order of their keys",
    "state_snapshot_big_int": "maps are written in the order of their keys",
    "activity_snapshot": "maps are written in the order of their keys",
    "raw": "maps are written in the order of their keys",
    "run_finished_interrupt": "maps are written in the order of their keys",
    "metadata_nested_null": "an empty key of a map is written",
}
"""The vectors whose bytes are not ours, and why; the official package reads ours as theirs."""


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
@pytest.mark.requirement("R-027")
def test_an_event_has_the_bytes_of_the_official_encoder(vector: dict[str, Any]):
    ours = proto_frame(vector["event"])
    theirs = bytes.fromhex(vector["hex"])
    if vector["name"] in EQUAL_WHEN_DECODED:
        assert ours != theirs, "no exception any more"
        assert pb.Event.FromString(ours[4:]) == pb.Event.FromString(theirs[4:])
    else:
        assert ours == theirs


def test_no_more_vectors_differ_than_are_named():
    assert len(VECTORS) == 85
    assert {vector["name"] for vector in VECTORS} >= EQUAL_WHEN_DECODED.keys()


# --- the schema -------------------------------------------------------------------------------------------------------

_TYPES = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_BOOL: "bool",
}


def type_of(field: Any) -> str:
    if field.enum_type is not None:
        return field.enum_type.name
    if field.message_type is None:
        return _TYPES[field.type]
    name: str = field.message_type.full_name
    return name.removeprefix("agui_bridge.wire.").replace("ToolCall.Function", "ToolCall_Function")


def label_of(field: Any) -> str:
    if field.is_repeated:
        return "repeated"
    oneof = field.containing_oneof
    if oneof is not None and len(oneof.fields) > 1:
        return "oneof"
    return "optional" if field.has_presence else "implicit"


@pytest.mark.parametrize("name", SCHEMA["messages"])
@pytest.mark.requirement("R-026")
def test_a_message_has_the_fields_of_the_wire(name: str):
    message: Any = pb.ToolCall.Function if name == "ToolCall_Function" else getattr(pb, name)
    ours = [
        {"number": field.number, "name": field.json_name, "type": type_of(field), "label": label_of(field)}
        for field in message.DESCRIPTOR.fields
    ]
    assert sorted(ours, key=lambda field: field["number"]) == SCHEMA["messages"][name]


@pytest.mark.requirement("R-026")
def test_the_enums_have_the_numbers_of_the_wire():
    assert dict(pb.EventType.items()) == SCHEMA["enums"]["EventType"]
    assert dict(pb.JsonPatchOperationType.items()) == SCHEMA["enums"]["JsonPatchOperationType"]


def test_the_module_is_what_the_compiler_makes_of_the_proto_file(tmp_path: Path):
    proto = "agui_bridge/wire/ag_ui.proto"
    out = (f"--python_out={tmp_path}", f"--pyi_out={tmp_path}")
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", "--proto_path=.", *out, proto], cwd=ROOT, check=True)
    for name in ("ag_ui_pb2.py", "ag_ui_pb2.pyi"):
        made = (tmp_path / "agui_bridge" / "wire" / name).read_text("utf-8")
        assert made == (ROOT / "agui_bridge" / "wire" / name).read_text("utf-8"), "make proto"


# --- whatever an event holds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "envelope"), CASES)
def test_every_event_that_we_can_make_is_a_frame_of_its_own_kind(make: Make, envelope: dict[str, Any]):
    event = make(**envelope)
    data = proto_frame(event)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    decoded = pb.Event.FromString(data[4:])
    arm = decoded.WhichOneof("event")
    assert arm == event["type"].lower()
    assert getattr(decoded, arm).base_event.type == pb.EventType.Value(event["type"])
    assert proto_frame(event) == data


texts = st.text(st.characters(codec="utf-8"), max_size=3000)


@settings(deadline=None)
@given(st.sampled_from([e.text_message_content, e.tool_call_args, e.reasoning_message_content]), texts, texts)
def test_streamed_text_has_the_bytes_of_the_general_way(make: Make, id_: str, delta: str):
    event = make(id_, delta)
    assert proto_frame(event)[4:] == encode_proto(event)
    assert len(STREAMED) >= 3


@pytest.mark.parametrize("size", [1, 100, 127, 128, 16_383, 16_384, 3_000_000])
def test_streamed_text_of_any_length_has_the_bytes_of_the_general_way(size: int):
    event = e.text_message_content("m", "x" * size)
    assert proto_frame(event)[4:] == encode_proto(event)


def test_streamed_text_that_is_attributed_keeps_its_owner():
    event = {**e.text_message_content("m", "x"), "subagentRunId": "s"}
    assert pb.Event.FromString(proto_frame(event)[4:]).text_message_content.subagent_run_id == "s"


def as_doubles(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_doubles(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_doubles(item) for item in value]
    return float(value) if type(value) is int else value


@settings(deadline=None)
@given(values)
def test_any_state_comes_back_with_doubles_for_numbers(state: Any):
    decoded = pb.Event.FromString(encode_proto(e.state_snapshot(state)))
    assert MessageToDict(decoded.state_snapshot.snapshot) == as_doubles(state)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


def test_a_state_as_deep_as_any_that_we_take_is_written():
    assert len(encode_proto(e.state_snapshot(nested(50)))) > len(encode_proto(e.state_snapshot(nested(49))))


# --- what is no event -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        {"type": "FROM_THE_FUTURE"},
        {"type": "THINKING_START"},
        {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": [{"type": "hologram"}]},
        {"type": "STATE_DELTA", "delta": [{"op": "swap", "path": "/a"}]},
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "m",
            "toolCallId": "c",
            "content": [{"type": "image", "source": {"type": "cloud", "value": "x"}}],
        },
    ],
)
def test_what_ag_ui_does_not_have_is_refused_and_not_written_as_something_else(event: dict[str, Any]):
    with pytest.raises(ValueError):
        encode_proto(event)


def test_a_member_of_another_type_is_refused_and_not_coerced():
    with pytest.raises(TypeError):
        encode_proto({"type": "STEP_STARTED", "stepName": 5})
    with pytest.raises(TypeError):
        encode_proto({"type": "STEP_STARTED", "stepName": "s", "timestamp": 1.5})


def test_the_form_has_nothing_to_say_into_silence():
    assert PROTO.keep_alive is None
    assert PROTO.media_type == "application/vnd.ag-ui.event+proto"
