"""Agents of chance: models that say any legal mix of things, with tools that ask, fail, stream, and hand work on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from runtime import samples as s
from runtime.agent import Agent
from runtime.errors import AguiBridgeError, ProviderError
from runtime.items import Item
from runtime.testing import Line, SamplesDialect
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import Declined, Tool, ToolError, tool

JsonObject = dict[str, Any]

DEEPEST = 2
"""How far below the root an agent of chance may be."""
MINUTE = 60
"""How long one of the questions can be answered, in seconds."""
CUT = ProviderError("The provider's stream broke off.", code="stream_cut")
SIZES: JsonObject = {"enum": ["S", "L"]}

ARGUMENTS: dict[str, Sequence[str]] = {
    "look": ('{"key":"tea"}', '{"key":"open"}', '{"key":"secret"}'),
    "note": ('{"text":"a"}', '{"text":"é 🎈"}'),
    "send": ('{"to":"Ann"}', '{"to":"Bob"}'),
    "order": ('{"item":"tea"}',),
    "consult": ('{"topic":"tea"}',),
    "count": ("{}",),
    "break_down": ("{}",),
    "pick": ("{}",),
    "launch": ("{}",),
}
"""What a model writes behind the name of a tool; agents are given a prompt."""
SEQUENTIAL = ("send", "order", "consult")
"""The tools that ask before they may run, or ask themselves, and are performed one at a time."""


class Improviser:
    """A model that makes its rounds up; `prompts` are the histories that it was given."""

    name = "improviser"
    provider = "testing"

    def __init__(self, chance: random.Random) -> None:
        self.dialect = SamplesDialect()
        self._chance = chance

    @property
    def prompts(self) -> list[list[Item]]:
        """The history of each request."""
        return [request["items"] for request in self.dialect.encoded]

    async def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Make up a round."""
        for line in round_of(self._chance, request["tools"]):
            await asyncio.sleep(0)
            if isinstance(line, AguiBridgeError):
                raise line
            yield {"sample": line}


def round_of(chance: random.Random, names: Sequence[str]) -> list[Line]:
    """A round in which some of these tools are called, or which is the last, or fails."""
    calls = chance.random() < 0.5
    lines: list[Line] = []
    if chance.random() < 0.2:
        signature = chance.choice((None, "s"))
        lines += [s.ReasoningDelta("Hm "), s.ReasoningDelta("hm"), s.ReasoningDone(signature=signature)]
    if not calls or chance.random() < 0.4:
        said = s.RefusalDelta if chance.random() < 0.05 else s.TextDelta
        lines += [said(chance.choice(("Let ", "\u2028"))), said("me. "), s.AssistantMessageDone()]
    if calls:
        made = [(str(key), *_call(chance, names)) for key in range(chance.choice((1, 1, 2, 3)))]
        for key, name, arguments in made:
            half = len(arguments) // 2
            given = f"given_{key}"
            lines += [s.ToolCallDelta(key, name, arguments[:half], given), s.ToolCallDelta(key, "", arguments[half:])]
        lines += [s.ToolCallCommitted(key, name, arguments, f"given_{key}") for key, name, arguments in made]
    return _ended(chance, lines, calls=calls)


def _call(chance: random.Random, names: Sequence[str]) -> tuple[str, str]:
    name = chance.choice([*names, *(name for name in names if name in SEQUENTIAL), "launch"])
    if chance.random() < 0.04:
        return name, chance.choice(("", "{tea", "[1]", '{"key":4}'))
    return name, chance.choice(ARGUMENTS.get(name, ('{"prompt":"Go on"}',)))


def _ended(chance: random.Random, lines: list[Line], *, calls: bool) -> list[Line]:
    usage = chance.choice((None, {"input_tokens": 3, "output_tokens": 1}))
    match chance.choice((*[""] * 16, "cut", "length", "filter", "nothing")):
        case "cut":
            return [*lines[: chance.randrange(len(lines) + 1)], CUT]
        case "length":
            spoken = [line for line in lines if not isinstance(line, s.ToolCallCommitted)]
            return [*spoken, s.Completed("length", usage)]
        case "filter":
            return [*lines, s.Completed("content_filter", usage)]
        case "nothing":
            return [s.Completed("stop", usage)]
        case _:
            return [*lines, s.Completed("tool_calls" if calls else "stop", usage)]


class Company:
    """The agents of one scenario, and what their tools really did: `done` has each execution as the id of its call and
    the name of its tool."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self.done: list[tuple[str, str]] = []
        self.models: list[Improviser] = []
        self.root = self._agent("assistant", 0)

    def _agent(self, name: str, depth: int) -> Agent:
        chance = random.Random(f"{self._seed}/{name}")
        below = 0 if depth >= DEEPEST else chance.choice((0, 1, 1, 2))
        children = [self._agent(f"{name}_{number}", depth + 1) for number in range(below)]
        model = Improviser(chance)
        self.models.append(model)
        return Agent(name, model=model, tools=[*self._tools(children), *children], description=f"Is {name}.")

    def _tools(self, children: Sequence[Agent]) -> list[Tool]:
        done = self.done
        ours = [_look(done), _note(done), _send(done), _order(done), _count(done), _break_down(done)]
        return [*ours, _consult(done, children[0])] if children else ours


Done = list[tuple[str, str]]


def _look(done: Done) -> Tool:
    @tool(parallel=True, approval=lambda arguments, ctx: arguments.get("key") == "secret")
    async def look(ctx: ToolContext, key: str) -> str:
        """Look a thing up; secrets need a yes."""
        done.append((ctx.tool_call_id, "look" if key != "secret" else "look at a secret"))
        ctx.activity("chance.looking", {"key": key}, activity_id="looking")
        await asyncio.sleep(0)
        if isinstance(ctx.state, dict):
            ctx.state["seen"] = key
        return f"{key} is 42"

    return look


def _note(done: Done) -> Tool:
    @tool
    async def note(ctx: ToolContext, text: str) -> str:
        """Write something down."""
        done.append((ctx.tool_call_id, "note"))
        if isinstance(ctx.state, dict):
            ctx.state["notes"] = [*ctx.state.get("notes", []), text]
        return "Noted."

    return note


def _send(done: Done) -> Tool:
    @tool(approval=True)
    async def send(ctx: ToolContext, to: str) -> str:
        """Send a message."""
        done.append((ctx.tool_call_id, "send"))
        await asyncio.sleep(0)
        if isinstance(ctx.state, dict):
            ctx.state["sent"] = [*ctx.state.get("sent", []), to]
        return f"Sent to {to}."

    return send


def _order(done: Done) -> Tool:
    async def counted() -> int:
        return len(done)

    @tool
    async def order(ctx: ToolContext, item: str) -> str:
        """Order something: first ask for its size, then whether that is certain."""
        if isinstance(ctx.state, dict):
            ctx.state["ordering"] = item
        number = await ctx.once("number", counted)
        size = await ctx.interrupt(message="Which size?", response_schema=SIZES, expires_in=MINUTE)
        try:
            await ctx.interrupt("confirmation", f"Order {item} in {size}?")
        except Declined:
            return "Not ordered."
        done.append((ctx.tool_call_id, "order"))
        return f"No. {number}: {item} in {size}."

    return order


def _consult(done: Done, adviser: Agent) -> Tool:
    @tool
    async def consult(ctx: ToolContext, topic: str) -> str:
        """Have somebody think about it, and ask what the user makes of that."""
        advice = await ctx.delegate(adviser, f"What of {topic}?")
        opinion = await ctx.interrupt(message=f"{topic}: what do you think?")
        done.append((ctx.tool_call_id, "consult"))
        return f"{advice} / {opinion}"

    return consult


def _count(done: Done) -> Tool:
    @tool
    async def count(ctx: ToolContext) -> AsyncGenerator[str, None]:
        """Count, and tell how far it is."""
        for number in ("one", "two"):
            await asyncio.sleep(0)
            yield number
        done.append((ctx.tool_call_id, "count"))

    return count


def _break_down(done: Done) -> Tool:
    @tool
    async def break_down(ctx: ToolContext) -> str:
        """Fail."""
        done.append((ctx.tool_call_id, "break_down"))
        raise ToolError("The shelf is empty.")

    return break_down
