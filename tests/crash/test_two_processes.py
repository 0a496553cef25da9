"""Two servers over one PostgreSQL: a run is anybody's to read, to repeat and to cancel, and nobody's twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.crash.process import ServerProcess, server
from tests.crash.test_kill import types
from tests.serving import JsonObject, ask, events_in
from tests.stores import database_name, drop_database, make_database

pytestmark = [pytest.mark.needs_postgres, pytest.mark.timeout(180)]

LEASE_S = 1.5


@asynccontextmanager
async def pair(**settings: Any) -> AsyncGenerator[tuple[ServerProcess, ServerProcess], None]:
    """Two servers over one new database."""
    settings = {"lease_s": LEASE_S, **settings}
    name = database_name("pair")
    url = await make_database(name)
    try:
        async with server(url, **settings) as a, server(url, **settings) as b:
            yield a, b
    finally:
        await drop_database(name)


async def runs_on(process: ServerProcess) -> list[JsonObject]:
    return (await process.get("/api/agent-runs"))["runs"]


def without_times(events: list[JsonObject]) -> list[JsonObject]:
    return [{name: value for name, value in event.items() if name != "timestamp"} for event in events]


async def test_a_run_on_one_process_is_followed_on_another_to_its_end():
    async with pair() as (a, b), a.streaming(ask("/tokens 200 5")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
        facts = await b.facts(stream.run_id)
        await stream.to_the_end()
        assert types(facts)[-1] == "run.completed"
        assert [fact["seq"] for fact in facts] == list(range(1, len(facts) + 1))
        assert facts == await a.facts(stream.run_id)


async def test_a_run_on_one_process_is_cancelled_on_another():
    async with pair() as (a, b), a.streaming(ask("/tokens 5000 5")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
        response = await b.http.post(f"/api/agent-runs/{stream.run_id}/cancel", params={"wait": 20})
        assert (response.status_code, response.json()["status"]) == (200, "cancelled")
        await stream.to_the_end()
        assert stream.events[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR")
        facts = await b.facts(stream.run_id)
        assert [kind for kind in types(facts) if kind.startswith("run.")] == [
            "run.started",
            "run.cancelling",
            "run.cancelled",
        ]
        assert facts[-1]["payload"]["external_stop_confirmed"] is True


async def test_the_same_request_on_another_process_is_answered_by_the_first_run_while_it_speaks():
    body = ask("/tokens 200 5")
    async with pair() as (a, b), a.streaming(body) as first:
        await first.until("TEXT_MESSAGE_CONTENT")
        async with b.streaming(body) as second:
            await first.to_the_end()
            await second.to_the_end()
        assert second.run_id == first.run_id
        assert without_times(second.events) == without_times(first.events)
        assert await b.post(body) == await a.post(body)
        assert len(await runs_on(b)) == 1


async def test_twins_at_the_same_moment_are_one_run():
    async with pair() as (a, b):
        for number in range(10):
            body = ask("/tokens 20 1", thread=f"t{number}")
            one, other = await asyncio.gather(a.http.post("/", json=body), b.http.post("/", json=body))
            assert one.headers["x-run-id"] == other.headers["x-run-id"]
            assert without_times(events_in(one.content)) == without_times(events_in(other.content))
        assert len(await runs_on(a)) == 10


async def test_a_thread_is_busy_for_every_process():
    async with pair() as (a, b), a.streaming(ask("/tokens 5000 5")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
        response = await b.http.post("/", json=ask("Me too", run="r2", message="u2"))
        assert (response.status_code, response.json()["code"]) == (409, "thread_busy")
        assert response.json()["details"]["run_id"] == stream.run_id


async def test_the_run_of_a_killed_process_is_closed_by_the_other_and_its_readers_are_told():
    async with pair() as (a, b), a.streaming(ask("/tokens 5000 5")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
        following = asyncio.create_task(b.facts(stream.run_id))
        await a.kill()
        facts = await following
        assert types(facts)[-1] == "run.interrupted"
        assert facts[-1]["payload"]["reason"] == "executor_lost"
        answer = await b.post(ask("Hi", run="r2", message="u2"))
        assert answer[-1]["type"] == "RUN_FINISHED"


async def test_a_process_that_was_paused_beyond_its_lease_can_append_nothing_more():
    async with pair() as (a, b), a.streaming(ask("/tokens 5000 5")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
        a.signal(signal.SIGSTOP)
        facts = await b.facts(stream.run_id)
        assert types(facts)[-1] == "run.interrupted"
        a.signal(signal.SIGCONT)
        await stream.to_the_end()
        assert await a.facts(stream.run_id) == facts
        shown = [event["delta"] for event in stream.events if event["type"] == "TEXT_MESSAGE_CONTENT"]
        stored = [fact["payload"]["delta"] for fact in facts if fact["event_type"] == "message.delta"]
        assert "".join(stored).startswith("".join(shown))
        answer = await a.post(ask("Hi", run="r2", message="u2"))
        assert answer[-1]["type"] == "RUN_FINISHED"


async def test_a_reader_elsewhere_keeps_a_run_alive_that_nobody_reads_here():
    async with pair(disconnect_grace_s=3) as (a, b):
        async with a.streaming(ask("/tokens 1200 5")) as stream:
            await stream.until("TEXT_MESSAGE_CONTENT")
            url = f"/api/agent-runs/{stream.run_id}/events"
            following = b.http.stream("GET", url)
            elsewhere = await following.__aenter__()
            pieces = elsewhere.aiter_bytes()
            read = await anext(pieces)
        try:
            async for piece in pieces:
                read += piece
        finally:
            await following.__aexit__(None, None, None)
        assert types(events_in(read))[-1] == "run.completed"
