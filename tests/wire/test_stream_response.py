"""The streaming response: what it looks like on the wire, and what becomes of it when one of its two ends goes away."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import Generator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount

from agui_bridge import Agent, Bridge, Settings
from agui_bridge.demo import demo_agent
from agui_bridge.encoders import canonical_encoder
from agui_bridge.web.stream import EventStream
from runtime.authority import ANONYMOUS
from runtime.errors import StoreError
from runtime.events import Record
from runtime.journal.memory import MemoryJournal
from runtime.samples import TextDelta
from runtime.testing import ScriptedProvider, says
from tests.serving import Served, ask, events_in, listening, serving
from tests.wire.sockets import eventually, post, unchunked, wire


def gated(gate: asyncio.Event, rounds: int = 1) -> Agent:
    """An agent that says one word, and goes on when the gate is open."""
    return Agent("gated", model=ScriptedProvider(*([TextDelta("one "), gate, *says("two")] for _ in range(rounds))))


# --- what it looks like -------------------------------------------------------------------------------------------


async def test_the_headers_keep_proxies_from_holding_frames_back_and_name_the_run():
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("hello"))
        run_id = answer.headers["x-run-id"]
        assert run_id.startswith("run_")
        assert answer.headers["location"] == f"/api/agent-runs/{run_id}"
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-cache, no-transform"
        assert answer.headers["x-accel-buffering"] == "no"
        assert "content-length" not in answer.headers
        nothing = await served.run(ask("", thread="unknown", messages=[]))
        assert nothing.headers["cache-control"] == "no-cache, no-transform"
        assert "x-run-id" not in nothing.headers


@pytest.mark.requirement("R-004", "R-005", "R-008")
async def test_the_body_is_one_event_a_frame_with_bare_line_feeds_and_ends_behind_its_one_terminal():
    text = "a line\nfeed, a return\r\n, a separator\u2028, a next line\u0085"
    async with serving(demo_agent()) as served, wire(served.url) as bare:
        await bare.send(post(ask("/script " + json.dumps({"rounds": [{"text": text}]}))))
        body = unchunked(await bare.rest())  # the server closes: nothing may follow
    assert b"\r" not in body
    assert b"[DONE]" not in body
    assert body.endswith(b"\n\n")
    frames = body.removesuffix(b"\n\n").split(b"\n\n")
    for frame in frames:
        *head, data = frame.split(b"\n")
        assert data.startswith(b"data: {")
        assert not head or (len(head) == 1 and head[0].startswith(b"id: "))
    types = [event["type"] for event in events_in(body)]
    assert len(types) == len(frames)
    assert [each for each in types if each in ("RUN_FINISHED", "RUN_ERROR")] == [types[-1]]
    for separator in ("\u2028", "\u2029", "\u0085"):
        assert separator.encode() not in body


async def test_a_kept_connection_carries_one_stream_after_the_other():
    async with serving(demo_agent()) as served, wire(served.url) as kept:
        for run in ("r1", "r2"):
            kept.seen = b""
            await kept.send(post(ask("hello", run=run, message=f"for-{run}"), connection="keep-alive"))
            answer = await kept.until(b"\r\n0\r\n\r\n")
            assert events_in(unchunked(answer))[-1]["runId"] == run


# --- a client that goes away --------------------------------------------------------------------------------------


@pytest.fixture
def no_collector() -> Generator[None, None, None]:
    """What is tidied up here is not tidied up by luck."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
async def test_a_client_that_goes_away_is_noticed_at_once():
    gate = asyncio.Event()
    async with serving(gated(gate), on_disconnect="continue") as served:
        async with wire(served.url) as first:
            await first.send(post(ask("hello")))
            head = await first.until(b'"delta":"one "')
            run_id = head.partition(b"x-run-id: ")[2].split(b"\r\n")[0].decode()
            async with wire(served.url) as second:
                await second.send(f"GET /api/agent-runs/{run_id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
                await second.until(b"message.delta")
                assert served.bridge.supervisor.readers(run_id) == 2
                second.reset()
                await eventually(lambda: served.bridge.supervisor.readers(run_id) == 1)
        await eventually(lambda: served.bridge.supervisor.readers(run_id) == 0)
        gate.set()
        facts = await served.get(f"/api/agent-runs/{run_id}/events")
        assert facts.events[-1]["event_type"] == "run.completed"


async def test_a_hundred_clients_that_drop_out_leave_no_task_and_no_error_behind(caplog: pytest.LogCaptureFixture):
    gate = asyncio.Event()
    async with serving(gated(gate, rounds=100), disconnect_grace_s=0) as served:
        await served.get("/health")
        before = asyncio.all_tasks()

        async def drop_out(number: int) -> None:
            async with wire(served.url) as client:
                await client.send(post(ask("hello", thread=f"t{number}")))
                if number % 3:
                    await client.until(b"200 OK" if number % 3 == 1 else b'"delta":"one "')
                if number % 2:
                    client.reset()

        await asyncio.gather(*(drop_out(number) for number in range(100)))
        await eventually(lambda: asyncio.all_tasks() <= before, "the end of every task")
        assert await served.bridge.supervisor.journal.active_runs() == []
        assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
        gate.set()
        assert (await served.run(ask("hello", thread="afterwards"))).types[-1] == "RUN_FINISHED"


async def test_a_long_replay_to_a_client_that_left_stops():
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("/tokens 4000"))
        supervisor = served.bridge.supervisor
        run = await supervisor.run(ANONYMOUS, answer.headers["x-run-id"])
        cursor = supervisor.follow(run.run_id, 0)
        stream = EventStream(cursor, canonical_encoder(run, full=False), keep_alive_s=60)
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)  # as a server does when nobody is there: taken at once, and thrown away

        await stream({"type": "http", "method": "GET"}, receive, send)
        assert len(sent) <= 2
        assert supervisor.readers(run.run_id) == 0


async def test_a_send_that_fails_because_nobody_is_there_closes_the_reader():
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("hello"))
        supervisor = served.bridge.supervisor
        run = await supervisor.run(ANONYMOUS, answer.headers["x-run-id"])
        stream = EventStream(supervisor.follow(run.run_id, 0), canonical_encoder(run, full=False), keep_alive_s=60)
        forever = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await forever.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            raise OSError("the peer is gone")

        await stream({"type": "http", "method": "GET"}, receive, send)
        assert supervisor.readers(run.run_id) == 0


@pytest.mark.requirement("R-075")
async def test_a_run_whose_only_reader_left_is_cancelled_after_the_grace():
    gate = asyncio.Event()
    async with serving(gated(gate), disconnect_grace_s=0) as served:
        async with wire(served.url) as client:
            await client.send(post(ask("hello")))
            head = await client.until(b'"delta":"one "')
        run_id = head.partition(b"x-run-id: ")[2].split(b"\r\n")[0].decode()
        facts = await served.get(f"/api/agent-runs/{run_id}/events")
        assert facts.events[-1]["event_type"] == "run.cancelled"


# --- a stream that cannot go on -----------------------------------------------------------------------------------


class FailingJournal(MemoryJournal):
    """Reads one page, then no more."""

    async def read(self, run_id: str, after: int, limit: int) -> list[Record]:
        if after:
            raise StoreError("The disk is on fire.")
        return await super().read(run_id, after, limit)


class Passing(BaseHTTPMiddleware):
    """Does nothing, in Starlette's costly way."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        return await call_next(request)


SURROUNDINGS: dict[str, list[Middleware]] = {
    "alone": [],
    "behind BaseHTTPMiddleware": [Middleware(Passing)],
    "behind two of it and compression": [Middleware(Passing), Middleware(GZipMiddleware), Middleware(Passing)],
}


@pytest.mark.parametrize("middleware", SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
@pytest.mark.requirement("R-013")
async def test_a_stream_that_cannot_go_on_is_cut_off_and_never_ended(
    middleware: list[Middleware], caplog: pytest.LogCaptureFixture
):
    bridge = Bridge(demo_agent(), store=FailingJournal(), settings=Settings.model_validate({"drain_s": 0}))
    host = Starlette(routes=[Mount("/", bridge.app)], middleware=middleware, lifespan=bridge.lifespan)
    async with listening(host) as url:
        served = Served(bridge, url)
        async with served.http:
            run = await served.run(ask("/tokens 1000"))
        async with wire(url) as reader:
            path = run.headers["location"]
            await reader.send(
                f"GET {path}/events HTTP/1.1\r\nhost: localhost\r\naccept-encoding: gzip\r\n\r\n".encode()
            )
            answer = await reader.rest()
        assert b"event: run.started" in answer
        assert b"event: run.completed" not in answer
        assert b"0\r\n\r\n" not in answer[-8:]
        assert bridge.supervisor.readers(run.headers["x-run-id"]) == 0
        told = [record.getMessage() for record in caplog.records if record.name == "agui_bridge.web"]
        assert told == [f"the stream of run {run.headers['x-run-id']} is cut off: The disk is on fire."]
