"""The five things that the README promises, each against a real server."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import orjson

from runtime.agent import Agent
from runtime.errors import ProtocolError
from runtime.items import FunctionCall, Message
from runtime.samples import TextDelta, ToolCallDelta
from runtime.testing import ScriptedProvider, calls, says
from tests.serving import JsonObject, ask, serving

HEADERS = {"content-type": "application/json"}


async def frames_of(response: httpx2.Response) -> AsyncGenerator[str, None]:
    """The frames of an open stream, one by one."""
    buffer = ""
    async for piece in response.aiter_text():
        *frames, buffer = (buffer + piece).split("\n\n")
        for frame in frames:
            yield frame


def id_of(frame: str) -> int:
    """The id of a frame; 0 if it has none."""
    found = re.match(r"id: (\d+)\n", frame)
    return int(found[1]) if found else 0


@asynccontextmanager
async def demo_process(store: Path) -> AsyncGenerator[tuple[str, asyncio.subprocess.Process]]:
    """The demo as a process of its own over a store that stays; its URL and the process."""
    command = [sys.executable, "-m", "agui_bridge.cli", "demo", "--port", "0", "--store", f"sqlite:///{store}"]
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=nowhere, stderr=pipe)
    assert process.stderr is not None
    try:
        async for line in process.stderr:
            if (found := re.search(rb"serves demo on (http://\S+)", line)) is not None:
                yield found[1].decode(), process
                break
        else:
            raise RuntimeError("the demo did not start")
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_what_a_client_has_seen_is_there_after_the_server_was_killed(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    seen: list[str] = []
    async with demo_process(store) as (url, process), httpx2.AsyncClient(base_url=url, timeout=20) as http:
        content = orjson.dumps(ask("/tokens 5000 2"))
        async with http.stream("POST", "/", content=content, headers=HEADERS) as response:
            location = response.headers["location"]
            async for frame in frames_of(response):
                seen.append(frame)
                if len(seen) == 40:
                    process.kill()
                    await process.wait()
                    break
    async with demo_process(store) as (url, _), httpx2.AsyncClient(base_url=url, timeout=20) as http:
        again = await http.get(f"{location}/events?format=agui")
        record = await http.get(location)
    assert again.text.split("\n\n")[:40] == seen
    assert orjson.loads(again.text.strip().split("data: ")[-1])["code"] == "run_interrupted"
    assert record.json()["status"] == "interrupted"


async def test_a_reader_that_comes_back_gets_the_rest_and_nothing_twice() -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([*says("one two three")[:2], gate, *says("three four five")])
    seen: list[str] = []
    async with serving(Agent("a", model=provider)) as served:
        async with served.http.stream("POST", "/", content=orjson.dumps(ask("count")), headers=HEADERS) as response:
            events = f"{response.headers['location']}/events?format=agui"
            async for frame in frames_of(response):
                seen.append(frame)
                if '"two "' in frame:
                    break
        headers = {"last-event-id": str(id_of(seen[-1]))}
        async with served.http.stream("GET", events, headers=headers) as response:
            gate.set()
            rest = [frame async for frame in frames_of(response)]
        whole = await served.http.get(events)
    assert seen + rest == whole.text.split("\n\n")[:-1]
    ids = [id_ for frame in seen + rest if (id_ := id_of(frame))]
    assert ids == sorted(set(ids))
    assert "RUN_FINISHED" in rest[-1]


async def test_a_repeated_request_gets_the_first_run_and_asks_the_model_once() -> None:
    executed: list[str] = []

    def note(text: str) -> str:
        """Write something down."""
        executed.append(text)
        return "Noted."

    provider = ScriptedProvider(calls(("note", '{"text": "milk"}')), says("It is written down."))
    async with serving(Agent("a", model=provider, tools=[note])) as served:
        first = await served.run(ask("remember milk"))
        second = await served.run(ask("remember milk"))
    assert "RUN_FINISHED" in first.types
    assert second.body == first.body
    assert second.headers["x-run-id"] == first.headers["x-run-id"]
    assert executed == ["milk"]
    assert len(provider.requests) == 2, "two rounds, and both of the first run"


async def test_a_cut_reply_is_never_remembered_and_its_call_never_executed() -> None:
    executed: list[str] = []

    def note(text: str) -> str:
        """Write something down."""
        executed.append(text)
        return "Noted."

    cut = ProtocolError("The stream ended in the middle.", code="stream_cut")
    half = [TextDelta("Half an answer"), ToolCallDelta("0", "note", '{"text": "milk"}', "call_0"), cut]
    provider = ScriptedProvider(half, says("Here I am."))
    async with serving(Agent("a", model=provider, tools=[note])) as served:
        first = await served.run(ask("remember milk"))
        second = await served.run(ask("are you there?", run="r2", message="u2"))
    assert first.events[-1]["type"] == "RUN_ERROR"
    assert first.events[-1]["code"] == "stream_cut"
    assert second.types[-1] == "RUN_FINISHED"
    assert executed == []
    remembered = provider.prompts[-1]
    assert not [item for item in remembered if isinstance(item, FunctionCall)]
    assert [item.content for item in remembered if isinstance(item, Message)] == ["remember milk", "are you there?"]


async def test_a_second_run_on_a_busy_thread_is_refused_with_the_id_of_the_first() -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextDelta("I am at it"), gate, *says("Done.")])
    async with (
        serving(Agent("a", model=provider)) as served,
        served.http.stream("POST", "/", content=orjson.dumps(ask("work")), headers=HEADERS) as response,
    ):
        frames = frames_of(response)
        async for frame in frames:
            if "TEXT_MESSAGE_CONTENT" in frame:
                break
        second = await served.run(ask("and this", run="r2", message="u2"))
        gate.set()
        last = [frame async for frame in frames][-1]
    refusal: JsonObject = second.document
    assert second.status == 409
    assert refusal["code"] == "thread_busy"
    assert refusal["details"] == {"run_id": response.headers["x-run-id"]}
    assert "RUN_FINISHED" in last
    assert len(provider.requests) == 1
