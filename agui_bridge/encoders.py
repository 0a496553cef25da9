"""From records to the bytes of a stream, in the two formats that there are.

Pure. An encoder belongs to one reader of one run: it is given the run's records in order, from wherever the reader
begins, and answers with frames. The id of a frame is the seq of the fact behind it; of the frames that one fact
becomes only the last has it, so that a resume never lands within a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import orjson

from agui_bridge.projection import Projector
from agui_bridge.times import iso
from agui_bridge.wire.json_codec import encode_json, escape
from agui_bridge.wire.sse import frame, named_frame
from runtime.canonical import JsonObject
from runtime.events import Record
from runtime.run import RunRecord

Encoder: TypeAlias = Callable[[Sequence[Record]], bytes]


def agui_encoder(projector: Projector, after: int = 0) -> Encoder:
    """AG-UI events. Records up to `after` are folded silently: the reader has seen what they became."""

    def encode(records: Sequence[Record]) -> bytes:
        frames: list[bytes] = []
        for record in records:
            events = projector.feed(record.event)
            if record.seq > after and events:
                frames += [frame(encode_json(event)) for event in events[:-1]]
                frames.append(frame(encode_json(events[-1]), record.root_seq))
        return b"".join(frames)

    return encode


def canonical_encoder(run: RunRecord, *, full: bool) -> Encoder:
    """The journal's own events: `{seq, event_type, occurred_at, payload}`, or with `full` the whole envelope."""

    def encode(records: Sequence[Record]) -> bytes:
        return b"".join(
            named_frame(record.seq, record.event_type, escape(_document(run, record, full=full))) for record in records
        )

    return encode


def _document(run: RunRecord, record: Record, *, full: bool) -> bytes:
    head: JsonObject = {"seq": record.seq, "event_type": record.event_type, "occurred_at": iso(record.occurred_at)}
    if full:
        head |= {
            "run_id": record.run_id,
            "root_run_id": run.root_run_id,
            "root_seq": record.root_seq,
            "recorded_at": iso(record.recorded_at),
            "agent_id": run.agent_id,
            "agent_snapshot_checksum": run.agent_snapshot_checksum,
            "payload_checksum": record.payload_checksum,
            "schema_version": record.schema_version,
            "trace_id": run.trace_id,
            "span_id": None,
        }
    return orjson.dumps(head | {"payload": orjson.Fragment(record.payload)})
