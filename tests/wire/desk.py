"""A server and a page that is open on it: what the page says, shows and is told, over a real socket."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from agui_bridge.transcript import transcript
from runtime.agent import Agent
from runtime.authority import ANONYMOUS
from runtime.samples import ReasoningDelta, ReasoningDone
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.toolbox import tool
from tests.pure.pages import in_short
from tests.pure.stock_page import Page
from tests.serving import Answer, JsonObject, Served, ask, serving

PICK: JsonObject = {"name": "pick", "description": "Let the user pick", "parameters": {"type": "object"}}
THOUGHT = [ReasoningDelta("hm"), ReasoningDone("sig")]
RUNS = itertools.count(1)


@tool
async def look(place: str) -> str:
    """Look somewhere."""
    return f"seen {place}"


@dataclass
class Desk:
    """A server, its model, and a page that is open on it."""

    served: Served
    model: ScriptedProvider
    page: Page = field(default_factory=Page)

    async def say(self, text: str, **more: Any) -> Answer:
        """The page says something under the next id."""
        users = sum(message["role"] == "user" for message in self.page.messages)
        self.page.messages.append({"id": f"u{users + 1}", "role": "user", "content": text})
        return await self.post(**more)

    async def post(self, **more: Any) -> Answer:
        """The page sends what it shows, and takes the answer in."""
        answer = await self.served.run(
            ask("", run=f"r{next(RUNS)}", messages=self.page.messages, protocolVersion="1.0", **more)
        )
        assert answer.status == 200, answer.body
        self.page.apply(answer.events)
        assert not self.page.surprises
        return answer

    async def held(self) -> list[JsonObject]:
        """The messages that the server holds."""
        _, thread = await self.served.bridge.supervisor.open(ANONYMOUS, "t1")
        return [line.message for line in transcript(thread)]

    @property
    def prompt(self) -> list[str]:
        """What the model saw last."""
        return in_short(self.model.prompts[-1])


@asynccontextmanager
async def desk(*rounds: Any, **settings: Any) -> AsyncGenerator[Desk, None]:
    """A server whose model plays these rounds."""
    model = ScriptedProvider(*rounds)
    async with serving(Agent("a", model=model, tools=[look]), **settings) as served:
        yield Desk(served, model)


@asynccontextmanager
async def two_turns(**settings: Any) -> AsyncGenerator[Desk, None]:
    """A page that has asked twice; the first answer used a tool and began with a thought."""
    rounds = ([*THOUGHT, *calls(("look", '{"place": "there"}'), text="wait")], says("one"), says("two"), says("three"))
    async with desk(*rounds, **settings) as open_desk:
        await open_desk.say("first")
        await open_desk.say("second")
        yield open_desk
