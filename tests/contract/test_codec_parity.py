"""Every event that we can make has the bytes of the official encoder, apart from three escaped characters."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event
from ag_ui.encoder import EventEncoder
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from agui_bridge.run_input import parse
from agui_bridge.wire import events as e
from agui_bridge.wire.json_codec import encode_json
from agui_bridge.wire.sse import frame

ADAPTER: TypeAdapter[Any] = TypeAdapter(Event)
_SCHEMA: dict[str, Any] = json.loads((Path(__file__).parents[2] / "agui_check" / "schema-1.0.json").read_text("utf-8"))
VALID = Draft202012Validator({"$defs": _SCHEMA["$defs"], "$ref": "#/$defs/Event"})

ESCAPES = {"\u2028": "\\u2028", "\u2029": "\\u2029", "\x85": "\\u0085"}


def the_official_bytes(event: e.AguiEvent) -> bytes:
    text = EventEncoder().encode(ADAPTER.validate_python(event))
    for character, escape in ESCAPES.items():
        text = text.replace(character, escape)
    return text.encode()


STRANGE = 'é 😀 "quoted" back\\slash / \b\f\n\r\t\x00\x1f\x7f \x85\u2028\u2029 \u2027\u202a ~0~1 </script>'
RICH: dict[str, Any] = {
    "text": STRANGE,
    STRANGE: None,
    "numbers": [0, -1, 2**63 - 1, -(2**63), 1.0, -0.0, 1e16, 1e15, 1e-7, 1e-5, 0.1, 1.7976931348623157e308, 5e-324],
    "nested": {"z": [{}, [], [None], True, False], "a": ""},
    "": {},
}
PARTS: list[dict[str, Any]] = [
    {"text": STRANGE, "metadata": RICH, "id": "p1", "type": "text"},
    {"source": {"mimeType": "image/png", "value": "AA==", "type": "data"}, "type": "image", "metadata": None},
    {"type": "audio", "source": {"type": "url", "value": "https://x", "mimeType": None}},
    {"type": "video", "metadata": [1], "source": {"mimeType": "m", "provider": "p", "value": "f", "type": "file"}},
    {"type": "document", "id": "p2", "source": {"type": "file", "value": "f"}},
]
MESSAGES: list[dict[str, Any]] = [
    {"content": STRANGE, "role": "system", "id": "s1"},
    {"content": "d", "role": "developer", "id": "d1", "name": None},
    {"content": PARTS, "metadata": RICH, "name": "n", "encryptedValue": "E", "role": "user", "id": "u1"},
    {"role": "assistant", "id": "a0", "content": None},
    {
        "toolCalls": [
            {"metadata": RICH, "function": {"arguments": '{"a":1}', "name": "f"}, "type": "function", "id": "c1"},
            {"id": "c2", "encryptedValue": "E", "type": "function", "function": {"name": "f", "arguments": "{"}},
        ],
        "content": STRANGE,
        "subagentRunId": "sub",
        "role": "assistant",
        "id": "a1",
    },
    {"toolCallId": "c1", "content": PARTS, "error": "e", "role": "tool", "id": "o1", "metadata": {}},
    {"activityType": "t", "role": "activity", "id": "x1", "content": RICH},
    {"encryptedValue": "E", "content": "hm", "role": "reasoning", "id": "r1", "ours": 1},
]
USAGE: list[dict[str, Any]] = [
    {"cacheWriteInputTokens": 0, "outputTokens": 2, "inputTokens": 2**53 - 1, "model": "m", "provider": "p"},
    {"reasoningTokens": 1, "totalTokens": 3, "cachedInputTokens": 1, "model": None},
    {},
]
INTERRUPTS: list[dict[str, Any]] = [
    {"reason": "tool_call", "id": "i1"},
    {
        "metadata": RICH,
        "expiresAt": "2030-01-01T00:00:00Z",
        "responseSchema": RICH,
        "toolCallId": "c1",
        "message": STRANGE,
        "reason": "confirmation",
        "id": "i2",
        "subagentRunId": "sub",
    },
]
DELTA: list[dict[str, Any]] = [
    {"op": "add", "path": "/a~1b", "value": RICH},
    {"op": "replace", "path": "", "value": None},
    {"op": "remove", "path": "/-"},
]

Make = Callable[..., e.AguiEvent]

OWN: list[Make] = [
    partial(e.run_started, "t", STRANGE),
    partial(e.run_started, "t", "r", protocol_version="1.0", parent_run_id="p"),
    partial(e.run_finished, "t", "r"),
    partial(e.run_finished, "t", "r", outcome=e.success(), usage=[]),
    partial(e.run_finished, "t", "r", outcome=e.success(["c1", STRANGE]), usage=USAGE, result=RICH),
    partial(e.run_finished, "t", "r", outcome=e.interrupt(INTERRUPTS), usage=USAGE),
    partial(e.run_finished, "t", "r", outcome=e.cancelled(), result=False),
    partial(e.run_error, STRANGE),
    partial(e.run_error, "m", "code", USAGE),
    partial(e.messages_snapshot, MESSAGES),
    partial(e.messages_snapshot, []),
]
"""Events of the run: they belong to no subagent."""

ATTRIBUTABLE: list[Make] = [
    partial(e.step_started, "round-1"),
    partial(e.step_finished, STRANGE),
    partial(e.text_message_start, "m"),
    partial(e.text_message_start, "m", role="user", name=STRANGE),
    partial(e.text_message_end, "m"),
    partial(e.tool_call_start, "c", "f"),
    partial(e.tool_call_start, "c", STRANGE, "m"),
    partial(e.tool_call_end, "c"),
    partial(e.tool_call_result, "m", "c", STRANGE),
    partial(e.tool_call_result, "m", "c", PARTS, role="tool"),
    partial(e.tool_call_result, "m", "c", []),
    partial(e.reasoning_start, "m"),
    partial(e.reasoning_message_start, "m"),
    partial(e.reasoning_message_end, "m"),
    partial(e.reasoning_end, "m"),
    partial(e.reasoning_encrypted_value, "message", "m", STRANGE),
    partial(e.reasoning_encrypted_value, "tool-call", "c", "E"),
    *(partial(e.state_snapshot, state) for state in (RICH, None, False, 0, "", [], {}, 1.0, -0.0)),
    partial(e.state_delta, DELTA),
    partial(e.state_delta, []),
    partial(e.custom, "agui-bridge:round", RICH),
    partial(e.custom, STRANGE, None),
]

STREAMED: list[Make] = [
    *(partial(e.text_message_content, "m", delta) for delta in ("", STRANGE, "plain")),
    partial(e.tool_call_args, "c", '{"a":' + STRANGE),
    partial(e.reasoning_message_content, "m", STRANGE),
]
"""Events without room for anything but their text."""

ENVELOPES: list[dict[str, Any]] = [
    {},
    {"metadata": {"agui-bridge:role": "working_message", "n": None}},
    {"metadata": RICH, "raw_event": RICH, "timestamp": 1_790_000_000_000},
    {"timestamp": None, "raw_event": False, "metadata": None},
]

CASES = [
    *((make, envelope) for make in (*OWN, *ATTRIBUTABLE) for envelope in ENVELOPES),
    *((make, {**envelope, "subagent_run_id": "sub"}) for make in ATTRIBUTABLE for envelope in ENVELOPES),
    *((make, dict[str, Any]()) for make in STREAMED),
]


@pytest.mark.parametrize(("make", "envelope"), CASES)
def test_an_event_has_the_bytes_of_the_official_encoder(make: Make, envelope: dict[str, Any]):
    event = make(**envelope)
    assert frame(encode_json(event)) == the_official_bytes(event)
    VALID.validate(event)
    assert json.loads(encode_json(event)) == event


def test_every_constructor_is_among_the_cases():
    made = {make(**envelope)["type"] for make, envelope in CASES}
    assert made == {
        *("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "STEP_STARTED", "STEP_FINISHED"),
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"),
        *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END"),
        *("REASONING_END", "REASONING_ENCRYPTED_VALUE"),
        *("STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT", "CUSTOM"),
    }


@pytest.mark.requirement("R-128", "R-129")
def test_messages_of_an_input_come_out_of_a_snapshot_as_they_went_in():
    messages = [message for message in MESSAGES if message["id"] not in {"a0", "d1", "u1", "o1", "r1"}]
    document = {"threadId": "t", "runId": "r", "messages": messages}
    assert e.messages_snapshot(parse(document).messages) == {"type": "MESSAGES_SNAPSHOT", "messages": messages}


texts = st.text(st.characters(codec="utf-8")) | st.sampled_from([STRANGE, "\u2028", "a\x85", "\\\u2029"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


@settings(deadline=None)
@given(values)
def test_any_state_has_the_bytes_of_the_official_encoder(state: Any):
    event = e.state_snapshot(state)
    assert frame(encode_json(event)) == the_official_bytes(event)


@settings(deadline=None)
@given(texts)
def test_no_frame_has_a_character_that_some_reader_takes_for_a_line_end(text: str):
    data = encode_json(e.text_message_content("m", text))
    assert json.loads(data)["delta"] == text
    assert data.decode().splitlines() == [data.decode()]
