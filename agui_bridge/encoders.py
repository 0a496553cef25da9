"""From records to the bytes of a stream, in the two formats that there are.

Pure. An encoder belongs to one reader of one run: it is given the run's records in order, from wherever the reader
begins, and answers with frames. The id of a frame is the seq of the fact behind it; of the frames that one fact
becomes only the last has it, so that a resume never lands within a group.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, TypeAlias

import orjson

from agui_bridge.links import LinkOf, linked
from agui_bridge.projection import Projector
from agui_bridge.reopening import Reopening
from agui_bridge.times import iso
from agui_bridge.wire.codec import SSE, Codec
from agui_bridge.wire.events import AguiEvent
from agui_bridge.wire.json_codec import escape
from agui_bridge.wire.sse import named_frame
from agui_bridge.wire.versions import Shape, current
from runtime.canonical import JsonObject
from runtime.errors import ReaderDropped
from runtime.events import Record
from runtime.run import RunRecord

WORDS: Final = "TEXT_MESSAGE_CONTENT"

Encoder: TypeAlias = Callable[[Sequence[Record]], bytes]


@dataclass(frozen=True, slots=True)
class Late:
    """An encoder that can be made only when the run has its first facts: what a run that waits for its thread restates
    depends on how the thread stands then."""

    make: Callable[[], Awaitable[Encoder]]


async def made(encode: Encoder | Late) -> Encoder:
    """The encoder itself, once there are facts."""
    return await encode.make() if isinstance(encode, Late) else encode


@dataclass(frozen=True, slots=True)
class Rendering:
    """How one reader is told of AG-UI events: in which form, in the shape of which version, with which links."""

    codec: Codec = SSE
    shape: Shape = current
    link_of: LinkOf | None = None

    def frames(self, events: Sequence[AguiEvent], id_: int | None = None) -> list[bytes]:
        """The frames of what one fact became; the last of them has the id."""
        if len(events) == 1 and events[0]["type"] == WORDS and len(events[0]) == 3:
            return [self.codec.frame(events[0], id_)]  # the hot one: plain words are told alike in every shape
        told = self.shape(linked(events, self.link_of))
        if not told:
            return []
        frame = self.codec.frame
        return [*(frame(event, None) for event in told[:-1]), frame(told[-1], id_)]


PLAIN: Final = Rendering()

in_tree = attrgetter("root_seq")
in_run = attrgetter("seq")
"""How a child's own stream counts: by its own facts, not by those of its tree."""


def agui_encoder(
    projector: Projector, after: int = 0, rendering: Rendering = PLAIN, place: Callable[[Record], int] = in_tree
) -> Encoder:
    """AG-UI events. Records up to `after` are folded silently: the reader has seen what they became. `place` is how
    this stream counts."""

    def encode(records: Sequence[Record]) -> bytes:
        frames: list[bytes] = []
        for record in records:
            events, number = projector.take(record), place(record)
            if number > after:
                frames += rendering.frames(events, number)
        return b"".join(frames)

    return encode


def reopening_encoder(reopening: Reopening, rendering: Rendering = PLAIN) -> Encoder:
    """AG-UI events for a page that came back into a run; the records are those from the run's first on."""

    def encode(records: Sequence[Record]) -> bytes:
        told = (rendering.frames(reopening.feed(record), record.root_seq) for record in records)
        return b"".join(each for frames in told for each in frames)

    return encode


def plain_frames(events: Sequence[AguiEvent], rendering: Rendering = PLAIN) -> bytes:
    """A whole stream of AG-UI events that no facts of a run stand behind: its frames have no ids."""
    return b"".join(rendering.frames(events))


def canonical_encoder(run: RunRecord, *, full: bool) -> Encoder:
    """The journal's own events: `{seq, event_type, occurred_at, payload}`, or with `full` the whole envelope."""

    def encode(records: Sequence[Record]) -> bytes:
        documents = ((record, escape(event_document(run, record, full=full))) for record in records)
        return b"".join(named_frame(record.seq, record.event_type, document) for record, document in documents)

    return encode


class SharedEncoder:
    """One encoding for all readers of a run that are at the same place.

    The records of a run between two places are always the same, so their frames can be given to every reader whose
    encoder would make them alike. The last few batches are kept: readers of a live run are woken together.
    """

    def __init__(self, encode: Encoder, kept: int = 8) -> None:
        self._encode = encode
        self._kept = kept
        self._batches: dict[tuple[int, int], bytes] = {}

    def __call__(self, records: Sequence[Record]) -> bytes:
        """The frames of these records."""
        span = records[0].first_seq, records[-1].seq
        frames = self._batches.get(span)
        if frames is None:
            frames = self._batches[span] = self._encode(records)
            if len(self._batches) > self._kept:
                del self._batches[next(iter(self._batches))]
        return frames


class SharedProjection:
    """One projection for all readers of a run in the format of AG-UI, wherever they are: each fact is projected once.

    The frames of the facts so far are kept as long as anybody reads, up to `most` bytes. A reader that is farther
    behind is sent away, and comes back by its cursor with an encoder of its own.
    """

    def __init__(
        self,
        projector: Projector,
        rendering: Rendering = PLAIN,
        place: Callable[[Record], int] = in_tree,
        most: int = 8 * 2**20,
    ) -> None:
        self._projector = projector
        self._rendering = rendering
        self._place = place
        self._room = most
        self._frames: dict[int, bytes] = {}
        self._at = 0
        self.has_all = True
        """Whether a reader may still begin anywhere."""

    def reader(self, after: int) -> Encoder:
        """The encoder of a reader that has seen everything up to `after`; it is given all records all the same."""

        def encode(records: Sequence[Record]) -> bytes:
            return b"".join([self._frames_of(record, after) for record in records])

        return encode

    def _frames_of(self, record: Record, after: int) -> bytes:
        number = self._place(record)
        if number > self._at:  # no other reader has been here
            self._at = number
            self._keep(number, b"".join(self._rendering.frames(self._projector.take(record), number)))
        if number <= after:
            return b""
        frames = self._frames.get(number)
        if frames is None:
            raise ReaderDropped(f"The reader of run {record.run_id} is too far behind.")
        return frames

    def _keep(self, number: int, frames: bytes) -> None:
        self._frames[number] = frames
        self._room -= len(frames)
        while self._room < 0 and len(self._frames) > 1:
            self._room += len(self._frames.pop(next(iter(self._frames))))
            self.has_all = False


def event_document(run: RunRecord, record: Record, *, full: bool) -> bytes:
    """An event as the API shows it, as JSON; with `full` the whole envelope."""
    head: JsonObject = {"seq": record.seq, "event_type": record.event_type, "occurred_at": iso(record.occurred_at)}
    if record.from_seq is not None:
        head["from_seq"] = record.from_seq
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
