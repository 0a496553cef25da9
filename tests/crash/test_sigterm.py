"""SIGTERM: nothing new begins, what can finish does, what cannot is told so, and the process is gone in time."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from tests.crash.process import ServerProcess, server
from tests.serving import JsonObject, ask
from tests.words import script

ENDED = (0, -signal.SIGTERM)
CALL = script({"text": "Let me see. ", "tool_calls": [{"name": "slow_tool", "arguments": {"seconds": 60}}]})


async def draining(running: ServerProcess) -> None:
    """Return when the server has begun to end."""
    ready = 200
    while ready == 200:
        ready = (await running.http.get("/ready")).status_code
    assert ready == 503


def closed(events: list[JsonObject]) -> bool:
    """Whether everything that was begun in a stream was ended before its last event."""
    opened: list[str] = []
    for event in events[1:-1]:
        what, _, step = event["type"].rpartition("_")
        if step in ("START", "STARTED"):
            opened.append(what)
        elif step in ("END", "FINISHED"):
            opened.remove(what)
    return not opened


async def test_a_stream_that_cannot_finish_is_told_so_and_the_restart_is_clean(tmp_path: Path):
    store = tmp_path / "store.db"
    async with server(store, drain_s=0.2) as running:
        async with running.streaming(ask("/tokens 20000 5")) as text, running.streaming(ask(CALL, "t2")) as call:
            await text.until("TEXT_MESSAGE_CONTENT", 3)
            await call.until("TOOL_CALL_END")
            begun = time.monotonic()
            running.signal(signal.SIGTERM)
            for stream in (text, call):
                await stream.to_the_end()
                assert (stream.events[-1]["type"], stream.events[-1]["code"]) == ("RUN_ERROR", "run_interrupted")
                assert closed(stream.events)
            assert call.events[-2]["type"] in ("STEP_FINISHED", "MESSAGES_SNAPSHOT", "TOOL_CALL_RESULT")
        assert await running.ended() in ENDED
        assert time.monotonic() - begun < 5
        assert "Traceback" not in await running.log()
    async with server(store) as again:
        for stream in (text, call):
            facts = await again.facts(stream.run_id)
            assert facts[-1]["event_type"] == "run.interrupted"
            assert facts[-1]["payload"]["reason"] == "shutdown"
            assert max(seq for seq, _ in stream.received if seq is not None) == facts[-1]["seq"]
        assert (await again.post(ask("Hi", run="r9", message="u9")))[-1]["type"] == "RUN_FINISHED"
        again.signal(signal.SIGTERM)
        assert await again.ended() in ENDED
        assert "interrupted" not in await again.log()


async def test_a_run_that_can_finish_in_time_does_and_nothing_new_begins_meanwhile(tmp_path: Path):
    async with server(tmp_path / "store.db", drain_s=20) as running:
        async with running.streaming(ask("/tokens 60 20")) as stream:
            await stream.until("TEXT_MESSAGE_CONTENT")
            running.signal(signal.SIGTERM)
            await draining(running)
            refused = await running.http.post("/", json=ask("Hi", thread="t2"))
            assert (refused.status_code, refused.json()["code"]) == (503, "shutting_down")
            assert refused.headers["retry-after"] == "1"
            await stream.to_the_end()
            kinds = [event["type"] for event in stream.events]
            assert kinds[-1] == "RUN_FINISHED"
            assert kinds.count("TEXT_MESSAGE_CONTENT") == 60
        assert await running.ended(5) in ENDED


async def test_a_second_sigterm_ends_it_at_once(tmp_path: Path):
    store = tmp_path / "store.db"
    async with server(store, drain_s=60) as running, running.streaming(ask("/tokens 20000 5")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
        running.signal(signal.SIGTERM)
        await draining(running)
        begun = time.monotonic()
        running.signal(signal.SIGTERM)
        assert await running.ended(10) in ENDED
        assert time.monotonic() - begun < 3
        await stream.to_the_end()
        assert "RUN_FINISHED" not in [event["type"] for event in stream.events]
    async with server(store) as again:
        assert (await again.facts(stream.run_id))[-1]["event_type"] == "run.interrupted"


async def test_connections_that_only_wait_do_not_hold_the_exit(tmp_path: Path):
    async with server(tmp_path / "store.db", drain_s=60) as running, httpx2.AsyncClient(base_url=running.url) as idle:
        assert (await idle.get("/health")).status_code == 200
        at = urlsplit(running.url)
        silent = [await asyncio.open_connection(at.hostname, at.port) for _ in range(3)]
        silent[0][1].write(b"POST / HTTP/1.1\r\nhost: " + at.netloc.encode() + b"\r\n")
        begun = time.monotonic()
        running.signal(signal.SIGTERM)
        assert await running.ended() in ENDED
        assert time.monotonic() - begun < 4
        for _, writer in silent:
            writer.close()
