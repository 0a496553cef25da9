"""A bridge on a real socket, in the test's own event loop, and a client that sees every byte."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import orjson
import uvicorn

from agui_bridge.bridge import Bridge
from agui_bridge.settings import Settings
from runtime.agent import Agent
from runtime.journal.store import Store

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    events: list[JsonObject] = field(default_factory=list[JsonObject])

    @property
    def types(self) -> list[str]:
        """The types of the AG-UI events, in order."""
        return [event["type"] for event in self.events]

    @property
    def document(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)


def events_in(body: bytes) -> list[JsonObject]:
    """The JSON documents of the data lines of an event stream."""
    return [orjson.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]


def ask(text: str, thread: str = "t1", run: str = "r1", message: str = "u1", **more: Any) -> JsonObject:
    """The body of a run with one user message; `messages` and other members of RunAgentInput can be given."""
    messages = more.pop("messages", [{"id": message, "role": "user", "content": text}])
    return {"threadId": thread, "runId": run, "messages": messages, **more}


class Served:
    """A bridge that listens."""

    def __init__(self, bridge: Bridge, url: str) -> None:
        self.bridge = bridge
        self.url = url
        self.http = httpx2.AsyncClient(base_url=url, timeout=20)

    async def run(self, body: Any, path: str = "/", **headers: str) -> Answer:
        """POST and read the whole answer."""
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        sent = {"content-type": "application/json", **{name.replace("_", "-"): v for name, v in headers.items()}}
        return _answer(await self.http.post(path, content=content, headers=sent))

    async def get(self, path: str, **headers: str) -> Answer:
        """GET and read the whole answer."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return _answer(await self.http.get(path, headers=sent))

    @asynccontextmanager
    async def streaming(self, body: Any, path: str = "/") -> AsyncGenerator[AsyncGenerator[JsonObject, None], None]:
        """POST and read event by event; leaving the block closes the connection."""
        headers = {"content-type": "application/json"}
        async with self.http.stream("POST", path, content=orjson.dumps(body), headers=headers) as response:
            events = _events(response)
            try:
                yield events
            finally:
                await events.aclose()


async def _events(response: httpx2.Response) -> AsyncGenerator[JsonObject, None]:
    buffer = b""
    async for piece in response.aiter_bytes():
        buffer += piece
        *frames, buffer = buffer.split(b"\n\n")
        for frame in frames:
            for event in events_in(frame):
                yield event


def _answer(response: httpx2.Response) -> Answer:
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    events = events_in(response.content) if is_stream else []
    return Answer(response.status_code, response.headers, response.content, events)


class QuietServer(uvicorn.Server):
    """A server that leaves the process's signals alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@asynccontextmanager
async def listening(app: Any) -> AsyncGenerator[str, None]:
    """Serve any ASGI app on a free port of loopback; yields its URL."""
    server = QuietServer(uvicorn.Config(app, port=0, log_config=None, lifespan="on", timeout_graceful_shutdown=2))
    task = asyncio.create_task(server.serve())
    while not server.started:
        if task.done():
            task.result()
            raise RuntimeError("the server did not start")
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def serving(
    agents: Agent | list[Agent] | dict[str, Agent],
    *,
    store: str | Store = "memory:",
    **settings: Any,
) -> AsyncGenerator[Served, None]:
    """A bridge on a socket. Keyword arguments are settings."""
    given = Settings.model_validate({"drain_s": 0, **settings})
    bridge = Bridge(agents, store=store, settings=given)
    async with listening(bridge.app) as url:
        served = Served(bridge, url)
        async with served.http:
            yield served
