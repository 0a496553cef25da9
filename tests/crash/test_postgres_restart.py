"""A database server that is cut off in the middle, again and again: what was committed stays, nothing is doubled."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from runtime.events import MessageDelta, RunCompleted, RunStarted
from runtime.journal import Opening, Started
from runtime.journal.postgres import PostgresStore
from runtime.journal.tail import Tail
from runtime.journal.wakes import Wake
from runtime.run import QUEUED, SUCCEEDED, RunRecord
from tests.crash import process
from tests.crash.test_kill import is_all_there, types
from tests.serving import ask

pytestmark = [pytest.mark.needs_pg_ctl, pytest.mark.timeout(180)]

NOW = 1_750_000_000_000
SCRIPT = Path(__file__).parents[2] / "scripts" / "start_postgres.sh"
RUNS = 6
DELTAS = 600
CRASHES = 3


@dataclass(frozen=True, slots=True)
class Server:
    """A server of the test's own."""

    url: str
    folder: str

    async def crash(self) -> None:
        """End it as a power cut would, and start it again."""
        await _script("--crash", self.folder)


async def _script(*arguments: str) -> str:
    running = await asyncio.create_subprocess_exec("sh", str(SCRIPT), *arguments, stdout=asyncio.subprocess.PIPE)
    said, _ = await running.communicate()
    assert running.returncode == 0
    return said.decode().strip()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    folder = await _script(str(port))
    yield Server(f"postgresql://postgres@127.0.0.1:{port}/postgres", folder)
    await _script("--stop", folder)


def opening(run_id: str) -> Opening:
    run = RunRecord(run_id, "-", "me", run_id, None, "a", "r", "d", 1, QUEUED, 0, 0, 1, run_id, NOW)
    return Opening(run, None, [RunStarted(NOW, "r", "a", "d", [])], NOW)


async def produce(store: PostgresStore, run_id: str, progress: list[int]) -> None:
    """A run as its executor appends it: each append behind the one before."""
    for seq in range(1, DELTAS + 1):
        await store.append(run_id, 1, seq, [MessageDelta("m", "p", 0, f"{seq}")], NOW)
        await store.wake(Wake("events", run_id, seq + 1))
        progress.append(seq)
    await store.append(run_id, 1, DELTAS + 1, [RunCompleted()], NOW)
    await store.wake(Wake("events", run_id, DELTAS + 2))


async def follow(tail: Tail, run_id: str) -> list[int]:
    seqs: list[int] = []
    cursor = tail.follow(run_id, 0)
    try:
        while records := await cursor.next():
            seqs += [record.seq for record in records]
    finally:
        cursor.close()
    return seqs


async def test_runs_and_their_readers_go_on_over_crashes_of_the_server(server: Server):
    here, there = PostgresStore(server.url), PostgresStore(server.url)
    tail = Tail(there)
    there.subscribe(tail.elsewhere.heard)
    await here.open()
    await there.open()
    run_ids = [f"run_{number}" for number in range(RUNS)]
    for run_id in run_ids:
        assert isinstance(await here.begin_run(opening(run_id)), Started)
    readers = [asyncio.create_task(follow(tail, run_id)) for run_id in run_ids]
    progress: list[int] = []
    producers = [asyncio.create_task(produce(here, run_id, progress)) for run_id in run_ids]
    for _ in range(CRASHES):
        before = len(progress)
        while len(progress) < before + RUNS * 20:
            await asyncio.wait(producers, timeout=0.01)
        assert not all(producer.done() for producer in producers)
        await server.crash()
    await asyncio.gather(*producers)
    assert await asyncio.gather(*readers) == [list(range(1, DELTAS + 3))] * RUNS
    for run_id in run_ids:
        records = await here.read(run_id, 1, DELTAS)
        assert [record.event for record in records] == [
            MessageDelta("m", "p", 0, f"{seq}") for seq in range(1, DELTAS + 1)
        ]
        run = await there.find_run(run_id)
        assert run is not None
        assert (run.status, run.last_seq) == (SUCCEEDED, DELTAS + 2)
    await tail.elsewhere.close()
    await there.close()
    await here.close()


async def test_a_run_goes_on_over_a_crash_of_the_database_or_says_why_not(server: Server):
    async with process.server(server.url) as running:
        async with running.streaming(ask("/tokens 600 5")) as stream:
            await stream.until("TEXT_MESSAGE_CONTENT", 20)
            await server.crash()
            await stream.to_the_end()
        facts = await is_all_there(running, stream)
        assert types(facts)[-1] in ("run.completed", "run.failed", "run.interrupted")
        if types(facts)[-1] == "run.failed":
            assert facts[-1]["payload"]["error"]["code"] == "store_error"
        last = max(seq for seq, _ in stream.received if seq is not None)
        rest = await running.http.get(f"/api/agent-runs/{stream.run_id}/events", headers={"last-event-id": str(last)})
        assert rest.status_code in (200, 204)
        answer = await running.post(ask("Hi", run="r2", message="u2"))
        assert answer[-1]["type"] == "RUN_FINISHED"
