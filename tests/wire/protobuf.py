"""Protobuf bodies taken apart without the code that makes them: frames by their lengths, events by the message's own
member."""

from __future__ import annotations

from typing import Any

from agui_bridge.wire import ag_ui_pb2 as pb

PROTO = "application/vnd.ag-ui.event+proto"


def frames_of(body: bytes) -> list[bytes]:
    """The frames of a whole body, which has nothing between them and nothing behind them."""
    frames: list[bytes] = []
    while body:
        size = int.from_bytes(body[:4], "big")
        assert size > 0, "a frame of nothing"
        assert len(body) >= 4 + size, "the body ends within a frame"
        frames.append(body[4 : 4 + size])
        body = body[4 + size :]
    return frames


def types_of(body: bytes) -> list[str]:
    """The types of the events in a body."""
    return [pb.EventType.Name(_event(frame).base_event.type) for frame in frames_of(body)]


def events_of(body: bytes, kind: str) -> list[Any]:
    """The messages of the events of one type."""
    return [_event(frame) for frame in frames_of(body) if pb.Event.FromString(frame).WhichOneof("event") == kind]


def _event(frame: bytes) -> Any:
    event = pb.Event.FromString(frame)
    arm = event.WhichOneof("event")
    assert arm is not None
    return getattr(event, arm)
