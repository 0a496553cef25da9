"""The store in PostgreSQL: events a second, how long a commit takes, and how long until another process has it.

    python -m bench.postgres [--events 20000] [--url postgresql://postgres@127.0.0.1:5432/postgres]

A database is made on that server and dropped afterwards. The bare row inserts the same events with one `unnest`
statement a batch and keeps no run record. Absolute numbers belong to the machine: compare the ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from statistics import quantiles
from urllib.parse import urlsplit

import asyncpg

from bench.journal import NOW, delta, opening, produced
from runtime.events import MessageDelta
from runtime.journal import Started
from runtime.journal.drafts import drafts_of
from runtime.journal.postgres import PostgresStore
from runtime.journal.tail import Tail
from runtime.journal.wakes import End, Wake

URL = "postgresql://postgres@127.0.0.1:5432/postgres"
BARE_BATCH = 256
FOLLOWED = 400
PAUSE_S = 0.01
IDLE = 1000
IDLE_S = 10.0

_BARE = """
INSERT INTO agui_bridge.events (
    run_no, seq, root_seq, event_type, occurred_at, recorded_at, payload, payload_checksum, schema_version
) SELECT 0, seq, seq, 'message.delta', $1, $1, payload, checksum, 1
FROM unnest($2::bigint[], $3::bytea[], $4::bytea[]) AS e (seq, payload, checksum)
"""


async def bare_rate(url: str, events: int, batch: int) -> float:
    """The floor: encoded events into the same table, one statement a batch."""
    connection = await asyncpg.connect(url)
    began = time.perf_counter()
    for first in range(1, events + 1, batch):
        seqs = list(range(first, first + batch))
        drafts = drafts_of([delta(seq) for seq in seqs])
        await connection.fetch(_BARE, NOW, seqs, [d.payload for d in drafts], [d.checksum for d in drafts])
    rate = events / (time.perf_counter() - began)
    await connection.close()
    return rate


async def store_rate(url: str, producers: int, size: int, events: int, first_run: int) -> float:
    """Each producer has a run of its own, appends `size` events at a time and waits for each commit."""
    store = PostgresStore(url)
    await store.open()
    try:
        return await produced(store, producers, size, events, first_run)
    finally:
        await store.close()


async def commit_times(url: str, commits: int, first_run: int) -> list[float]:
    """How long one delta's append takes, alone, in ms."""
    store = PostgresStore(url)
    await store.open()
    begun = await store.begin_run(opening(first_run))
    assert isinstance(begun, Started)
    times: list[float] = []
    for seq in range(1, commits + 1):
        began = time.perf_counter()
        await store.append(begun.run.run_id, 1, seq, [delta(seq)], NOW)
        times.append((time.perf_counter() - began) * 1000)
    await store.close()
    return times


async def write_for_a_follower(url: str, number: int) -> None:
    """The other process: append now and then, wake after each commit, and print when each was committed."""
    store = PostgresStore(url)
    read = asyncio.Event()
    store.subscribe(lambda _: read.set())
    await store.open()
    begun = await store.begin_run(opening(number))
    assert isinstance(begun, Started)
    print(begun.run.run_id, flush=True)
    await read.wait()
    committed: list[int] = []
    for seq in range(1, FOLLOWED + 1):
        await store.append(begun.run.run_id, 1, seq, [MessageDelta("m", "p", 0, "tok ")], NOW)
        committed.append(time.monotonic_ns())
        await store.wake(Wake("events", begun.run.run_id, seq + 1))
        await asyncio.sleep(PAUSE_S)
    print(*committed, flush=True)
    await store.close()


async def follow_times(url: str, number: int) -> list[float]:
    """From a commit in another process to a reader here that has the event, in ms."""
    store = PostgresStore(url)
    tail = Tail(store)
    store.subscribe(tail.elsewhere.heard)
    await store.open()
    command = [sys.executable, "-m", "bench.postgres", "--url", url, "--write", str(number)]
    writer = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert writer.stdout is not None
    run_id = (await writer.stdout.readline()).decode().strip()
    cursor = tail.follow(run_id, 0)
    seen: list[int] = []
    while len(seen) <= FOLLOWED:
        records = await cursor.next()
        seen += [time.monotonic_ns()] * len(records)
    cursor.close()
    committed = [int(word) for word in (await writer.stdout.readline()).split()]
    await writer.wait()
    await tail.elsewhere.close()
    await store.close()
    return [(there - here) / 1e6 for here, there in zip(committed, seen[1:], strict=True)]


class IdleStore(PostgresStore):
    """A store that knows when all readers wait."""

    def __init__(self, url: str):
        super().__init__(url)
        self.all_wait = asyncio.Event()

    async def ends(self, run_ids: Sequence[str]) -> dict[str, End]:
        if len(run_ids) == IDLE:
            self.all_wait.set()
        return await super().ends(run_ids)


async def idle_share(url: str, first_run: int) -> float:
    """The share of a core that readers cost who all wait for runs of another process, each for its own."""
    owner, store = PostgresStore(url), IdleStore(url)
    tail = Tail(store)
    await owner.open()
    await store.open()
    for number in range(first_run, first_run + IDLE):
        await owner.begin_run(opening(number))
    cursors = [tail.follow(f"run_{number:020d}", 1) for number in range(first_run, first_run + IDLE)]
    waiting = [asyncio.create_task(cursor.next()) for cursor in cursors]
    await store.all_wait.wait()
    spent, began = time.process_time(), time.perf_counter()
    await asyncio.sleep(IDLE_S)
    share = (time.process_time() - spent) / (time.perf_counter() - began)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for cursor in cursors:
        cursor.close()
    await tail.elsewhere.close()
    await store.close()
    await owner.close()
    return share


def show(name: str, times: list[float]) -> None:
    cuts = quantiles(times, n=100)
    print(f"{name:<46} p50 {cuts[49]:6.2f} ms   p99 {cuts[98]:6.2f} ms")


async def measure(url: str, events: int) -> None:
    admin = await asyncpg.connect(url)
    name = f"agui_bridge_bench_{int(time.time())}"
    await admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    database = urlsplit(url)._replace(path=f"/{name}").geturl()
    try:
        store = PostgresStore(database)
        await store.open()
        await store.close()
        few = max(events // 10, 1)
        bare = {1: await bare_rate(database, few, 1), BARE_BATCH: 0.0}
        print(f"{'bare, 1 a commit':<46} {bare[1]:>9,.0f} events/s")
        connection = await asyncpg.connect(database)
        await connection.execute("DELETE FROM agui_bridge.events")
        await connection.close()
        bare[BARE_BATCH] = await bare_rate(database, events, BARE_BATCH)
        print(f"{f'bare, {BARE_BATCH} a commit':<46} {bare[BARE_BATCH]:>9,.0f} events/s")
        first_run = 1
        for producers, size, count, floor in (
            (1, 1, few, 1),
            (1, 64, events, BARE_BATCH),
            (200, 1, events, BARE_BATCH),
            (200, 8, events, BARE_BATCH),
        ):
            rate = await store_rate(database, producers, size, count, first_run)
            first_run += producers
            row = f"{producers} producers, {size} an append"
            print(f"{row:<46} {rate:>9,.0f} events/s  {rate / bare[floor]:6.2f} of bare")
        show("a commit alone", await commit_times(database, few, first_run))
        show("from a commit to a reader in another process", await follow_times(database, first_run + 1))
        share = await idle_share(database, first_run + 2)
        print(f"{f'{IDLE} idle followers of other processes':<46} {share:>9.2%} of a core")
    finally:
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--url", default=URL)
    parser.add_argument("--write", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write is not None:
        asyncio.run(write_for_a_follower(options.url, options.write))
    else:
        asyncio.run(measure(options.url, options.events))


if __name__ == "__main__":
    main()
