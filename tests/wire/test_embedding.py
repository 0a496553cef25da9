"""The bridge inside other people's programs: mounted, in a route, behind their middleware, without HTTP."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from ag_ui.core import RunAgentInput
from fastapi import Depends, FastAPI, HTTPException, Request
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agui_bridge import Agent, AguiBridgeError, Bridge, Principal, Settings, create_app
from agui_bridge.bridge import NotStarted
from runtime.errors import StoreError
from runtime.journal.memory import MemoryJournal
from runtime.samples import TextDelta
from runtime.testing import ScriptedProvider, says
from tests.serving import ask, events_in, listening
from tests.wire.sockets import eventually, post, unchunked, wire

QUICK = Settings.model_validate({"drain_s": 0, "store": "memory:"})


def saying(text: str, name: str = "agent") -> Agent:
    return Agent(name, model=ScriptedProvider(*(says(text) for _ in range(10))))


def spoken(body: bytes) -> str:
    return "".join(event["delta"] for event in events_in(body) if event["type"] == "TEXT_MESSAGE_CONTENT")


class Tagging(BaseHTTPMiddleware):
    """A middleware as people write them."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        response.headers["x-tagged"] = "yes"
        return response


class Counting:
    """A middleware of plain ASGI that looks at everything that passes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            await send(message)

        await self._app(scope, receive, counted)


class Proxied:
    """What a server does that is told of a proxy which takes `/proxy` off the path (uvicorn's root_path)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "root_path": "/proxy", "path": f"/proxy{scope['path']}"}
        await self._app(scope, receive, send)


BUSY = [Middleware(Tagging), Middleware(GZipMiddleware, minimum_size=1), Middleware(Counting)]


def hosting(*bridges: Bridge, **more: Any) -> FastAPI:
    """A host that starts and stops the bridges with a resource of its own."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        async with AsyncExitStack() as stack:
            for bridge in bridges:
                await stack.enter_async_context(bridge.lifespan(app))
            app.state.resource = "open"
            yield
            app.state.resource = "closed"

    return FastAPI(lifespan=lifespan, **more)


# --- mounted ------------------------------------------------------------------------------------------------------


async def test_two_bridges_live_under_one_host_each_with_its_own_agents_and_store():
    left, right = Bridge(saying("I am left"), settings=QUICK), Bridge(saying("I am right"), settings=QUICK)
    host = hosting(left, right, middleware=BUSY)
    host.mount("/left", left.app)
    host.mount("/right", right.app)
    async with listening(Proxied(host)) as url:
        for name, text in (("left", "I am left"), ("right", "I am right")):
            async with wire(url) as client:
                await client.send(post(ask("hello"), path=f"/{name}/", accept_encoding="gzip"))
                answer = await client.rest()
            assert spoken(unchunked(answer)) == text
            head = answer.partition(b"\r\n\r\n")[0].decode()
            assert "content-encoding" not in head
            assert "x-tagged: yes" in head
            run_id = head.partition("x-run-id: ")[2].split("\r\n")[0]
            assert f"location: /proxy/{name}/api/agent-runs/{run_id}\r\n" in head + "\r\n"
            for path, status in ((f"/{name}", 200), (f"/{'right' if name == 'left' else 'left'}", 404)):
                async with wire(url) as client:
                    path = f"{path}/api/agent-runs/{run_id}"
                    await client.send(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
                    assert f" {status} ".encode() in (await client.rest()).split(b"\r\n")[0]
        assert host.state.resource == "open"
    assert host.state.resource == "closed"
    for bridge in (left, right):
        with pytest.raises(NotStarted):
            _ = bridge.supervisor


@pytest.mark.parametrize("middleware", [[], BUSY], ids=["plain", "busy"])
async def test_every_frame_leaves_when_it_is_there(middleware: list[Middleware]):
    gate = asyncio.Event()
    agent = Agent("gated", model=ScriptedProvider([TextDelta("one "), gate, *says("two")]))
    bridge = Bridge(agent, settings=QUICK)
    host = hosting(bridge, middleware=middleware)
    host.mount("/agui", bridge.app)
    async with listening(host) as url, wire(url) as client:
        await client.send(post(ask("go"), path="/agui/", accept_encoding="gzip"))
        assert b"two" not in await client.until(b'"delta":"one "')
        gate.set()  # only now can the rest be said
        assert spoken(unchunked(await client.rest())) == "one two"


async def test_a_client_that_leaves_is_noticed_behind_middleware():
    gate = asyncio.Event()
    agent = Agent("gated", model=ScriptedProvider([TextDelta("one "), gate, *says("two")]))
    bridge = Bridge(agent, settings=QUICK.model_copy(update={"disconnect_grace_s": 0}))
    host = hosting(bridge, middleware=BUSY)
    host.mount("/agui", bridge.app)
    async with listening(host) as url:
        before = asyncio.all_tasks()
        async with wire(url) as client:
            await client.send(post(ask("go"), path="/agui/"))
            await client.until(b'"delta":"one "')
            (run,) = await bridge.supervisor.journal.active_runs()
            client.reset()
        await eventually(lambda: bridge.supervisor.readers(run.run_id) == 0)
        await eventually(lambda: asyncio.all_tasks() <= before)
        ended = await bridge.supervisor.journal.find_run(run.run_id)
        assert ended is not None
        assert ended.status == "cancelled"


async def test_a_served_app_starts_its_bridge_by_itself():
    app = create_app({"a": saying("A"), "b/c": saying("B C")}, settings=QUICK)
    async with listening(app) as url:
        for path, text in (("/", "A"), ("/agents/a", "A"), ("/agents/b/c", "B C")):
            async with wire(url) as client:
                await client.send(post(ask("hello", thread=f"for {path}"), path=path))
                assert spoken(unchunked(await client.rest())) == text


# --- in a route ---------------------------------------------------------------------------------------------------


async def signed_in(request: Request) -> str:
    if request.headers.get("authorization") != "Bearer good":
        raise HTTPException(401, "Sign in first.")
    return "ann"


async def test_a_route_with_dependencies_hands_its_request_over():
    bridge = Bridge([saying("first", "one"), saying("second", "two")], settings=QUICK)
    host = hosting(bridge)

    @host.post("/chat/{name}")
    async def chat(request: Request, name: str, user: Annotated[str, Depends(signed_in)]) -> Response:
        return await bridge.handle(request, agent=name)

    async with listening(host) as url:
        async with wire(url) as client:
            await client.send(post(ask("hello"), path="/chat/two"))
            answer = await client.rest()
            assert b" 401 " in answer.split(b"\r\n")[0]
            assert answer.endswith(b'{"detail":"Sign in first."}')
        async with wire(url) as client:
            await client.send(post(ask("hello"), path="/chat/two", authorization="Bearer good"))
            assert spoken(unchunked(await client.rest())) == "second"
        for path, body, status, code in (
            ("/chat/three", ask("hello"), 404, "not_found"),
            ("/chat/two", b"no json", 400, "not_json"),
        ):
            async with wire(url) as client:
                await client.send(post(body, path=path, authorization="Bearer good"))
                answer = await client.rest()
                assert f" {status} ".encode() in answer.split(b"\r\n")[0]
                assert f'{{"code":"{code}",'.encode() in answer


async def test_a_bug_behind_a_hosts_route_is_answered_by_the_bridge_and_a_refusal_by_the_host():
    async def hook(request: Request) -> Principal:
        if request.headers.get("x-mode") == "bug":
            raise RuntimeError("secret")
        raise HTTPException(403, {"reason": "not you"})

    bridge = Bridge(saying("hello"), settings=QUICK, authenticate=hook)
    host = hosting(bridge)

    @host.post("/chat")
    async def chat(request: Request) -> Response:
        return await bridge.handle(request)

    host.mount("/agui", bridge.app)
    async with listening(host) as url:
        async with wire(url) as client:
            await client.send(post(ask("hello"), path="/chat", x_mode="bug"))
            answer = await client.rest()
            assert b" 500 " in answer.split(b"\r\n")[0]
            assert b'{"code":"internal_error"' in answer
            assert b"secret" not in answer
        async with wire(url) as client:
            await client.send(post(ask("hello"), path="/chat"))
            assert (await client.rest()).endswith(b'{"detail":{"reason":"not you"}}')
        async with wire(url) as client:
            await client.send(post(ask("hello"), path="/agui/"))
            told = b'{"code":"http_error","message":"Forbidden","details":{"detail":{"reason":"not you"}}}'
            assert (await client.rest()).endswith(told)


# --- without HTTP -------------------------------------------------------------------------------------------------


async def test_frames_can_be_had_without_http():
    bridge = Bridge(saying("plain words"), settings=QUICK)
    official = RunAgentInput.model_validate(
        {**ask("hello", thread="t2"), "tools": [], "context": [], "state": {}, "forwardedProps": {}}
    )
    async with bridge.lifespan():
        for body in (ask("hello"), official):
            pieces = [piece async for piece in bridge.stream(body)]
            assert all(piece.endswith(b"\n\n") for piece in pieces)
            assert spoken(b"".join(pieces)) == "plain words"
        with pytest.raises(AguiBridgeError) as refused:
            await anext(bridge.stream({"threadId": "t1"}))
        assert (refused.value.code, refused.value.details["path"]) == ("invalid_input", "/runId")
        with pytest.raises(AguiBridgeError) as unknown:
            await anext(bridge.stream(ask("hello"), agent="nobody"))
        assert unknown.value.code == "not_found"


async def test_a_stream_without_http_that_is_closed_early_lets_go_of_its_run():
    gate = asyncio.Event()
    agent = Agent("gated", model=ScriptedProvider([TextDelta("one "), gate, *says("two")]))
    bridge = Bridge(agent, settings=QUICK)
    async with bridge.lifespan():
        async with aclosing(bridge.stream(ask("go"))) as frames:
            await anext(frames)
            (run,) = await bridge.supervisor.journal.active_runs()
            assert bridge.supervisor.readers(run.run_id) == 1
        assert bridge.supervisor.readers(run.run_id) == 0


# --- before the start, and after the end ---------------------------------------------------------------------------


async def test_use_before_the_start_says_how_to_start():
    bridge = Bridge(saying("hello"), settings=QUICK)
    host = FastAPI()
    host.mount("/agui", bridge.app)  # and its lifespan is forgotten
    async with listening(host) as url:
        for request in (post(ask("hello"), path="/agui/"), post(b"", path="/agui/api/agent-runs/run_1")):
            async with wire(url) as client:
                await client.send(request.replace(b"POST /agui/api", b"GET /agui/api"))
                answer = await client.rest()
                assert b" 500 " in answer.split(b"\r\n")[0]
                assert b'{"code":"not_started",' in answer
                assert b"chain `bridge.lifespan` into your app's lifespan (a mounted sub-app's own" in answer
    with pytest.raises(NotStarted, match=r"async with bridge\.lifespan\(\)"):
        await anext(bridge.stream(ask("hello")))


async def test_a_bridge_may_be_started_by_several_and_stops_with_the_last():
    bridge = Bridge(saying("hello"), settings=QUICK)
    async with bridge.lifespan():
        async with bridge.lifespan():
            pass
        assert spoken(b"".join([piece async for piece in bridge.stream(ask("hello"))])) == "hello"


async def test_a_bridge_may_be_started_again():
    bridge = Bridge(saying("hello"), settings=QUICK)
    for thread in ("t1", "t2"):
        async with bridge.lifespan():
            frames = [piece async for piece in bridge.stream(ask("hello", thread=thread))]
            assert spoken(b"".join(frames)) == "hello"


class SlowToOpen(MemoryJournal):
    """Opens when it is let, or fails to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.fails = False
        self.opened = 0

    async def open(self) -> None:
        await self.gate.wait()
        if self.fails:
            raise StoreError("The disk is not there.")
        self.opened += 1
        await super().open()


async def test_whoever_comes_while_it_starts_waits_for_the_one_start():
    journal = SlowToOpen()
    bridge = Bridge(saying("hello"), settings=QUICK, store=journal)

    async def use(thread: str) -> str:
        async with bridge.lifespan():
            return spoken(b"".join([piece async for piece in bridge.stream(ask("hello", thread=thread))]))

    users = [asyncio.create_task(use(thread)) for thread in ("t1", "t2")]
    await asyncio.sleep(0)
    journal.gate.set()
    assert await asyncio.gather(*users) == ["hello", "hello"]


async def test_a_start_that_fails_is_told_and_may_be_tried_again():
    journal = SlowToOpen()
    journal.gate.set()
    journal.fails = True
    bridge = Bridge(saying("hello"), settings=QUICK, store=journal)
    with pytest.raises(StoreError, match="not there"):
        async with bridge.lifespan():
            pass
    with pytest.raises(NotStarted):
        _ = bridge.supervisor
    journal.fails = False
    async with bridge.lifespan():
        assert journal.opened == 1


def test_a_foreign_package_of_the_same_name_in_front_is_named(tmp_path: Path):
    (tmp_path / "runtime.py").write_text("", "utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import agui_bridge"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (told,) = [line for line in done.stderr.splitlines() if line.startswith("ImportError")]
    assert str(tmp_path / "runtime.py") in told
    assert "off sys.path" in told
