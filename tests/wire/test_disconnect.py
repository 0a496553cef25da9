"""Readers that go away: what becomes of the run, when one comes back, and when the thread is wanted again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from agui_bridge.bridge import Bridge
from agui_bridge.settings import Settings
from runtime import samples as s
from runtime.agent import Agent
from runtime.supervisor import Supervisor
from runtime.testing import ManualClock, ScriptedProvider, says
from tests.contract.workshop import until
from tests.serving import Answer, JsonObject, Served, ask, listening

GRACE_S = 10.0


class Scene:
    """A model that waits in the middle of its answer, behind a bridge whose clock the test sets."""

    def __init__(self, served: Served, model: ScriptedProvider, clock: ManualClock, go_on: asyncio.Event) -> None:
        self.served = served
        self.model = model
        self.clock = clock
        self.go_on = go_on

    @property
    def supervisor(self) -> Supervisor:
        return self.served.bridge.supervisor

    async def leave_midway(self, body: JsonObject) -> str:
        """Read the stream's first words, then go away; returns the run's id once the server has noticed."""
        async with self.served.http.stream("POST", "/", json=body) as response:
            run_id = response.headers["x-run-id"]
            async for piece in response.aiter_bytes():
                if b"TEXT_MESSAGE_CONTENT" in piece:
                    break
        await until(lambda: self.supervisor.readers(run_id) == 0)
        return run_id

    async def leave_one_of_two(self, run_id: str) -> int:
        """Read the run a second time and go away again; returns how many still read it."""
        async with self.served.http.stream("GET", f"/api/agent-runs/{run_id}/events"):
            await until(lambda: self.supervisor.readers(run_id) == 2)
        await until(lambda: self.supervisor.readers(run_id) < 2)
        return self.supervisor.readers(run_id)

    async def read_on(self, run_id: str, body: JsonObject) -> Answer:
        """Ask while the run waits, then let it go on; returns the answer, which is that run's."""
        reads = asyncio.create_task(self.served.run(body))
        await until(lambda: self.supervisor.readers(run_id) == 1)
        self.go_on.set()
        answer = await reads
        assert answer.headers["x-run-id"] == run_id
        return answer

    async def grace_began(self) -> None:
        await until(lambda: self.clock.sleepers > 0)

    async def facts(self, run_id: str) -> list[JsonObject]:
        return (await self.served.get(f"/api/agent-runs/{run_id}/events")).events

    async def status(self, run_id: str) -> str:
        await until(lambda: run_id not in self.supervisor.live.runs)
        return (await self.served.get(f"/api/agent-runs/{run_id}")).document["status"]


@asynccontextmanager
async def scene(**settings: Any) -> AsyncGenerator[Scene, None]:
    go_on, clock = asyncio.Event(), ManualClock()
    model = ScriptedProvider([s.TextDelta("Half "), go_on, *says("and half")], says("Anew"))
    given = Settings.model_validate({"drain_s": 0, "disconnect_grace_s": GRACE_S, **settings})
    bridge = Bridge(Agent("assistant", model=model), store="memory:", settings=given)
    bridge._supervisor.live.unread.clock = clock
    async with listening(bridge.app) as url:
        served = Served(bridge, url)
        async with served.http:
            yield Scene(served, model, clock, go_on)


def said(answer: Answer) -> str:
    return "".join(event["delta"] for event in answer.events if event["type"] == "TEXT_MESSAGE_CONTENT")


async def test_a_run_that_nobody_reads_any_more_is_cancelled_after_the_grace():
    async with scene() as at:
        run_id = await at.leave_midway(ask("Hello"))
        await at.grace_began()
        at.clock.advance(GRACE_S - 0.1)
        await at.served.get("/health")
        assert run_id in at.supervisor.live.runs
        at.clock.advance(0.1)
        assert await at.status(run_id) == "cancelled"
        end = (await at.facts(run_id))[-1]
        assert end["event_type"] == "run.cancelled"
        assert end["payload"]["reason"] == "client_disconnected"
        assert end["payload"]["external_stop_confirmed"]
        assert at.model.closed == 1


async def test_a_reader_who_comes_back_within_the_grace_keeps_the_run_alive():
    async with scene() as at:
        run_id = await at.leave_midway(ask("Hello"))
        await at.grace_began()
        at.clock.advance(GRACE_S / 2)
        follows = asyncio.create_task(at.facts(run_id))
        await until(lambda: at.supervisor.readers(run_id) == 1)
        at.clock.advance(GRACE_S * 2)
        at.go_on.set()
        facts = await follows
        assert facts[-1]["event_type"] == "run.completed"
        assert await at.status(run_id) == "succeeded"


async def test_each_time_the_last_reader_leaves_the_grace_begins_anew():
    async with scene() as at:
        run_id = await at.leave_midway(ask("Hello"))
        await at.grace_began()
        at.clock.advance(GRACE_S - 1)
        assert await at.leave_midway(ask("Hello")) == run_id, "the same request follows the same run"
        at.clock.advance(GRACE_S - 1)
        await at.served.get("/health")
        assert run_id in at.supervisor.live.runs
        at.clock.advance(1)
        assert await at.status(run_id) == "cancelled"


async def test_one_reader_of_two_may_leave():
    async with scene() as at:
        async with at.served.http.stream("POST", "/", json=ask("Hello")) as response:
            run_id = response.headers["x-run-id"]
            assert await at.leave_one_of_two(run_id) == 1
            at.clock.advance(GRACE_S * 2)
            at.go_on.set()
            body = b"".join([piece async for piece in response.aiter_bytes()])
        assert b"RUN_FINISHED" in body


async def test_a_page_that_is_loaded_again_gets_the_whole_stream():
    async with scene() as at:
        run_id = await at.leave_midway(ask("Hello"))
        answer = await at.read_on(run_id, ask("Hello"))
        assert answer.types[0] == "RUN_STARTED"
        assert answer.types[-1] == "RUN_FINISHED"
        assert said(answer) == "Half and half"
        assert len(at.model.requests) == 1


async def test_a_page_that_is_loaded_again_under_another_run_id_follows_the_run():
    async with scene() as at:
        run_id = await at.leave_midway(ask("Hello"))
        answer = await at.read_on(run_id, ask("Hello", run="another"))
        assert answer.events[0]["runId"] == "another"
        assert said(answer) == "Half and half"
        assert len(at.model.requests) == 1


async def test_with_continue_the_run_goes_on_whoever_left():
    async with scene(on_disconnect="continue") as at:
        run_id = await at.leave_midway(ask("Hello"))
        at.clock.advance(GRACE_S * 100)
        await at.served.get("/health")
        at.go_on.set()
        assert await at.status(run_id) == "succeeded"
        assert (await at.facts(run_id))[-1]["event_type"] == "run.completed"


async def test_who_asks_again_after_stop_does_not_wait_for_the_grace():
    async with scene() as at:
        run_id = await at.leave_midway(ask("Hello"))
        messages = [*ask("Hello")["messages"], {"id": "u2", "role": "user", "content": "Something else"}]
        answer = await at.served.run(ask("", run="r2", messages=messages))
        assert answer.types[-1] == "RUN_FINISHED"
        assert said(answer) == "Anew"
        end = (await at.facts(run_id))[-1]["payload"]
        assert end["reason"] == "superseded"
        assert "Half" not in str(at.model.prompts[1])


async def test_a_run_that_is_read_is_not_superseded():
    async with scene() as at, at.served.http.stream("POST", "/", json=ask("Hello")) as response:
        messages = [*ask("Hello")["messages"], {"id": "u2", "role": "user", "content": "Something else"}]
        answer = await at.served.run(ask("", run="r2", messages=messages))
        assert (answer.status, answer.document["code"]) == (409, "thread_busy")
        assert answer.document["details"] == {"run_id": response.headers["x-run-id"]}
        at.go_on.set()


async def test_with_continue_a_run_that_nobody_reads_is_not_superseded_either():
    async with scene(on_disconnect="continue") as at:
        run_id = await at.leave_midway(ask("Hello"))
        messages = [*ask("Hello")["messages"], {"id": "u2", "role": "user", "content": "Something else"}]
        answer = await at.served.run(ask("", run="r2", messages=messages))
        assert (answer.status, answer.document["details"]) == (409, {"run_id": run_id})
        at.go_on.set()


async def test_a_reader_who_leaves_when_the_run_is_over_cancels_nothing():
    async with scene() as at:
        at.go_on.set()
        answer = await at.served.run(ask("Hello"))
        at.clock.advance(GRACE_S * 2)
        assert await at.status(answer.headers["x-run-id"]) == "succeeded"
