"""What sixteen readers of one run cost in encoding: each with an encoder of its own, all with one, and one alone.

`python -m bench.readers`; CPU time of one process for each delta, records in batches as a live run publishes them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from agui_bridge.encoders import Encoder, SharedEncoder, canonical_encoder
from runtime.events import MessageDelta, Record
from runtime.journal.changes import drafts_of, records_of
from runtime.run import RUNNING, RunRecord

READERS = 16
DELTAS = 4_000
BATCH = 4
TURNS = 7
NOW = 1_750_000_000_000

RUN = RunRecord("run_1", "-", "me", "thr_1", "ses_1", "a", "r1", "d", 1, RUNNING, 0, 0, 1, "run_1", NOW)


def batches() -> list[list[Record]]:
    """The records of a run that says many words."""
    deltas = [MessageDelta("msg_1", "p0", 0, f"tok {number} ") for number in range(DELTAS)]
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


def main() -> None:
    """Measure and print."""
    records = batches()
    for name, readers in ((f"{READERS} with their own", own), (f"{READERS} shared", shared), ("one", alone)):
        print(f"{name:<20} {cost(readers, records):7.1f} us per delta")


if __name__ == "__main__":
    main()
