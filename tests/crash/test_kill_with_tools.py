"""kill -9 at random points of runs with tools: nothing received is lost, nothing is executed twice, one end each."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.crash.process import ServerProcess, Stream, server
from tests.crash.test_kill import is_all_there, types
from tests.examples import NIGHTLY, profile
from tests.serving import ask
from tests.stores import database_name, drop_database, make_database
from tests.words import script

SEED = 20_262
KILLS = 100 if profile() == NIGHTLY else 25
ENDS = ("run.completed", "run.interrupted")


def notes(*texts: str) -> list[dict[str, object]]:
    return [{"name": "note", "arguments": {"text": text}} for text in texts]


WORK = script(
    {"text": "First I note three things. ", "tool_calls": notes("a", "b", "c"), "delay_ms": 1},
    {"text": "Then two more, and that is not all of it. ", "tool_calls": notes("d", "e"), "delay_ms": 1},
    {"text": "Now everything is noted, and there is nothing more to say about it. ", "delay_ms": 1},
)


@asynccontextmanager
async def place(kind: str, folder: Path) -> AsyncGenerator[Path | str, None]:
    """Where the facts are kept."""
    if kind == "sqlite":
        yield folder / "store.db"
        return
    name = database_name("kills")
    url = await make_database(name)
    try:
        yield url
    finally:
        await drop_database(name)


def executions(trace: Path) -> Counter[str]:
    return Counter(trace.read_text().split() if trace.exists() else [])


async def is_settled(running: ServerProcess, stream: Stream, trace: Path) -> None:
    """The run has all that was received, one end, and started whatever was executed, once."""
    facts = await is_all_there(running, stream)
    assert [kind in ENDS for kind in types(facts)].count(True) == 1
    assert types(facts)[-1] in ENDS
    begun = [fact["payload"]["idempotency_key"] for fact in facts if fact["event_type"] == "tool.execution.started"]
    executed = {key: times for key, times in executions(trace).items() if key.startswith(stream.run_id)}
    assert set(executed) <= set(begun)
    assert set(executed.values()) <= {1}
    committed = [fact["payload"]["tool_call_id"] for fact in facts if fact["event_type"] == "tool.call.committed"]
    answered = [fact["payload"]["tool_call_id"] for fact in facts if fact["event_type"] == "tool.call.completed"]
    assert sorted(committed) == sorted(answered)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.needs_postgres)])
async def test_kills_at_random_points_lose_nothing_and_execute_nothing_twice(kind: str, tmp_path: Path):
    chance = random.Random(SEED)
    trace = tmp_path / "trace"
    settings = {"trace": trace, "lease_s": 0.5 if kind == "postgres" else 15}
    before: list[Stream] = []
    async with place(kind, tmp_path) as store:
        for number in range(KILLS):
            async with server(store, agent="tests.crash.agents:agent", **settings) as running:
                for earlier in before[-1:]:
                    await is_settled(running, earlier, trace)
                body = ask(WORK, thread=f"t{number % 3}", run=f"r{number}", message=f"u{number}")
                async with running.streaming(body) as stream:
                    wanted = chance.randrange(1, 60)
                    while len(stream.received) < wanted and await stream.more():
                        pass
                    await asyncio.sleep(chance.random() / 100)
                    await running.kill()
                    await stream.to_the_end()
                    before.append(stream)
        async with server(store, agent="tests.crash.agents:agent", **settings) as last:
            for stream in before:
                await is_settled(last, stream, trace)
            for thread in range(3):
                body = ask(WORK, thread=f"t{thread}", run=f"last{thread}", message=f"last{thread}")
                assert (await last.post(body))[-1]["type"] == "RUN_FINISHED"
    assert executions(trace), "nothing was executed at all"
