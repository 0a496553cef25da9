"""The frames of a server-sent stream, and what is wrong with their bytes. Pure.

Reads more than it accepts, so that one fault of framing does not hide what the events themselves do.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, cast

from agui_check.findings import Finding, JsonObject, shown

MAX_FRAME: Final = 10 * 1024 * 1024
"""Bytes of one frame at which the official client gives up."""

_RETURN = re.compile(rb"\r\n?")


@dataclass(frozen=True, slots=True)
class Stream:
    """A body read: its events in order, what was found, and which of the optional lines it has."""

    events: list[JsonObject] = field(default_factory=list[JsonObject])
    findings: list[Finding] = field(default_factory=list[Finding])
    ids: list[str] = field(default_factory=list[str])
    comments: int = 0


def read_stream(body: bytes) -> Stream:
    """The events in a body of `text/event-stream`."""
    stream = Stream()
    if b"\r" in body:
        stream.findings.append(Finding("R-005", "Lines end with a carriage return.", fatal=True))
        body = _RETURN.sub(b"\n", body)
    *frames, rest = body.removeprefix(b"\xef\xbb\xbf").split(b"\n\n")
    comments = 0
    for frame in frames:
        comments += _read_frame(frame, stream)
    if rest.strip(b"\n"):
        stream.findings.append(Finding("R-013", "The body ends within a frame.", len(stream.events) + 1))
        comments += _read_frame(rest, stream)
    return Stream(stream.events, stream.findings, stream.ids, comments)


def _read_frame(frame: bytes, stream: Stream) -> int:
    """Read one frame into the stream; how many comments it has."""
    number = len(stream.events) + 1
    data: list[bytes] = []
    comments = 0
    for line in frame.split(b"\n"):
        name, _, value = line.partition(b":")
        if not name:
            comments += bool(line)
        elif name == b"data":
            data.append(value.removeprefix(b" "))
            if value[:1] != b" ":
                note = "`data:` is not followed by a space: legal, but the official encoders write one."
                _once(stream, Finding("R-004", note, number, remark=True))
        elif name == b"id":
            stream.ids.append(value.strip().decode("utf-8", "replace"))
    if len(frame) >= MAX_FRAME:
        stream.findings.append(Finding("R-031", f"A frame has {len(frame)} bytes.", number, fatal=True))
    if data:
        _read_data(b"\n".join(data), number, stream)
    return comments


def _read_data(data: bytes, number: int, stream: Stream) -> None:
    try:
        document: Any = json.loads(data)
    except ValueError:
        kind = "a sentinel" if data.strip() == b"[DONE]" else "no JSON"
        stream.findings.append(Finding("R-004", f"A frame holds {kind}: {shown(data)}.", number, fatal=True))
        return
    if isinstance(document, list):
        stream.findings.append(Finding("R-004", "A frame holds a batch of events.", number, fatal=True))
        stream.events.extend(cast("JsonObject", each) for each in cast("list[Any]", document) if _is_event(each))
    elif _is_event(document):
        stream.events.append(cast("JsonObject", document))
    else:
        message = f"A frame holds no object with a `type`: {shown(document)}."
        stream.findings.append(Finding("R-004", message, number, fatal=True))


def _is_event(document: object) -> bool:
    return isinstance(document, dict) and isinstance(cast("JsonObject", document).get("type"), str)


def _once(stream: Stream, finding: Finding) -> None:
    if all(each.message != finding.message for each in stream.findings):
        stream.findings.append(finding)
