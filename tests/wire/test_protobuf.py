"""Protobuf on the wire: who gets it, on which routes, and what its bytes are."""

from __future__ import annotations

import asyncio
import os

import httpx2
import orjson
import pytest

from agui_bridge.demo import demo_agent
from runtime.agent import Agent
from runtime.errors import ProviderError
from runtime.samples import TextDelta
from runtime.testing import ScriptedProvider, says
from tests.serving import ask, serving
from tests.wire.protobuf import PROTO, events_of, frames_of, types_of

SSE = "text/event-stream"
TALK = ["RUN_STARTED", "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (PROTO, PROTO),
        (f"text/event-stream;q=1, {PROTO};q=0.1", PROTO),
        (f"{PROTO};q=0", SSE),
        (SSE, SSE),
        ("application/json", SSE),
        ("", SSE),
        ("*/*", SSE),
        ("application/*", SSE),
    ],
)
@pytest.mark.requirement("R-021", "R-022", "R-024")
async def test_the_form_is_what_the_client_names(accept: str, content_type: str):
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("hello"), accept=accept)
        assert (answer.status, answer.headers["content-type"]) == (200, content_type)


@pytest.mark.requirement("R-022")
async def test_without_an_accept_header_the_form_is_server_sent_events():
    async with serving(demo_agent()) as served:
        del served.http.headers["accept"]
        assert (await served.run(ask("hello"))).headers["content-type"] == SSE


@pytest.mark.requirement("R-025", "R-030")
async def test_a_run_is_frames_that_abut_and_ends_with_its_one_terminal():
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("/tokens 40", protocolVersion="1.0"), accept=PROTO)
        types = types_of(answer.body)
        assert types[:4] == TALK
        assert types.count("TEXT_MESSAGE_CONTENT") == 40
        assert [kind for kind in types if kind in ("RUN_FINISHED", "RUN_ERROR")] == [types[-1]] == ["RUN_FINISHED"]
        assert answer.headers["x-run-id"].startswith("run_")
        assert answer.headers["cache-control"] == "no-cache, no-transform"
        (finished,) = events_of(answer.body, "run_finished")
        assert (finished.thread_id, finished.run_id, finished.outcome) == ("t1", "r1", "success")


@pytest.mark.parametrize("path", ["/", "/agents/demo"])
async def test_every_agent_is_asked_in_either_form(path: str):
    async with serving(demo_agent()) as served:
        assert types_of((await served.run(ask("hello"), path, accept=PROTO)).body)[-1] == "RUN_FINISHED"


@pytest.mark.parametrize("path", ["/connect", "/agents/demo/connect"])
async def test_a_page_comes_back_in_either_form(path: str):
    async with serving(demo_agent()) as served:
        unknown = await served.run(ask("", thread="nowhere", run="r0", messages=[]), path, accept=PROTO)
        assert unknown.headers["content-type"] == PROTO
        assert types_of(unknown.body) == ["RUN_STARTED", "RUN_FINISHED"]
        await served.run(ask("hello"))
        back = await served.run(ask("", run="r2", messages=[]), path, accept=PROTO)
        assert types_of(back.body) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]


async def test_the_repeat_of_a_request_may_ask_for_the_other_form():
    async with serving(demo_agent()) as served:
        first = await served.run(ask("hello"))
        again = await served.run(ask("hello"), accept=PROTO)
        assert again.headers["x-run-id"] == first.headers["x-run-id"]
        assert types_of(again.body) == first.types


async def test_the_events_of_a_run_are_server_sent_whatever_is_asked_for():
    async with serving(demo_agent()) as served:
        run_id = (await served.run(ask("hello"))).headers["x-run-id"]
        for query in ("", "?format=agui"):
            answer = await served.get(f"/api/agent-runs/{run_id}/events{query}", accept=PROTO)
            assert answer.headers["content-type"] == SSE


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-029")
async def test_a_refusal_before_the_stream_is_json():
    async with serving(demo_agent()) as served:
        for body, status in ((b"{", 400), ({"threadId": 5}, 422)):
            answer = await served.run(body, accept=PROTO)
            assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
            assert answer.document["code"]


@pytest.mark.requirement("R-029")
async def test_a_failure_behind_the_start_is_the_last_frame():
    broken = [TextDelta("Half "), ProviderError("The provider is away.", code="provider_unavailable")]
    async with serving(Agent("assistant", model=ScriptedProvider(broken))) as served:
        answer = await served.run(ask("Hi"), accept=PROTO)
        assert types_of(answer.body)[-1] == "RUN_ERROR"
        (error,) = events_of(answer.body, "run_error")
        assert (error.code, error.message) == ("provider_unavailable", "The provider is away.")


# --- silence, sizes ---------------------------------------------------------------------------------------------------


async def test_nothing_that_is_no_frame_is_said_into_silence():
    gate = asyncio.Event()
    agent = Agent("assistant", model=ScriptedProvider([TextDelta("one "), gate, *says("two")], says("three")))
    async with serving(agent, keep_alive_s=0.02) as served:
        content, headers = orjson.dumps(ask("Hi")), {"accept": PROTO, "content-type": "application/json"}
        async with served.http.stream("POST", "/", content=content, headers=headers) as silent:
            place = f"/api/agent-runs/{silent.headers['x-run-id']}/events"
            async with served.http.stream("GET", place) as other:
                await spoken(other, b": keep-alive", 3)  # the same silence, in the form that has a word for it
            gate.set()
            assert types_of(await silent.aread())[-1] == "RUN_FINISHED"


async def spoken(response: httpx2.Response, mark: bytes, times: int) -> None:
    seen = b""
    async for piece in response.aiter_bytes():
        seen += piece
        if seen.count(mark) >= times:
            return


async def test_a_large_event_is_one_frame():
    text = os.urandom(3_000_000).hex()
    async with serving(Agent("assistant", model=ScriptedProvider([TextDelta(text), *says(" end")]))) as served:
        answer = await served.run(ask("Hi"), accept=PROTO)
        assert max(map(len, frames_of(answer.body))) > 6_000_000
        deltas = events_of(answer.body, "text_message_content")
        assert "".join(each.delta for each in deltas) == text + " end"
