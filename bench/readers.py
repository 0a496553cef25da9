"""What sixteen readers of one run cost in encoding: each with an encoder of its own, all with one, and one alone.

`python -m bench.readers`; CPU time of one process for each delta, records in batches as a live run publishes them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from agui_bridge.encoders import Encoder, SharedEncoder, SharedProjection, agui_encoder, canonical_encoder
from agui_bridge.projection import Echo, Projector
from runtime.events import MessageDelta, MessageStarted, Record, RoundStarted, RunStarted
from runtime.journal.drafts import drafts_of, records_of
from runtime.run import RUNNING, RunRecord

READERS = 16
DELTAS = 4_000
BATCH = 4
TURNS = 7
NOW = 1_750_000_000_000
ECHO = Echo("t1", "r1")

RUN = RunRecord("run_1", "-", "me", "thr_1", "ses_1", "a", "r1", "d", 1, RUNNING, 0, 0, 1, "run_1", NOW)


def batches() -> list[list[Record]]:
    """The records of a run that says many words."""
    begun = [RunStarted(0, "r1", "a", "", []), MessageStarted("msg_1", "assistant"), RoundStarted(1, "m", "p", {})]
    deltas = [*begun, *(MessageDelta("msg_1", "p0", 0, f"tok {number} ") for number in range(DELTAS))]
    records = records_of(RUN.run_id, 0, drafts_of(deltas), NOW, NOW)
    return [records[start : start + BATCH] for start in range(0, DELTAS, BATCH)]


def own() -> list[Encoder]:
    """An encoder for each reader."""
    return [canonical_encoder(RUN, full=False) for _ in range(READERS)]


def shared() -> list[Encoder]:
    """One encoder for all."""
    encoder = SharedEncoder(canonical_encoder(RUN, full=False))
    return [encoder] * READERS


def alone() -> list[Encoder]:
    """One reader."""
    return [canonical_encoder(RUN, full=False)]


def cost(readers: Callable[[], list[Encoder]], records: Sequence[list[Record]]) -> float:
    """Microseconds of CPU for each delta, the median of some turns."""
    turns: list[float] = []
    for _ in range(TURNS):
        encoders = readers()
        start = time.process_time()
        for batch in records:
            for encode in encoders:
                encode(batch)
        turns.append((time.process_time() - start) / DELTAS * 1e6)
    return statistics.median(turns)


def own_projections() -> list[Encoder]:
    """In the format of AG-UI: a projection for each reader."""
    return [agui_encoder(Projector(ECHO)) for _ in range(READERS)]


def shared_projection() -> list[Encoder]:
    """In the format of AG-UI: one projection for all."""
    shared = SharedProjection(Projector(ECHO))
    return [shared.reader(0) for _ in range(READERS)]


def one_projection() -> list[Encoder]:
    """In the format of AG-UI: one reader."""
    return [agui_encoder(Projector(ECHO))]


def main() -> None:
    """Measure and print."""
    records = batches()
    rows = (
        (f"{READERS} with their own", own, own_projections),
        (f"{READERS} shared", shared, shared_projection),
        ("one", alone, one_projection),
    )
    print(f"{'us per delta':<20} {'canonical':>10} {'AG-UI':>10}")
    for name, canonical, agui in rows:
        print(f"{name:<20} {cost(canonical, records):>10.1f} {cost(agui, records):>10.1f}")


if __name__ == "__main__":
    main()
