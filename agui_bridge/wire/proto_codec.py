"""One event as protobuf bytes, and the frame around them, as stock clients of AG-UI 1.0 read both.

Pure. What a field is called and which number it has stands in `ag_ui.proto`; here stands only where the members of an
event go that have no field of their own name: the envelope, contents that are text or parts, outcomes. The three
events that stream text are written by hand, because a run is mostly made of them.

Numbers travel as IEEE doubles wherever any JSON may stand, maps in the order of their keys, and members that AG-UI
does not know not at all: that is the format, not this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from google.protobuf import struct_pb2
from google.protobuf.message import Message

from agui_bridge.wire import PROTO_MEDIA_TYPE
from agui_bridge.wire import ag_ui_pb2 as pb
from agui_bridge.wire.codec import Codec
from agui_bridge.wire.events import AguiEvent
from runtime.canonical import Json, JsonObject

Field: TypeAlias = Any
"""A field of a message's descriptor: the C library and the stubs have different names for it."""

Setter: TypeAlias = Callable[[Any, Json], None]
"""Writes one member of a JSON object into the message that stands for the object."""


def proto_frame(event: AguiEvent) -> bytes:
    """The event behind its length in four bytes, big-endian. Raises as `encode_proto`."""
    encode = _STREAMED.get(event["type"], encode_proto) if len(event) == _STREAMED_MEMBERS else encode_proto
    data = encode(event)
    return len(data).to_bytes(4, "big") + data


def encode_proto(event: AguiEvent) -> bytes:
    """The event as one `ag_ui.Event`; the same event always has the same bytes.

    Raises ValueError for a type, a part, a source or an operation that AG-UI 1.0 does not have, TypeError for a member
    of another type than its field.
    """
    kind: str = event["type"]
    known = _ARMS.get(kind)
    if known is None:
        raise ValueError(f"AG-UI 1.0 has no event {kind!r}.")
    arm, number = known
    envelope = pb.Event()
    message = getattr(envelope, arm)
    if number:
        message.base_event.type = number
    else:
        message.base_event.SetInParent()  # zero is not written, but that there is an envelope must be
    _fill(message, event)
    return envelope.SerializeToString(deterministic=True)


# --- a message of JSON members ----------------------------------------------------------------------------------------


def _fill(message: Message, members: JsonObject) -> None:
    setters = _SETTERS.get(type(message)) or _setters(message)
    for name, value in members.items():
        setter = setters.get(name)
        if setter is not None:
            setter(message, value)


def _setters(message: Message) -> Mapping[str, Setter]:
    """How the members of this kind of message are written, by their JSON names. They are made when first needed."""
    descriptor = message.DESCRIPTOR
    own = {field.json_name: _setter(field) for field in descriptor.fields}
    envelope = _ENVELOPE if "base_event" in descriptor.fields_by_name else {}
    setters = _SETTERS[type(message)] = own | envelope | _SPECIAL.get(descriptor.name, {})
    return setters


def _setter(field: Field) -> Setter:
    name, inner = field.name, field.message_type
    if field.is_repeated:
        return _repeated(name) if inner is not None else _scalars(name)
    if inner is None:
        return _scalar(name)
    return _ANY_JSON.get(inner.full_name, _message)(name)


def _scalar(name: str) -> Setter:
    def write(message: Any, value: Json) -> None:
        if value is not None:
            setattr(message, name, value)

    return write


def _scalars(name: str) -> Setter:
    return lambda message, value: getattr(message, name).extend(value or ())


def _repeated(name: str) -> Setter:
    def write(message: Any, value: Json) -> None:
        items = getattr(message, name)
        for each in value or ():
            _fill(items.add(), each)

    return write


def _message(name: str) -> Setter:
    def write(message: Any, value: Json) -> None:
        if value is not None:
            inner = getattr(message, name)
            inner.SetInParent()
            _fill(inner, value)

    return write


# --- any JSON ---------------------------------------------------------------------------------------------------------


def _value(name: str) -> Setter:
    return lambda message, value: _fill_value(getattr(message, name), value)


def _struct(name: str) -> Setter:
    def write(message: Any, value: Json) -> None:
        if value is not None:
            inner = getattr(message, name)
            inner.SetInParent()
            _fill_struct(inner, value)

    return write


def _fill_struct(struct: struct_pb2.Struct, members: JsonObject) -> None:
    fields = struct.fields
    for name, value in members.items():
        _fill_value(fields[name], value)


def _fill_value(message: struct_pb2.Value, value: Json) -> None:
    kind = cast("type[object]", type(value))
    if kind is str:
        message.string_value = value
    elif value is None:
        message.null_value = struct_pb2.NULL_VALUE
    elif kind is bool:
        message.bool_value = value
    elif kind is dict:
        message.struct_value.SetInParent()
        _fill_struct(message.struct_value, value)
    elif kind is list:
        message.list_value.SetInParent()
        values = message.list_value.values
        for each in value:
            _fill_value(values.add(), each)
    else:
        message.number_value = value


_ANY_JSON: Final[dict[str, Callable[[str], Setter]]] = {
    "google.protobuf.Value": _value,
    "google.protobuf.Struct": _struct,
}


# --- members without a field of their name ----------------------------------------------------------------------------


def _nothing(message: Any, value: Json) -> None:
    """The member is told by what the message is."""


def _in_envelope(write: Setter) -> Setter:
    return lambda message, value: write(message.base_event, value)


def _content(message: Any, value: Json) -> None:
    """Text, or parts; the object of an activity."""
    if isinstance(value, str):
        message.content = value
    elif isinstance(value, dict):
        message.activity_content.SetInParent()
        _fill_struct(message.activity_content, cast("JsonObject", value))
    elif value is not None:
        for part in cast("list[JsonObject]", value):
            _fill_one_of(message.content_parts.add(), part)


def _source(message: Any, value: Json) -> None:
    _fill_one_of(message.source, value)


def _fill_one_of(message: Any, value: JsonObject) -> None:
    """The member of a union that `type` names."""
    arm = value["type"]
    if arm not in message.DESCRIPTOR.fields_by_name:
        raise ValueError(f"AG-UI 1.0 has no {message.DESCRIPTOR.name} {arm!r}.")
    inner = getattr(message, arm)
    inner.SetInParent()
    _fill(inner, {name: member for name, member in value.items() if name != "type"})


def _outcome(message: Any, value: Json) -> None:
    """The kind of the outcome as text; what belongs to it stands beside it."""
    if value is not None:
        _fill(message, {"outcome type": value["type"], **value})


def _operation(message: Any, value: Json) -> None:
    message.op = pb.JsonPatchOperationType.Value(value.upper())


_ENVELOPE: Final[dict[str, Setter]] = {
    "type": _nothing,
    "timestamp": _in_envelope(_scalar("timestamp")),
    "rawEvent": _in_envelope(_value("raw_event")),
    "metadata": _in_envelope(_struct("metadata")),
}

_OUTCOME: Final[dict[str, Setter]] = {"outcome": _outcome, "outcome type": _scalar("outcome")}
_MEDIA: Final[dict[str, Setter]] = {"source": _source}

_SPECIAL: Final[dict[str, dict[str, Setter]]] = {
    "RunFinishedEvent": _OUTCOME,
    "SubagentFinishedEvent": _OUTCOME,
    "ToolCallResultEvent": {"content": _content},
    "Message": {"content": _content},
    "ImageInputPart": _MEDIA,
    "AudioInputPart": _MEDIA,
    "VideoInputPart": _MEDIA,
    "DocumentInputPart": _MEDIA,
    "JsonPatchOperation": {"op": _operation},
}

_SETTERS: dict[type[Message], Mapping[str, Setter]] = {}
_ARMS: Final = {kind: (kind.lower(), number) for kind, number in pb.EventType.items()}
"""The member of the envelope and the number of each type of event."""


# --- streamed text ----------------------------------------------------------------------------------------------------

_STREAMED_MEMBERS: Final = 3
"""`type`, an id and `delta`: an event that has more is no case for the short way."""
_WITH_LENGTH: Final = 2
"""The wire type of texts and messages."""


def _streamed(kind: str, id_member: str) -> Callable[[AguiEvent], bytes]:
    """The short way for an event of an id and a delta: its bytes are laid one behind the other."""
    field: Field = pb.Event.DESCRIPTOR.fields_by_name[_ARMS[kind][0]]
    arm = _tag(field)
    bare = encode_proto({"type": kind, id_member: "", "delta": ""})
    envelope = bare[len(arm) + 1 :]  # behind the length, which is one byte
    inner = {each.json_name: _tag(each) for each in field.message_type.fields}
    before_id, before_delta = envelope + inner[id_member], inner["delta"]

    def encode(event: AguiEvent) -> bytes:
        id_, delta = event[id_member].encode(), event["delta"].encode()
        if not (id_ and delta):  # an empty text is not written
            return encode_proto(event)
        body = b"%b%b%b%b%b%b" % (before_id, _length(id_), id_, before_delta, _length(delta), delta)
        return b"%b%b%b" % (arm, _length(body), body)

    return encode


def _tag(field: Field) -> bytes:
    return _varint(field.number << 3 | _WITH_LENGTH)


def _varint(number: int) -> bytes:
    """A number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


_KEPT: Final = 1 << 11
_LENGTHS: Final = [_varint(size) for size in range(_KEPT)]


def _length(data: bytes) -> bytes:
    size = len(data)
    return _LENGTHS[size] if size < _KEPT else _varint(size)


_STREAMED: Final[dict[str, Callable[[AguiEvent], bytes]]] = {
    "TEXT_MESSAGE_CONTENT": _streamed("TEXT_MESSAGE_CONTENT", "messageId"),
    "TOOL_CALL_ARGS": _streamed("TOOL_CALL_ARGS", "toolCallId"),
    "REASONING_MESSAGE_CONTENT": _streamed("REASONING_MESSAGE_CONTENT", "messageId"),
}


def _frame(event: AguiEvent, id_: int | None) -> bytes:
    """A frame has no place for a cursor."""
    return proto_frame(event)


PROTO: Final = Codec(PROTO_MEDIA_TYPE, _frame, keep_alive=None)
"""Nothing may stand in the stream that is no frame, and a frame of nothing is warned of by every client."""
