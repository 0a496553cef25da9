"""Two hundred runs at once in one process: each stream whole and in order, and everything of it in the store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import orjson

from runtime.agent import Agent
from runtime.samples import AssistantMessageDone, Completed, TextDelta
from runtime.scripted import ScriptedModel
from runtime.testing import ScriptedProvider
from tests.serving import Answer, JsonObject, Served, _answer, ask, serving

RUNS = 200
TOKENS = 200


def deltas(events: list[JsonObject]) -> list[str]:
    return [event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"]


def stored_deltas(facts: list[JsonObject]) -> list[str]:
    return [fact["payload"]["delta"] for fact in facts if fact["event_type"] == "message.delta"]


async def all_at_once(served: Served, *bodies: JsonObject) -> list[Answer]:
    """The answers of requests that are all open at the same time."""
    limits = httpx2.Limits(max_connections=len(bodies))
    async with httpx2.AsyncClient(base_url=served.url, limits=limits, timeout=60) as http:
        headers = {"content-type": "application/json"}
        asked = (http.post("/", content=orjson.dumps(body), headers=headers) for body in bodies)
        return [_answer(response) for response in await asyncio.gather(*asked)]


async def test_two_hundred_runs_at_once_lose_nothing(tmp_path: Path):
    agent = Agent("assistant", model=ScriptedModel())
    async with serving(agent, store=f"sqlite:///{tmp_path}/store.db") as served:
        bodies = [ask(f"/tokens {TOKENS}", thread=f"t{n}", run=f"r{n}") for n in range(RUNS)]
        answers = await all_at_once(served, *bodies)
        for number, answer in enumerate(answers):
            assert answer.status == 200
            assert answer.events[0]["threadId"] == f"t{number}"
            assert answer.types[-1] == "RUN_FINISHED"
            assert deltas(answer.events) == ["tok "] * TOKENS
        for answer in answers:
            facts = (await served.get(answer.headers["location"] + "/events")).events
            assert [fact["seq"] for fact in facts] == list(range(1, len(facts) + 1))
            assert stored_deltas(facts) == ["tok "] * TOKENS
        assert served.bridge.supervisor.live.runs == {}


async def test_runs_that_speak_at_the_same_time_keep_their_words_in_order_and_apart(tmp_path: Path):
    """As above, with words that tell which run they are of and which is the next."""
    words = [[f"{run}.{number} " for number in range(30)] for run in range(40)]
    rounds = [[*(TextDelta(word) for word in said), AssistantMessageDone(), Completed("stop")] for said in words]
    agent = Agent("assistant", model=ScriptedProvider(*rounds))
    async with serving(agent, store=f"sqlite:///{tmp_path}/store.db", synchronous="normal") as served:
        answers = await all_at_once(served, *(ask("Speak", thread=f"t{n}", run=f"r{n}") for n in range(40)))
        assert sorted(deltas(answer.events) for answer in answers) == sorted(words)
        for answer in answers:
            facts = (await served.get(answer.headers["location"] + "/events")).events
            assert stored_deltas(facts) == deltas(answer.events)
