"""How many bytes of journal a token of output costs in SQLite: as it is written, compacted, and when it has expired.

    python -m bench.retention [--runs 100] [--tokens 500] [--batch 8]

A token is one delta of a few letters, as models send them; `--batch` of them are committed together, which under load
are those that came while the commit before was being written. Counted are the pages in use, so that what is removed
counts at once, though the file itself does not shrink.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from runtime.canonical import digest
from runtime.events import (
    Event,
    MessageCompleted,
    MessageDelta,
    MessageStarted,
    RoundCompleted,
    RoundStarted,
    RunCompleted,
    RunStarted,
)
from runtime.journal import Opening, Session, Started
from runtime.journal.sqlite import SqliteJournal
from runtime.run import QUEUED, RunRecord

NOW = 1_750_000_000_000
WORDS = (
    "The",
    " tea",
    " is",
    " green",
    ",",
    " and",
    " a",
    " cup",
    " of",
    " it",
    " warms",
    ".",
    " Then",
    " we",
    " talk",
)


def token(number: int) -> str:
    return WORDS[number * 7 % len(WORDS)]


def opening(number: int) -> Opening:
    run_id, thread_id = f"run_{number:032x}", f"thr_{number:032x}"
    session = Session("-", "me", f"session-{number}", thread_id, "bench", None, NOW)
    run = RunRecord(
        run_id, "-", "me", thread_id, session.session_id, "bench", "r1", "d" * 64, 1, QUEUED, 0, 0, 1, run_id, NOW
    )
    said = MessageCompleted("u1", "user", "How is the tea?", digest("How is the tea?"))
    return Opening(run, session, [RunStarted(NOW, "r1", "bench", "0" * 64, []), said], NOW)


def events_of(number: int, tokens: int) -> list[Event]:
    message, part = f"msg_{number:032x}", "part_1"
    text = "".join(map(token, range(tokens)))
    content = [{"part_id": part, "kind": "text", "round": 1, "committed": True, "text": text}]
    return [
        MessageStarted(message, "assistant"),
        RoundStarted(1, "model", "bench", {"digest": "0" * 64, "items": 1}),
        *(MessageDelta(message, part, 0, token(place)) for place in range(tokens)),
        RoundCompleted(1, "final_response", "stop", [{"part_id": part, "kind": "text"}], []),
        MessageCompleted(message, "assistant", content, digest(content)),
        RunCompleted(message),
    ]


async def write(journal: SqliteJournal, number: int, tokens: int, together: int) -> None:
    begun = await journal.begin_run(opening(number))
    assert isinstance(begun, Started)
    seq, events = begun.run.last_seq, events_of(number, tokens)
    for first in range(0, len(events), together):
        batch = events[first : first + together]
        await journal.append(begun.run.run_id, 1, seq, batch, NOW)
        seq += len(batch)


def bytes_in_use(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [pages, free, size] = [
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        ]
    return (pages - free) * size


async def measure(path: Path, runs: int, tokens: int, together: int) -> None:
    journal = SqliteJournal(path, synchronous="normal")
    await journal.open()
    empty = bytes_in_use(path)

    def report(what: str, seconds: float) -> None:
        per_token = (bytes_in_use(path) - empty) / (runs * tokens)
        print(f"{what:<12} {per_token:>8.1f} bytes/token   {seconds * 1000 / runs:>7.2f} ms/run")

    began = time.perf_counter()
    for number in range(runs):
        await write(journal, number, tokens, together)
    report("written", time.perf_counter() - began)
    began = time.perf_counter()
    while due := await journal.uncompacted_runs(NOW + 1, 64):
        for run_id in due:
            await journal.compact(run_id, NOW)
    report("compacted", time.perf_counter() - began)
    began = time.perf_counter()
    while await journal.expire(NOW + 1, NOW, 64) or await journal.sweep(NOW):
        pass
    report("expired", time.perf_counter() - began)
    await journal.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args()
    text = "".join(map(token, range(options.tokens)))
    print(
        f"{options.runs} runs of {options.tokens} tokens; "
        f"the text alone is {len(text) / options.tokens:.1f} bytes/token"
    )
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder, "store.db"), options.runs, options.tokens, options.batch))


if __name__ == "__main__":
    main()
