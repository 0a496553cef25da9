"""The two forms in which a stream of AG-UI events goes over the wire, behind one name.

Pure. What makes protobuf is imported when the first client asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from agui_bridge.wire import SSE_MEDIA_TYPE
from agui_bridge.wire.accept import names_protobuf
from agui_bridge.wire.events import AguiEvent
from agui_bridge.wire.json_codec import encode_json
from agui_bridge.wire.sse import KEEP_ALIVE, frame


@dataclass(frozen=True, slots=True)
class Codec:
    """A form of a stream: `frame` makes an event's bytes, with its cursor where the form has a place for one.

    `media_type` is the whole content type: stock clients compare it letter by letter. `keep_alive` is what may be sent
    into a silent stream, None where the form has nothing that says nothing.
    """

    media_type: str
    frame: Callable[[AguiEvent, int | None], bytes]
    keep_alive: bytes | None


def _sse_frame(event: AguiEvent, id_: int | None) -> bytes:
    return frame(encode_json(event), id_)


SSE: Final = Codec(SSE_MEDIA_TYPE, _sse_frame, KEEP_ALIVE)


def codec_for(accept: Iterable[str]) -> Codec:
    """The form for a client with these `Accept` headers."""
    return _protobuf() if names_protobuf(accept) else SSE


def _protobuf() -> Codec:
    from agui_bridge.wire.proto_codec import PROTO

    return PROTO
