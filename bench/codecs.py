"""What protobuf costs against server-sent events: whole streams, and events of one kind.

    python -m bench.codecs [--deltas 2000] [--turns 21]

Both forms encode the same events in turn, so that a busy machine changes both alike; what is told is the median of the
turns' ratios.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from agui_bridge.encoders import Rendering, agui_encoder
from agui_bridge.projection import Echo, Projector
from agui_bridge.wire import events as agui
from agui_bridge.wire.codec import SSE
from agui_bridge.wire.events import AguiEvent
from agui_bridge.wire.proto_codec import PROTO
from runtime import events as e
from runtime.canonical import Json
from runtime.events import Record
from runtime.journal.drafts import drafts_of, records_of

NOW = 1_750_000_000_000
STREAM_BATCH = 4
"""Records that a live run publishes at once."""

Work = Callable[[], None]


def records(deltas: int) -> list[Record]:
    """A run with a call, a thought and a text of so many deltas."""
    call, arguments = "call_1", '{"key":"tea"}'
    events: list[e.Event] = [
        e.RunStarted(NOW, "r1", "a", "", []),
        e.MessageStarted("msg_1", "assistant"),
        e.RoundStarted(1, "m", "p", {"digest": "", "items": 1}),
        e.ToolCallStarted("msg_1", "p0", 0, call, "lookup"),
        e.ToolCallDelta(call, arguments),
        e.ToolCallCommitted(call, "lookup", arguments, "server"),
        e.ToolCallCompleted(call, "lookup", "42", "", is_error=False, kind="result"),
    ]
    events += [e.MessageDelta("msg_1", "p1", 0, f"tok {number} ") for number in range(deltas)]
    events.append(e.RunCompleted())
    return records_of("run_1", 0, drafts_of(events), NOW, NOW)


def whole_stream(deltas: int, rendering: Rendering) -> Work:
    """The encoding of a run for one reader, from records to bytes."""
    journal = records(deltas)
    batches = [journal[start : start + STREAM_BATCH] for start in range(0, len(journal), STREAM_BATCH)]

    def work() -> None:
        encode = agui_encoder(Projector(Echo("t1", "r1")), rendering=rendering)
        for batch in batches:
            encode(batch)

    return work


def one_kind(event: AguiEvent, times: int, rendering: Rendering) -> Work:
    """The same event again and again."""
    frame = rendering.codec.frame

    def work() -> None:
        for number in range(times):
            frame(event, number)

    return work


def state(items: int) -> Json:
    """A state of so many small objects."""
    return {"todos": [{"id": f"todo-{number}", "text": "buy tea", "done": number % 2 == 0} for number in range(items)]}


def spent(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(make: Callable[[Rendering], Work], turns: int) -> float:
    """The cost of protobuf in that of server-sent events."""
    sse, proto = make(Rendering(SSE)), make(Rendering(PROTO))
    sse()
    proto()
    return statistics.median(spent(proto) / spent(sse) for _ in range(turns))


def rows(deltas: int) -> dict[str, Callable[[Rendering], Work]]:
    """What is measured, by what the table calls it."""
    kinds = {
        "a text delta": agui.text_message_content("msg_0193b1c2d3e4-1", "tok "),
        "TOOL_CALL_START": agui.tool_call_start("call_1", "lookup", "msg_0193b1c2d3e4-1"),
        "a state delta": agui.state_delta([{"op": "add", "path": "/todos/-", "value": {"text": "tea", "done": False}}]),
        "a state of 100 objects": agui.state_snapshot(state(100)),
    }
    few = max(1, deltas // 50)  # it takes so much longer

    def again(event: AguiEvent) -> Callable[[Rendering], Work]:
        times = few if event["type"] == "STATE_SNAPSHOT" else deltas
        return lambda rendering: one_kind(event, times, rendering)

    run = f"a run of {deltas} deltas, from records to bytes"
    return {run: lambda rendering: whole_stream(deltas, rendering), **{name: again(kinds[name]) for name in kinds}}


def main(args: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.codecs", description="Protobuf against server-sent events.")
    parser.add_argument("--deltas", type=int, default=2000, help="events of a stream")
    parser.add_argument("--turns", type=int, default=21, help="how often each form has its turn")
    got = parser.parse_args(args)
    for name, make in rows(got.deltas).items():
        print(f"{name:<48} {ratio(make, got.turns):5.2f} x server-sent events")
    return 0


if __name__ == "__main__":
    sys.exit(main())
