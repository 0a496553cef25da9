"""Trees of chance: runs that really hand work on, as their own journals tell of them."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Any

from agui_bridge.encoders import plain_frames
from agui_bridge.projection import Echo, Projector
from agui_bridge.reopening import Reopening
from agui_bridge.transcript import transcript
from runtime import samples as s
from runtime.agent import Agent
from runtime.authority import ANONYMOUS
from runtime.errors import ProviderError
from runtime.events import Record
from runtime.limits import Limits
from runtime.run import RunRecord
from runtime.testing import Line, ScriptedProvider
from runtime.thread import Thread
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.contract.workshop import Workshop, workshop

JsonObject = dict[str, Any]
ECHO = Echo("s1", "asked")
CUT = ProviderError("The provider's stream broke off.", code="stream_cut")
DEEPEST = 3


@tool(parallel=True)
async def lookup(ctx: ToolContext, key: str) -> str:
    """Look a thing up, and show that."""
    ctx.activity("tree.progress", {"key": key}, activity_id="progress")
    for _ in key:
        await asyncio.sleep(0)
    if isinstance(ctx.state, dict):
        ctx.state["seen"] = key
    return f"{key} is 42"


@dataclass(frozen=True)
class Tree:
    """What a tree has left: its records in the order of `root_seq`, the root's, and the thread as the store has it."""

    records: list[Record]
    root: RunRecord
    thread: Thread

    def projected(self, upto: int | None = None) -> list[JsonObject]:
        """What a reader from the start is told."""
        projector = Projector(ECHO)
        return [event for record in self.records[:upto] for event in projector.take(record)]

    def coming_back(self, at: int) -> list[JsonObject]:
        """What a page is told that comes back, showing nothing, when the tree ends at `at`."""
        reopening = Reopening(ECHO, self.root, Thread(self.root.thread_id), [], at)
        return [event for record in self.records for event in reopening.feed(record)]

    def body(self, events: list[JsonObject]) -> bytes:
        """The events as a server sends them."""
        return plain_frames(events)

    def shown(self) -> list[JsonObject]:
        """The messages as a snapshot restates them, without what was there before the root spoke."""
        return [line.message for line in transcript(self.thread) if line.role != "user"]


def agent_of(chance: random.Random, depth: int, name: str = "assistant") -> Agent:
    """An agent whose model plays rounds of chance, and which hands work on to others like it."""
    count = 0 if depth >= DEEPEST else chance.choice((1, 2) if depth == 0 else (0, 1, 2))
    below = [agent_of(chance, depth + 1, f"{name}_{n}") for n in range(count)]
    names = ["lookup", *(agent.name for agent in below)]
    rounds = [_round(chance, names) for _ in range(chance.choice((1, 2, 2)))]
    return Agent(name, model=ScriptedProvider(*rounds, _last(chance)), tools=[lookup, *below])


def _round(chance: random.Random, names: list[str]) -> list[Line]:
    lines: list[Line] = []
    if chance.random() < 0.3:
        lines += [s.ReasoningDelta("Hm "), s.ReasoningDelta("hm"), s.ReasoningDone(signature="sig")]
    if chance.random() < 0.5:
        lines += [s.TextDelta("Let "), s.TextDelta("me. "), s.AssistantMessageDone()]
    for n, name in enumerate(chance.choices(names[::-1], k=chance.choice((1, 2, 3)))):
        arguments = '{"key":"tea"}' if name == "lookup" else f'{{"prompt":"Task {n}"}}'
        lines += [
            s.ToolCallDelta(str(n), name, arguments[:5], f"given_{n}"),
            s.ToolCallDelta(str(n), "", arguments[5:]),
        ]
        lines.append(s.ToolCallCommitted(str(n), name, arguments, f"given_{n}"))
    return [*lines, s.Completed("tool_calls")]


def _last(chance: random.Random) -> list[Line]:
    end = chance.random()
    if end < 0.15:
        return [s.TextDelta("Half "), CUT]
    if end < 0.3:
        return [s.ToolCallDelta("0", "lookup", '{"key', "given_9"), CUT]
    return [s.TextDelta("So "), s.TextDelta("it is."), s.AssistantMessageDone(), s.Completed("stop")]


async def grown(seed: int) -> Tree:
    """A tree of chance, performed by the real runtime and read live; some are stopped in the midst."""
    chance = random.Random(seed)
    agent = agent_of(chance, 0)
    stop_at = chance.randrange(10, 80) if chance.random() < 0.3 else None
    limits = Limits(model_retries=0, stop_grace_s=5)
    async with workshop(model=agent.model, tools=agent.tools, limits=limits) as shop:
        return await _read(shop, stop_at)


async def _read(shop: Workshop, stop_at: int | None) -> Tree:
    root = await shop.begin()
    cursor = shop.supervisor.follow_tree(root.run_id)
    records: list[Record] = []
    try:
        async with asyncio.timeout(20):
            while page := await cursor.next():
                records += page
                if stop_at is not None and len(records) >= stop_at:
                    await shop.supervisor.cancel(root.run_id, "user", 10)
    finally:
        cursor.close()
    over = await shop.settled(root)
    session = await shop.supervisor.session(ANONYMOUS, "s1")
    assert session is not None
    return Tree(records, over, await shop.supervisor.committed_thread(session.thread_id))
