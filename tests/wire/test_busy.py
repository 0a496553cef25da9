"""A busy thread over HTTP: what a page and the native API are told of messages that wait, interrupt or steer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from runtime import samples as s
from runtime.agent import Agent
from runtime.testing import ScriptedProvider, calls, says
from tests.contract.workshop import until
from tests.official_client import OfficialClient
from tests.serving import Answer, JsonObject, Served, ask, serving

USERS = [{"id": "u1", "role": "user", "content": "First"}, {"id": "u2", "role": "user", "content": "Second"}]


class Scene:
    """A run that has said "One" and goes on when it is let."""

    def __init__(self, served: Served, model: ScriptedProvider, go: asyncio.Event) -> None:
        self.served = served
        self.model = model
        self.go = go

    async def waiting(self, status: str = "queued") -> list[JsonObject]:
        """The runs that wait."""
        return (await self.served.get(f"/api/agent-runs?status={status}")).document["runs"]

    async def until_waiting(self, or_done: asyncio.Task[Any] | None = None) -> list[JsonObject]:
        """The runs that wait, once one does, or once another thing is done."""
        async with asyncio.timeout(10):
            while True:
                if (waiting := await self.waiting()) or (or_done is not None and or_done.done()):
                    return waiting
                await asyncio.sleep(0.005)


@asynccontextmanager
async def scene(*more: Any, tools: Any = (), **settings: Any) -> AsyncGenerator[Scene, None]:
    go = asyncio.Event()
    model = ScriptedProvider([s.TextDelta("One"), go, *says("")[1:]], *more)
    async with serving(Agent("assistant", model=model, tools=tools), **settings) as served:
        yield Scene(served, model, go)


def second(**more: Any) -> JsonObject:
    return ask("", run="r2", messages=USERS, **more)


def said(answer: Answer) -> str:
    return "".join(event["delta"] for event in answer.events if event["type"] == "TEXT_MESSAGE_CONTENT")


async def asked_while_busy(at: Scene, body: JsonObject) -> tuple[Answer, Answer]:
    """The answers to a first request, and to one that comes while that is at work."""
    async with asyncio.TaskGroup() as group:
        first = group.create_task(at.served.run(ask("First")))
        await until(lambda: len(at.model.requests) == 1)
        later = group.create_task(at.served.run(body))
        await at.until_waiting(later)
        at.go.set()
    return first.result(), later.result()


async def test_a_page_that_asks_while_its_thread_is_busy_is_refused_by_default():
    async with scene() as at:
        _, answer = await asked_while_busy(at, second())
        assert (answer.status, answer.document["code"]) == (409, "thread_busy")


async def test_a_page_whose_message_waits_gets_its_stream_when_its_turn_has_come(official_client: OfficialClient):
    async with scene(says("Two"), on_busy="enqueue", keep_alive_s=0.05) as at:
        first, answer = await asked_while_busy(at, second())
        assert first.types[-1] == answer.types[-1] == "RUN_FINISHED"
        assert said(answer) == "Two"
        assert answer.types[0] == "RUN_STARTED"
        assert answer.events[0]["runId"] == "r2"
        *_, snapshot = [event for event in answer.events if event["type"] == "MESSAGES_SNAPSHOT"]
        assert [message["content"] for message in snapshot["messages"]] == ["First", "One", "Second"]
        (await official_client.replay(answer.body)).assert_clean()
        again = await at.served.run(second())
        assert said(again) == "Two"
        assert len(at.model.requests) == 2


async def test_what_is_no_plain_new_message_does_not_wait():
    edited = [{"id": "u1", "role": "user", "content": "Another first"}]
    async with scene(on_busy="enqueue") as at:
        _, answer = await asked_while_busy(at, ask("", run="r2", messages=edited))
        assert (answer.status, answer.document["code"]) == (409, "thread_busy")


async def test_only_so_many_messages_wait():
    async with scene(says("Two"), on_busy="enqueue", queue_limit=1) as at:
        async with asyncio.TaskGroup() as group:
            group.create_task(at.served.run(ask("First")))
            await until(lambda: len(at.model.requests) == 1)
            group.create_task(at.served.run(second()))
            await at.until_waiting()
            third = [*USERS, {"id": "u3", "role": "user", "content": "Third"}]
            full = await at.served.run(ask("", run="r3", messages=third))
            at.go.set()
        assert (full.status, full.document["code"]) == (429, "queue_full")


async def test_a_message_that_waits_is_listed_and_withdrawn(official_client: OfficialClient):
    async with scene(on_busy="enqueue") as at:
        async with asyncio.TaskGroup() as group:
            group.create_task(at.served.run(ask("First")))
            await until(lambda: len(at.model.requests) == 1)
            later = group.create_task(at.served.run(second()))
            waiting = await at.until_waiting()
            response = await at.served.http.post(f"/api/agent-runs/{waiting[0]['run_id']}/cancel")
            assert (response.status_code, response.json()["status"]) == (200, "cancelled")
            answer = await later
            at.go.set()
        assert answer.types == ["RUN_STARTED", "RUN_FINISHED"] or answer.types == ["RUN_STARTED", "RUN_ERROR"]
        (await official_client.replay(answer.body)).assert_clean()
        (fact,) = (await at.served.get(f"/api/agent-runs/{waiting[0]['run_id']}/events")).events
        assert fact["payload"] == {"reason": "user", "external_stop_confirmed": True}
        assert len(at.model.requests) == 1


async def test_a_message_that_interrupts_stops_the_run_and_is_answered():
    async with scene(says("Two"), on_busy="interrupt") as at:
        first, answer = await asked_while_busy(at, second())
        assert first.types[-1] in ("RUN_FINISHED", "RUN_ERROR")
        assert said(answer) == "Two"


async def test_a_message_that_steers_is_answered_by_the_run_at_work(official_client: OfficialClient):
    async with scene(says("Two"), says("Three"), on_busy="steer") as at:
        first, answer = await asked_while_busy(at, second(protocolVersion="1.0"))
        assert answer.types == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
        assert answer.events[1]["name"] == "agui-bridge:steered"
        assert said(first) == "OneTwo"
        (snapshot,) = [event for event in first.events if event["type"] == "MESSAGES_SNAPSHOT"]
        shown = [(message["role"], message["content"]) for message in snapshot["messages"]]
        assert shown == [("user", "First"), ("assistant", "One"), ("user", "Second")]
        replayed = await official_client.replay(first.body, ask("First"))
        replayed.assert_clean()
        contents = [message.get("content") for message in replayed.messages]
        assert contents == ["First", "One", "Second", "Two"]
        users = [*USERS, {"id": "u3", "role": "user", "content": "Third"}]
        third = await at.served.run(ask("", run="r3", messages=users))
        assert said(third) == "Three"
        prompt = [getattr(item, "content", None) for item in at.model.prompts[-1]]
        assert prompt == ["First", "One", "Second", "Two", "Third"]


@pytest.mark.parametrize("busy", ["enqueue", "steer", "interrupt"])
async def test_the_native_api_chooses_for_each_message(busy: str):
    async def work() -> str:
        await asyncio.sleep(0)
        return "worked"

    async with scene(calls(("work", "{}")), says("Three"), tools=[work]) as at:
        session = (await at.served.http.post("/api/sessions", json={})).json()["session_id"]
        path = f"/api/sessions/{session}/messages"

        async def send(key: str, **body: str) -> Any:
            return await at.served.http.post(path, json=body, headers={"idempotency-key": key})

        first = (await send("k1", content="First")).json()
        await until(lambda: len(at.model.requests) == 1)
        refused = await send("k2", content="Second")
        assert (refused.status_code, refused.json()["code"]) == (409, "thread_busy")
        taken = await send("k3", content="Second", busy=busy)
        assert taken.status_code == 202
        assert (await send("k3", content="Second", busy=busy)).json() == taken.json()
        at.go.set()
        facts = (await at.served.get(f"/api/agent-runs/{taken.json()['run_id']}/events")).events
        assert facts[-1]["event_type"] == "run.completed"
        ended = (await at.served.get(f"/api/agent-runs/{first['run_id']}/events")).events[-1]
        assert ended["event_type"] == ("run.cancelled" if busy == "interrupt" else "run.completed")
        absorbed = facts[-1]["payload"].get("absorbed_by")
        assert absorbed == (first["run_id"] if busy == "steer" else None)
