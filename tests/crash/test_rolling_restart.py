"""Processes that are exchanged while runs are alive: the runs go on, and so does everybody who reads them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest

from tests.crash.process import ServerProcess, server
from tests.serving import JsonObject, ask, events_in
from tests.stores import database_name, drop_database, make_database
from tests.words import script

pytestmark = [pytest.mark.needs_postgres, pytest.mark.timeout(180)]

RUNS = 60
ROUND = {"text": "Let me see. ", "tool_calls": [{"name": "slow_tool", "arguments": {"seconds": 0.2}}]}
WORK = script(*[ROUND] * 8)
OVER = ("succeeded", "failed", "interrupted", "cancelled")


@asynccontextmanager
async def database(purpose: str) -> AsyncGenerator[str, None]:
    name = database_name(purpose)
    url = await make_database(name)
    try:
        yield url
    finally:
        await drop_database(name)


async def begun(process: ServerProcess, count: int) -> list[str]:
    """So many runs at work in this process, each of several rounds with a tool."""

    async def one() -> str:
        session = (await process.http.post("/api/sessions", json={})).raise_for_status().json()["session_id"]
        path, key = f"/api/sessions/{session}/messages", {"idempotency-key": session}
        response = await process.http.post(path, json={"content": WORK}, headers=key)
        return response.raise_for_status().json()["run_id"]

    return [await one() for _ in range(count)]


async def ended(process: ServerProcess, run_id: str) -> JsonObject:
    """The run's record once it is over."""
    async with asyncio.timeout(90):
        while True:
            record = await process.get(f"/api/agent-runs/{run_id}")
            if record["status"] in OVER:
                return record
            await asyncio.sleep(0.1)


async def test_at_a_rolling_restart_the_runs_that_are_alive_finish():
    async with database("rolling") as url, AsyncExitStack() as processes:
        a = await processes.enter_async_context(server(url, drain_s=5, lease_s=5))
        b = await processes.enter_async_context(server(url, drain_s=5, lease_s=5))
        runs = await begun(a, RUNS // 2) + await begun(b, RUNS // 2)
        for old in (a, b):  # one after the other, each with its successor already there
            new = await processes.enter_async_context(server(url, drain_s=5, lease_s=5))
            old.signal(signal.SIGTERM)
            assert await old.ended(30) in (0, -signal.SIGTERM)
            assert "Traceback" not in await old.log()
        records = [await ended(new, run_id) for run_id in runs]
        finished = [record for record in records if record["status"] == "succeeded"]
        assert len(finished) >= 0.99 * RUNS, [record["status"] for record in records]
        for run_id in runs[:: RUNS // 6]:
            response = await new.http.get(f"/api/agent-runs/{run_id}/events")
            facts = events_in(response.raise_for_status().content)
            assert [fact["seq"] for fact in facts] == list(range(1, len(facts) + 1))
            kinds = [fact["event_type"] for fact in facts]
            assert kinds.count("run.completed") == 1
            begun_calls = [f["payload"]["tool_call_id"] for f in facts if f["event_type"] == "tool.execution.started"]
            assert len(begun_calls) == len(set(begun_calls)) == 8, "no tool is executed twice"
            rounds = [f["payload"]["round"] for f in facts if f["event_type"] == "round.started"]
            assert rounds == list(range(1, 10))


async def test_who_reads_a_run_that_is_handed_over_is_cut_off_and_comes_back_with_a_cursor():
    async with database("cut") as url, server(url, drain_s=5) as a, server(url, drain_s=5) as b:
        (run_id,) = await begun(a, 1)
        received: list[JsonObject] = []
        broke = False
        try:
            async with a.http.stream("GET", f"/api/agent-runs/{run_id}/events") as response:
                rest = b""
                async for piece in response.aiter_bytes():
                    *frames, rest = (rest + piece).split(b"\n\n")
                    received += [event for frame in frames for event in events_in(frame)]
                    if len(received) > 5 and a.process.returncode is None:
                        a.signal(signal.SIGTERM) if not broke else None
                        broke = True
        except httpx2.HTTPError:
            broke = True
        else:
            assert received[-1]["event_type"] == "run.completed", "a clean end is the run's end"
        assert broke
        cursor = {"last-event-id": str(received[-1]["seq"])}
        response = await b.http.get(f"/api/agent-runs/{run_id}/events", headers=cursor)
        received += events_in(response.content)
        assert [event["seq"] for event in received] == list(range(1, len(received) + 1))
        assert received[-1]["event_type"] == "run.completed"


async def test_workers_behind_one_address_are_exchanged_by_sighup_and_nobody_notices():
    async with database("workers") as url, server(url, workers=2, drain_s=5, lease_s=5) as parent:
        runs = await begun(parent, 12)
        parent.signal(signal.SIGHUP)
        for _ in range(20):
            assert (await parent.post(ask("Hi", thread=f"t{_}")))[-1]["type"] == "RUN_FINISHED"
        records = [await ended(parent, run_id) for run_id in runs]
        assert {record["status"] for record in records} == {"succeeded"}
        parent.signal(signal.SIGTERM)
        assert await parent.ended(30) in (0, -signal.SIGTERM)
        assert "Traceback" not in await parent.log()
