"""The demo server as a process of its own that can be killed, traced and started again on the same store."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import orjson

from tests.serving import JsonObject, events_in

ROOT = Path(__file__).parents[2]


class ServerProcess:
    """A server that listens, and a client of it."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, log: Log) -> None:
        self.process = process
        self.url = url
        self.http = httpx2.AsyncClient(base_url=url, timeout=30)
        self._log = log

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        self.process.send_signal(number)

    async def ended(self, seconds: float = 20) -> int:
        """Wait for the process; returns its exit status."""
        async with asyncio.timeout(seconds):
            return await self.process.wait()

    async def kill(self) -> None:
        """Kill it as a crash would."""
        self.process.kill()
        await self.ended()

    async def log(self) -> str:
        """What it logged, once it has ended."""
        return await self._log.whole()

    async def get(self, path: str) -> Any:
        """GET a JSON document."""
        return (await self.http.get(path)).raise_for_status().json()

    async def facts(self, run_id: str) -> list[JsonObject]:
        """The facts of a run that is over, or of one that goes on, to its end."""
        response = await self.http.get(f"/api/agent-runs/{run_id}/events")
        return events_in(response.raise_for_status().content)

    async def post(self, body: JsonObject) -> list[JsonObject]:
        """Ask, and read the whole stream."""
        response = await self.http.post("/", json=body)
        return events_in(response.raise_for_status().content)

    @asynccontextmanager
    async def streaming(self, body: JsonObject) -> AsyncGenerator[Stream, None]:
        """Ask, and read frame by frame."""
        async with self.http.stream("POST", "/", json=body) as response:
            yield Stream(response)


class Stream:
    """An open stream: `received` are the frames so far, each its id (if it has one) and its event."""

    def __init__(self, response: httpx2.Response) -> None:
        self.run_id = response.headers["x-run-id"]
        self.received: list[tuple[int | None, JsonObject]] = []
        self._pieces = response.aiter_bytes()
        self._rest = b""

    @property
    def events(self) -> list[JsonObject]:
        """The events so far."""
        return [event for _, event in self.received]

    async def more(self) -> bool:
        """Read what comes next; False when the stream has ended or broke."""
        try:
            piece = await anext(self._pieces, None)
        except httpx2.HTTPError:
            return False
        if piece is None:
            return False
        *frames, self._rest = (self._rest + piece).split(b"\n\n")
        self.received += [_frame(frame) for frame in frames if b"data: " in frame]
        return True

    async def until(self, event_type: str, times: int = 1) -> None:
        """Read until so many events of this type have come."""
        while [event["type"] for event in self.events].count(event_type) < times:
            assert await self.more(), self.events[-3:]

    async def to_the_end(self) -> None:
        """Read whatever still comes."""
        while await self.more():
            pass


def _frame(frame: bytes) -> tuple[int | None, JsonObject]:
    lines = dict(line.split(b": ", 1) for line in frame.split(b"\n") if b": " in line)
    return (int(lines[b"id"]) if b"id" in lines else None), orjson.loads(lines[b"data"])


@asynccontextmanager
async def server(
    store: Path | str, *wrapper: str, agent: str | None = None, **settings: Any
) -> AsyncGenerator[ServerProcess, None]:
    """`agui-bridge demo` (or `serve AGENT` on the scripted model) on a free port, over a file or the store of a URL,
    behind `wrapper` (such as strace); killed at the end if it still lives."""
    what = ["demo"] if agent is None else ["serve", agent, "--model", "scripted"]
    kept_in = store if isinstance(store, str) else f"sqlite:///{store}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AGUI_BRIDGE_")}
    environment |= {f"AGUI_BRIDGE_{name.upper()}": str(value) for name, value in settings.items()}
    process = await asyncio.create_subprocess_exec(
        *wrapper,
        sys.executable,
        *("-m", "agui_bridge.cli", *what, "--port", "0", "--store", kept_in),
        cwd=ROOT,
        env=environment | {"PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stderr is not None
    log = Log(process.stderr)
    try:
        running = ServerProcess(process, await log.url(), log)
        async with running.http:
            yield running
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await log.whole()


class Log:
    """What a server logs, read as it comes."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read())

    async def url(self) -> str:
        """Where the server listens, once it says so."""
        async with asyncio.timeout(60):
            return await self._url

    async def whole(self) -> str:
        """All of it, once the server has ended."""
        await self._reading
        return "".join(self._lines)

    async def _read(self) -> None:
        while line := (await self._stream.readline()).decode():
            self._lines.append(line)
            if not self._url.done() and (found := re.search(r"serves .* on (http://\S+)", line)):
                self._url.set_result(found[1])
        if not self._url.done():
            self._url.set_exception(AssertionError(f"the server did not start: {''.join(self._lines)}"))
