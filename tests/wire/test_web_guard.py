"""The door: methods, media types, sizes, origins and hosts; and how a failure of the server itself looks."""

from __future__ import annotations

import gzip
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import orjson
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Mount

from agui_bridge import AguiBridgeError, Bridge, Principal, Settings, create_app
from agui_bridge.demo import demo_agent
from agui_bridge.web.guard import is_loopback, serves_this_machine
from runtime.journal.memory import MemoryJournal
from tests.serving import Answer, Served, ask, listening, serving
from tests.wire.sockets import post, wire

MIB = 2**20
PAGE = "https://app.example"


@asynccontextmanager
async def guarded(*, loopback: bool = False, authenticate: Any = None, **settings: Any) -> AsyncGenerator[Served, None]:
    """The demo on a socket, as a bridge that was told where it stands."""
    given = Settings.model_validate({"drain_s": 0, **settings})
    bridge = Bridge(demo_agent(), store=MemoryJournal(), settings=given, authenticate=authenticate, loopback=loopback)
    async with listening(bridge.app) as url:
        served = Served(bridge, url)
        async with served.http:
            yield served


def refused(answer: Answer) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.document) == ["code", "message", "details"]
    return answer.status, answer.document["code"]


def untouched(served: Served) -> bool:
    journal = served.bridge.supervisor.journal
    assert isinstance(journal, MemoryJournal)
    return not journal._runs and not journal._sessions and not journal._contents


async def request(served: Served, method: str, path: str, **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await served.http.request(method, path, headers=sent)
    return Answer(response.status_code, response.headers, response.content)


# --- routes and methods -------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-002")
async def test_a_method_that_a_route_does_not_have_is_405_and_names_those_that_it_has():
    async with guarded() as served:
        for method in ("GET", "PUT", "DELETE", "PATCH"):
            for path in ("/", "/agents/demo"):
                answer = await request(served, method, path)
                assert refused(answer) == (405, "method_not_allowed")
                assert answer.headers["allow"] == "POST"
        answer = await served.run(ask("hello"), path="/health")
        assert refused(answer) == (405, "method_not_allowed")
        assert {word.strip() for word in answer.headers["allow"].split(",")} == {"GET", "HEAD"}
        assert (await request(served, "OPTIONS", "/")).status == 405
        assert untouched(served)


async def test_an_unknown_route_is_404_and_nobody_is_sent_around():
    async with guarded() as served:
        for path in ("/nowhere", "/health/", "/api", "/api/agent-runs/", "/api/sessions/", "/%00", "/../x"):
            assert refused(await served.get(path)) == (404, "not_found")
        assert refused(await served.run(ask("hello"), path="/nowhere")) == (404, "not_found")


async def test_head_tells_the_same_without_a_body():
    async with guarded() as served:
        first = await served.run(ask("hello"))
        for path in ("/health", "/ready", first.headers["location"]):
            answer = await request(served, "HEAD", path)
            assert (answer.status, answer.headers["content-type"], answer.body) == (200, "application/json", b"")
        events = await request(served, "HEAD", first.headers["location"] + "/events")
        assert (events.status, events.body) == (200, b"")
        assert events.headers["content-type"].startswith("text/event-stream")
        assert served.bridge.supervisor.readers(first.headers["x-run-id"]) == 0


# --- bodies -------------------------------------------------------------------------------------------------------


async def test_another_content_type_is_refused():
    async with guarded() as served:
        for given in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonx",
            "multipart/form-data",
            "",
        ):
            assert refused(await served.run(ask("hello"), content_type=given)) == (415, "unsupported_media_type")
        async with wire(served.url) as bare:
            await bare.send(b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}")
            assert b" 415 " in (await bare.rest()).split(b"\r\n")[0]
        assert untouched(served)
        assert (await served.run(ask("hello"), content_type="Application/JSON; charset=utf-8")).status == 200


async def test_a_compressed_body_is_refused():
    async with guarded() as served:
        packed = gzip.compress(orjson.dumps(ask("hello")))
        for coding in ("gzip", "br", "identity, gzip"):
            assert refused(await served.run(packed, content_encoding=coding)) == (415, "unsupported_media_type")
        assert untouched(served)
        assert (await served.run(ask("hello"), content_encoding="identity")).status == 200


async def test_a_body_beyond_the_limit_is_refused_by_its_announced_length():
    async with guarded() as served:
        answer = await served.run(ask("x" * (20 * MIB)))
        assert refused(answer) == (413, "body_too_large")
        assert answer.document["message"] == "The body is larger than 16 MiB."
        async with wire(served.url) as waiting:
            await waiting.send(post(b"", content_length=str(20 * MIB), expect="100-continue"))
            assert b" 413 " in (await waiting.rest()).split(b"\r\n")[0]
        assert untouched(served)
        assert (await served.run(ask("hello"))).status == 200


async def test_a_body_in_chunks_is_refused_as_soon_as_it_is_too_large():
    async def without_a_length() -> AsyncGenerator[bytes, None]:
        for _ in range(20):
            yield b" " * MIB

    async with guarded(max_body_mib=1) as served:
        headers = {"content-type": "application/json"}
        response = await served.http.post("/", content=without_a_length(), headers=headers)
        assert (response.status_code, response.json()["code"]) == (413, "body_too_large")
        async with wire(served.url) as chunked:
            await chunked.send(post(b"", transfer_encoding="chunked"))
            piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
            await chunked.send(*([piece] * 17))
            assert b'"code":"body_too_large"' in await chunked.until(b"}}")
        assert untouched(served)
        assert (await served.run(ask("hello"))).status == 200


async def test_a_body_of_exactly_the_limit_is_read():
    async with guarded(max_body_mib=1) as served:
        body = orjson.dumps(ask("hello"))
        assert (await served.run(body + b" " * (MIB - len(body)))).status == 200
        assert (await served.run(body + b" " * (MIB - len(body) + 1))).status == 413


# --- origins and hosts --------------------------------------------------------------------------------------------


async def test_on_loopback_every_page_of_this_machine_may_call_and_no_other():
    async with guarded(loopback=True) as served:
        for origin in ("http://localhost:3000", "http://127.0.0.1:5173", "https://[::1]:8443", "http://localhost"):
            answer = await served.run(ask("hello"), origin=origin)
            assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, origin)
            assert {"X-Run-Id", "Location"} <= set(answer.headers["access-control-expose-headers"].split(", "))
        for origin in (PAGE, "http://localhost.evil.example", "http://evil.example@localhost", "null", "http://[", "x"):
            assert refused(await served.run(ask("hello"), origin=origin)) == (403, "foreign_origin")


async def test_on_loopback_a_rebound_name_is_refused_whatever_the_method():
    async with guarded(loopback=True) as served:
        for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[", "192.168.0.1", "0.0.0.0"):
            assert refused(await served.get("/health", host=host)) == (403, "foreign_origin")
            assert refused(await served.run(ask("hello"), host=host)) == (403, "foreign_origin")
        assert untouched(served)
        for host in ("localhost", "localhost:1", "127.0.0.1:80", "127.0.0.2", "[::1]:8000"):
            assert (await served.get("/health", host=host)).status == 200


async def test_a_client_without_a_host_is_no_browser_and_is_served_on_loopback():
    async with guarded(loopback=True) as served, wire(served.url) as old:
        await old.send(b"GET /health HTTP/1.0\r\n\r\n")
        assert b'{"status":"ok"}' in await old.rest()


async def test_elsewhere_only_listed_origins_and_the_server_itself_may_call():
    async with guarded(allowed_origins=[PAGE]) as served:
        answer = await served.run(ask("hello"), origin=PAGE)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, PAGE)
        assert (await served.run(ask("hello"), origin=served.url)).status == 200
        for origin in ("https://evil.example", "http://app.example", "http://localhost:3000", "null"):
            answer = await served.run(ask("other", run="r2", message="u2"), origin=origin)
            assert refused(answer) == (403, "foreign_origin")
            assert "access-control-allow-origin" not in answer.headers
        assert (await served.get("/health", host="any.example")).status == 200
        read = await served.get("/health", origin="https://evil.example")
        assert (read.status, "access-control-allow-origin" in read.headers) == (200, False)


async def test_an_app_that_is_served_on_loopback_by_whatever_server_is_meant_for_this_machine():
    async with listening(create_app(demo_agent(), store="memory:")) as url, httpx2.AsyncClient(base_url=url) as http:
        for host, status in (("evil.example", 403), ("localhost:1", 200)):
            assert (await http.get("/health", headers={"host": host})).status_code == status
        for origin, status in (("http://localhost:3000", 200), (PAGE, 403)):
            answer = await http.post("/", json=ask("hello"), headers={"origin": origin})
            assert answer.status_code == status
            assert answer.headers.get("access-control-allow-origin") == (origin if status == 200 else None)


async def test_on_loopback_a_proxy_may_hand_on_the_host_of_an_allowed_origin():
    settings = Settings.model_validate({"allowed_origins": [PAGE]})
    app = create_app(demo_agent(), store="memory:", settings=settings)
    async with listening(app) as url, httpx2.AsyncClient(base_url=url) as http:
        answer = await http.post("/", json=ask("hello"), headers={"host": "app.example", "origin": PAGE})
        assert answer.status_code == 200
        assert (await http.get("/health", headers={"host": "evil.example"})).status_code == 403


async def test_below_a_path_it_is_the_host_that_says_who_may_reach_it():
    host = Starlette(routes=[Mount("/agents", app=create_app(demo_agent(), store="memory:"))])
    async with listening(host) as url, httpx2.AsyncClient(base_url=url) as http:
        assert (await http.get("/agents/health", headers={"host": "any.example"})).status_code == 200


@pytest.mark.parametrize("server", [("10.0.0.7", 80), ("testserver", 80), ("/run/app.sock", None), None])
def test_an_app_that_listens_elsewhere_is_not_meant_for_this_machine(server: Any):
    assert not serves_this_machine({"type": "http", "server": server}, None)
    assert serves_this_machine({"type": "http", "server": server}, True)


async def test_a_preflight_is_answered_for_those_who_may_call():
    wanted = {"access_control_request_method": "POST", "access_control_request_headers": "content-type,authorization"}
    async with guarded(allowed_origins=[PAGE]) as served:
        answer = await request(served, "OPTIONS", "/", origin=PAGE, **wanted)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, PAGE)
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert answer.headers["access-control-allow-headers"] == "content-type,authorization"
        answer = await request(served, "OPTIONS", "/", origin="https://evil.example", **wanted)
        assert (answer.status, "access-control-allow-origin" in answer.headers) == (400, False)
    async with guarded(loopback=True) as served:
        for origin, status in (("http://localhost:3000", 200), (PAGE, 400)):
            assert (await request(served, "OPTIONS", "/agents/demo", origin=origin, **wanted)).status == status


async def test_a_refusal_can_be_read_by_a_page_that_may_call():
    async with guarded(loopback=True) as served:
        for path, body in (("/", b"no json"), ("/nowhere", b"{}"), ("/agents/nobody", ask("hello"))):
            answer = await served.run(body, path, origin="http://localhost:3000")
            assert answer.status >= 400
            assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("localhost", True),
        ("LOCALHOST:80", True),
        ("127.0.0.1", True),
        ("127.1.2.3:9", True),
        ("::1", True),
        ("[::1]:80", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("", False),
        ("::", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("evil@127.0.0.1", False),
        ("127.0.0.1/x", False),
        ("[", False),
    ],
)
def test_loopback_is_told_from_the_rest(host: str, is_it: bool):
    assert is_loopback(host) is is_it


# --- who is asking, and bugs --------------------------------------------------------------------------------------


class Stranger(AguiBridgeError):
    """Say who you are."""

    code = "who_are_you"
    status = 401


@pytest.mark.requirement("R-015")
async def test_what_the_authenticate_hook_raises_is_the_answer_everywhere():
    async def nobody(request: Request) -> Principal:
        raise Stranger

    async def in_the_frameworks_words(request: Request) -> Principal:
        raise HTTPException(401, "No token.", {"www-authenticate": "Bearer"})

    async with guarded(authenticate=nobody) as served:
        for path in ("/api/agent-runs/run_1", "/api/agent-runs/run_1/events"):
            assert refused(await served.get(path)) == (401, "who_are_you")
        answer = await served.run(b"not even read")
        assert (*refused(answer), answer.document["message"]) == (401, "who_are_you", "Say who you are.")
        assert untouched(served)
    async with guarded(authenticate=in_the_frameworks_words) as served:
        answer = await served.run(ask("hello"))
        assert (*refused(answer), answer.document["message"]) == (401, "http_error", "No token.")
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_bug_is_a_500_with_an_id_that_stands_in_the_log(caplog: pytest.LogCaptureFixture):
    async def broken(request: Request) -> Principal:
        raise RuntimeError("the secret of the house")

    async with guarded(authenticate=broken, loopback=True) as served:
        for path in ("/", "/agents/demo", "/api/agent-runs/run_1", "/api/agent-runs/run_1/events"):
            caplog.clear()
            posted = path in ("/", "/agents/demo")
            origin = "http://localhost:1"
            answer = await (served.run(ask("hi"), path, origin=origin) if posted else served.get(path, origin=origin))
            assert refused(answer) == (500, "internal_error")
            assert answer.headers["access-control-allow-origin"] == origin
            assert b"secret" not in answer.body
            (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
            assert answer.document["details"]["id"] in record.getMessage()
            assert record.exc_info is not None
        assert untouched(served)
        assert (await served.get("/health")).status == 200


async def test_a_server_that_drains_says_so_and_takes_no_new_run():
    async with serving(demo_agent()) as served:
        assert (await served.get("/ready")).document == {"status": "ready"}
        await served.bridge.drain()
        ready = await served.get("/ready")
        assert (ready.status, ready.document) == (503, {"status": "draining"})
        answer = await served.run(ask("hello"))
        assert refused(answer) == (503, "shutting_down")
        assert answer.headers["retry-after"] == "1"
        assert (await served.get("/health")).status == 200
