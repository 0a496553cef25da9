"""How many events a second the SQLite journal takes, as a share of what a bare `executemany` loop does in the same run.

    python bench/journal.py [--events 20000]

One delta an append, awaited, is the worst case; an engine appends what has gathered while it waited. The bare loop has
one run and keeps no run record. Absolute numbers belong to the machine: compare the ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from runtime.events import Event, MessageDelta, RunStarted
from runtime.journal import Journal, Opening, Started
from runtime.journal.drafts import drafts_of, placed
from runtime.journal.queries import load
from runtime.journal.sqlite import SqliteJournal
from runtime.run import QUEUED, RunRecord

BARE_BATCH = 200
NOW = 1_750_000_000_000


def delta(number: int) -> Event:
    return MessageDelta("msg_0123456789abcdef0123", "part_1", 0, f"tok {number} ")


def opening(number: int) -> Opening:
    run_id = f"run_{number:020d}"
    run = RunRecord(run_id, "-", "me", f"thread_{number}", None, "bench", "r1", "d", 1, QUEUED, 0, 0, 1, run_id, NOW)
    return Opening(run, None, [RunStarted(NOW, "r1", "bench", "d", [])], NOW)


async def journal_rate(path: Path, producers: int, events: int, synchronous: str, size: int = 1) -> float:
    """What `produced` measures, in a new file."""
    journal = SqliteJournal(path, synchronous=synchronous)
    await journal.open()
    rate = await produced(journal, producers, size, events)
    await journal.close()
    return rate


async def produced(journal: Journal, producers: int, size: int, events: int, first_run: int = 0) -> float:
    """Each producer has a run of its own, appends `size` events at a time and waits for each commit."""
    numbers = range(first_run, first_run + producers)
    for number in numbers:
        begun = await journal.begin_run(opening(number))
        assert isinstance(begun, Started)
    appends = events // producers // size

    async def produce(number: int) -> None:
        run_id = f"run_{number:020d}"
        for first in range(1, appends * size + 1, size):
            await journal.append(run_id, 1, first, [delta(first + n) for n in range(size)], NOW)

    began = time.perf_counter()
    await asyncio.gather(*(produce(number) for number in numbers))
    return producers * appends * size / (time.perf_counter() - began)


def bare_rate(path: Path, events: int, synchronous: str, batch: int) -> float:
    """The floor: encoded events into the same table, `batch` a transaction, nothing else."""
    asyncio.run(journal_rate(path, 1, 0, synchronous))
    sql = load("sqlite")["append_event"]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        began = time.perf_counter()
        for first in range(2, events + 2, batch):
            seqs = range(first, first + batch)
            drafts = drafts_of([delta(seq) for seq in seqs])
            rows = [
                (
                    1,
                    row.seq,
                    row.seq,
                    "message.delta",
                    NOW,
                    NOW,
                    row.draft.payload,
                    row.draft.checksum,
                    1,
                    "-",
                    row.from_seq,
                )
                for row in placed(drafts, first - 1)
            ]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(sql, rows)
            connection.execute("COMMIT")
        return events / (time.perf_counter() - began)


def measure(folder: str, name: str, work: Callable[[Path], float], bare: float | None = None) -> float:
    rate = work(Path(folder, name.replace(" ", "-").replace(",", "") + ".db"))
    share = "" if bare is None else f"  {rate / bare:6.2f} of bare"
    print(f"{name:<46} {rate:>9,.0f} events/s{share}")
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--folder", default=None, help="where the files go (default: the system's temporary folder)")
    options = parser.parse_args()
    events: int = options.events
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        one = max(events // 10, 1)
        for sync in ("full", "normal"):
            bare_one = measure(folder, f"{sync}, bare, 1 a commit", lambda p, s=sync: bare_rate(p, one, s, 1))
            bare_many = measure(
                folder, f"{sync}, bare, {BARE_BATCH} a commit", lambda p, s=sync: bare_rate(p, events, s, BARE_BATCH)
            )
            for producers, size, count, bare in (
                (1, 1, one, bare_one),
                (1, 64, events, bare_many),
                (200, 1, events, bare_many),
                (200, 8, events, bare_many),
            ):
                measure(
                    folder,
                    f"{sync}, {producers} producers, {size} an append",
                    lambda p, n=producers, c=count, s=sync, z=size: asyncio.run(journal_rate(p, n, c, s, z)),
                    bare,
                )


if __name__ == "__main__":
    main()
