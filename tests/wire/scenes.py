"""The scenes whose streams are written down: agents on a stage, what they are asked, and how it is played."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from agui_bridge.bridge import Bridge
from agui_bridge.demo import demo_agent
from agui_bridge.transcript import transcript
from runtime import hooks
from runtime import samples as s
from runtime.agent import Agent
from runtime.authority import ANONYMOUS
from runtime.budget import Budget
from runtime.errors import ProviderError
from runtime.hooks import AfterRound, BeforeTool, ChangeArguments, Deny, StopRun, after_round, before_tool
from runtime.testing import Line, ScriptedProvider, calls, says
from runtime.thread import Thread
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import Tool, tool
from tests.serving import Answer, JsonObject, Served, ask, serving
from tests.wire.golden import golden


@tool(parallel=True)
async def lookup(key: str) -> str:
    """Look a thing up."""
    return f"{key} is 42"


@tool(parallel=True)
async def slow_lookup(key: str) -> str:
    """Look a thing up, and be overtaken by everything else."""
    for _ in range(5):
        await asyncio.sleep(0)
    return f"{key} is 43"


@tool
async def broken() -> str:
    """Fail."""
    raise RuntimeError("the shelf is empty")


@tool(approval=True)
async def send(to: str) -> str:
    """Send a message."""
    return f"Sent to {to}."


@tool
async def ask_colour(ctx: ToolContext) -> str:
    """Ask for a colour."""
    return str(await ctx.interrupt(message="Which colour?", response_schema={"type": "string"}))


@dataclass(frozen=True)
class Seen:
    """What was found out."""

    thing: str
    count: int = 1


SEEN = '{"thing":"tea"}'


@before_tool
def mind_the_shelf(call: BeforeTool) -> Deny | hooks.Answer | ChangeArguments | None:
    """Each key has its own fate."""
    fates = {
        "tea": Deny("No tea today."),
        "jam": ChangeArguments({"key": "honey"}, "out of jam"),
        "egg": hooks.Answer("two"),
    }
    return fates.get(call.arguments["key"])


@after_round
async def stop_behind_calls(done: AfterRound) -> StopRun | None:
    """Enough, once there are calls."""
    return StopRun("enough") if done.calls else None


TOOLS: list[Tool] = [lookup, slow_lookup, broken]
PICK: JsonObject = {"name": "pick_color", "description": "Let the user pick", "parameters": {"type": "object"}}
USAGE = {"input_tokens": 3, "output_tokens": 2}

Request = Callable[[list[JsonObject]], JsonObject]
"""The body of a request, made of the messages that the page shows by then."""


@dataclass(frozen=True)
class Scene:
    """An agent and what it is asked, request by request."""

    agent: Callable[[], Agent]
    asked: Sequence[Request] = field(default_factory=lambda: [first("Hi")])
    settings: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Played:
    """A request of a scene, its answer, and what the server then held."""

    asked: JsonObject
    answer: Answer
    messages: list[JsonObject]
    state: Any


def first(text: str, **more: Any) -> Request:
    """One user message on a new thread."""
    return lambda _: ask(text, protocolVersion="1.0", **more)


def more(*messages: JsonObject, run: str = "r2", **members: Any) -> Request:
    """What the page shows, and these messages."""
    return lambda shown: ask("", run=run, messages=[*shown, *messages], protocolVersion="1.0", **members)


def resumed(*payloads: Any, run: str = "r2", **members: Any) -> Request:
    """What the page shows, and an answer to each of what the last run asked: a payload, or None for no."""
    return lambda shown: ask("", run=run, messages=shown, resume=payloads, protocolVersion="1.0", **members)


def made(request: Request, thread: Thread, last: JsonObject | None) -> JsonObject:
    """The body of a request on the thread as it stands; `last` is the last event that the page was told."""
    asked = request(shown(thread))
    if "resume" in asked and last is not None:
        asked["resume"] = _answers(asked["resume"], last["outcome"]["interrupts"])
    return asked


def _answers(payloads: Iterable[Any], asked: list[JsonObject]) -> list[JsonObject]:
    return [
        {"interruptId": each["id"], "status": "cancelled"}
        if payload is None
        else {"interruptId": each["id"], "status": "resolved", "payload": payload}
        for each, payload in zip(asked, payloads, strict=False)
    ]


def actor(
    *rounds: Iterable[Line],
    name: str = "assistant",
    tools: list[Tool] | None = None,
    asks: Callable[[], Agent] | None = None,
    **members: Any,
) -> Callable[[], Agent]:
    """An agent whose model plays these rounds; `asks` is one that it hands work to. Each performance has its own."""

    def made() -> Agent:
        ours = TOOLS if tools is None else tools
        return Agent(name, model=ScriptedProvider(*rounds), tools=ours if asks is None else [lookup, asks()], **members)

    return made


def helper(*rounds: Iterable[Line]) -> Callable[[], Agent]:
    """An agent that is asked by others: it looks things up and says what it found, unless it plays these rounds."""
    usual = [calls(("lookup", '{"key":"tea"}'), text="Looking."), says("Tea is 42")]
    return actor(*(rounds or usual), name="helper", description="Looks things up.")


CUT = ProviderError("The provider's stream broke off.", code="stream_cut", retryable=True)


def one_call(name: str, arguments: str, *, commit: bool = True, finish: str = "tool_calls") -> list[Line]:
    """A round with one call in two pieces."""
    half = len(arguments) // 2
    said: list[Line] = [
        s.ToolCallDelta("0", name, arguments[:half], "call_a"),
        s.ToolCallDelta("0", name, arguments[half:]),
    ]
    done: list[Line] = [s.ToolCallCommitted("0", name, arguments, "call_a")] if commit else []
    return [*said, *done, s.Completed(finish, USAGE)]


ANSWER: JsonObject = {"id": "a1", "role": "tool", "toolCallId": "call_0", "content": "blue"}

ELSEWHERE = {**ANSWER, "toolCallId": "call_1"}
"""The answer to a second call; put before the result of the first."""

SCENES: dict[str, Scene] = {
    "plain answer": Scene(actor(says("Let me think", usage=USAGE))),
    "text, tool, text": Scene(actor(calls(("lookup", '{"key":"tea"}'), text="Looking. "), says("It is 42"))),
    "two tools at once": Scene(
        actor(calls(("slow_lookup", '{"key":"tea"}'), ("lookup", '{"key":"jam"}')), says("Both known"))
    ),
    "text around a call": Scene(
        actor(
            [
                s.TextDelta("Look: "),
                *one_call("lookup", '{"key":"tea"}')[:-1],
                s.TextDelta("there."),
                s.AssistantMessageDone(),
                s.Completed("tool_calls"),
            ]
        )
    ),
    "failing tool": Scene(actor(calls(("broken", "{}")), says("It failed"))),
    "provider fails at once": Scene(actor([ProviderError("The provider said no.", code="provider_refused")])),
    "provider fails after a delta": Scene(
        actor([s.TextDelta("Half "), ProviderError("The provider is away.", code="provider_unavailable")])
    ),
    "text never completed": Scene(actor([s.TextDelta("Half "), s.Completed("stop")])),
    "call never committed": Scene(actor([*says("Let me")[:-1], *one_call("lookup", '{"key":"tea"}', commit=False)])),
    "cut stream": Scene(
        actor(
            [
                *one_call("lookup", '{"key":')[:2],
                ProviderError("The provider's stream broke off.", code="stream_cut", retryable=True),
            ]
        )
    ),
    "arguments cut by length": Scene(
        actor(
            [
                s.TextDelta("Writing. "),
                s.AssistantMessageDone(),
                *one_call("lookup", '{"key": "te', commit=False, finish="length"),
            ]
        )
    ),
    "text cut by length": Scene(actor(says("As long as", finish="length"))),
    "content filter": Scene(actor(says("Well then", finish="content_filter"))),
    "refusal with words": Scene(
        actor(
            [s.RefusalDelta("I would "), s.RefusalDelta("rather not."), s.AssistantMessageDone(), s.Completed("stop")]
        )
    ),
    "refusal without words": Scene(actor([s.Completed("refusal")])),
    "empty response": Scene(actor([s.Completed("stop", USAGE)]), settings={"model_retries": 0}),
    "arguments of nothing": Scene(actor(one_call("lookup", "null"), says("Fine"))),
    "call without a name": Scene(actor(one_call("", "{}"), says("Sorry"))),
    "malformed arguments": Scene(actor(one_call("lookup", '{"key": tea}'), says("Sorry"))),
    "undeclared tool": Scene(actor(one_call("launch", "{}"), says("Sorry"))),
    "malformed frontend call": Scene(
        actor(one_call("pick_color", "{blue"), says("Sorry")), [first("Pick", tools=[PICK])]
    ),
    "frontend tool": Scene(
        actor(calls(("pick_color", "{}"), text="Choose."), says("Blue it is")),
        [first("Pick", tools=[PICK]), more(ANSWER, tools=[PICK])],
    ),
    "frontend and server tools": Scene(
        actor(calls(("pick_color", "{}"), ("lookup", '{"key":"tea"}')), says("Blue, 42")),
        [first("Pick", tools=[PICK]), more(ANSWER, tools=[PICK])],
    ),
    "answer put elsewhere": Scene(
        actor(calls(("lookup", '{"key":"tea"}'), ("pick_color", "{}")), says("Blue, 42")),
        [
            first("Pick", tools=[PICK]),
            lambda shown: more(ELSEWHERE, *shown[2:], tools=[PICK])(shown[:2]),
        ],
    ),
    "budget of rounds": Scene(actor(calls(("lookup", '{"key":"tea"}')), budget=Budget(rounds=1))),
    "hooks that deny, change and answer": Scene(
        actor(
            calls(*(("lookup", f'{{"key":"{key}"}}') for key in ("tea", "jam", "egg", "ham"))),
            says("Fine"),
            hooks=[mind_the_shelf],
        )
    ),
    "hook that stops": Scene(
        actor(calls(("lookup", '{"key":"tea"}'), text="Looking."), hooks=[stop_behind_calls]),
    ),
    "reasoning, then text": Scene(
        actor(
            [
                s.ReasoningDelta("Weigh "),
                s.ReasoningDelta("it."),
                s.ReasoningDone(signature="sig"),
                *says("Yes"),
            ]
        )
    ),
    "value as text": Scene(actor(says(SEEN, usage=USAGE), output_type=Seen, output_mode="native")),
    "value that was mended": Scene(actor(says("42"), says(SEEN), output_type=Seen, output_mode="native")),
    "value that never fits": Scene(actor(says("42"), says("43"), output_type=Seen, output_mode="native")),
    "value by a tool": Scene(
        actor(calls(("lookup", '{"key":"tea"}')), calls(("final_response", SEEN), text="Done."), output_type=Seen),
    ),
    "value that a tool mended": Scene(
        actor(
            calls(("final_response", "{}")),
            calls(("final_response", SEEN)),
            says("You are welcome"),
            calls(("final_response", SEEN)),
            output_type=Seen,
        ),
        [first("Hi"), more({"id": "u2", "role": "user", "content": "Thanks"})],
    ),
    "list of values": Scene(actor(says('{"value":[1,2]}'), output_type=list[int], output_mode="native")),
    "child run": Scene(
        actor(calls(("helper", '{"prompt":"Tea?"}'), text="Asking."), says("It says 42"), asks=helper()),
        [first("Hi"), more({"id": "u2", "role": "user", "content": "Thanks"})],
    ),
    "child of a child": Scene(
        actor(
            calls(("middle", '{"prompt":"Ask on"}')),
            says("Done"),
            asks=actor(calls(("helper", '{"prompt":"Tea?"}')), says("42"), name="middle", asks=helper()),
        )
    ),
    "child that fails": Scene(
        actor(calls(("helper", '{"prompt":"Tea?"}')), says("A pity"), asks=helper([s.TextDelta("Half "), CUT]))
    ),
    "child whose call was cut": Scene(
        actor(
            calls(("helper", '{"prompt":"Tea?"}')),
            says("A pity"),
            asks=helper([*one_call("lookup", '{"key":')[:2], CUT]),
        )
    ),
    "approval": Scene(
        actor(calls(("send", '{"to":"Ann"}'), text="Sending."), says("It is sent"), tools=[send]),
        [first("Hi"), resumed({"approved": True})],
    ),
    "approval with other arguments": Scene(
        actor(calls(("send", '{"to":"Ann"}')), says("It is sent"), tools=[send]),
        [first("Hi"), resumed({"approved": True, "editedArgs": {"to": "Bob"}})],
    ),
    "approval that is declined": Scene(
        actor(calls(("send", '{"to":"Ann"}')), says("As you like"), tools=[send]),
        [first("Hi"), resumed(None)],
    ),
    "two approvals, one by one": Scene(
        actor(calls(("send", '{"to":"Ann"}'), ("send", '{"to":"Bob"}')), says("Both are sent"), tools=[send]),
        [first("Hi"), resumed({"approved": True}), resumed({"approved": True}, run="r3")],
    ),
    "a message while something is asked": Scene(
        actor(calls(("send", '{"to":"Ann"}')), says("It is sent"), tools=[send]),
        [
            first("Hi"),
            more({"id": "u2", "role": "user", "content": "Well?"}),
            resumed({"approved": True}, run="r3"),
        ],
    ),
    "a question": Scene(
        actor(calls(("ask_colour", "{}")), says("Blue it is"), tools=[ask_colour]),
        [first("Hi"), resumed("blue")],
    ),
    "approval and a frontend tool": Scene(
        actor(calls(("send", '{"to":"Ann"}'), ("pick_color", "{}")), says("Sent, and blue"), tools=[send]),
        [first("Hi", tools=[PICK]), resumed({"approved": True}, tools=[PICK])],
    ),
    "a child that asks": Scene(
        actor(
            calls(("helper", '{"prompt":"Send it"}')),
            says("Done"),
            asks=actor(
                calls(("send", '{"to":"Ann"}'), text="Sending."),
                says("It is sent"),
                name="helper",
                tools=[send],
                description="Sends things.",
            ),
        ),
        [first("Hi"), resumed({"approved": True})],
    ),
    "an answered run that fails": Scene(
        actor(calls(("send", '{"to":"Ann"}')), [s.TextDelta("Half "), CUT], says("It is sent"), tools=[send]),
        [first("Hi"), resumed({"approved": True})],
    ),
    "shared state": Scene(
        demo_agent,
        [
            first("add milk"),
            more({"id": "u2", "role": "user", "content": "add tea"}, state={}),
        ],
    ),
}


@asynccontextmanager
async def staged(name: str) -> AsyncGenerator[Served, None]:
    """The scene's agent on a socket."""
    async with serving(SCENES[name].agent(), **SCENES[name].settings) as served:
        yield served


async def thread_of(bridge: Bridge, session_id: str = "t1") -> Thread:
    """What the server holds of a session."""
    _, thread = await bridge.supervisor.open(ANONYMOUS, session_id)
    return thread


def shown(thread: Thread) -> list[JsonObject]:
    """The messages of a page that shows the whole thread."""
    return [line.message for line in transcript(thread)]


async def play(name: str) -> list[Played]:
    """Ask everything that the scene asks."""
    played: list[Played] = []
    async with staged(name) as served:
        for request in SCENES[name].asked:
            last = played[-1].answer.events[-1] if played else None
            asked = made(request, await thread_of(served.bridge), last)
            answer = await served.run(asked)
            assert answer.status == 200, answer.body
            thread = await thread_of(served.bridge)
            played.append(Played(asked, answer, shown(thread), copy.deepcopy(thread.state)))
    return played


async def golden_of(name: str) -> str:
    """The streams of a scene as text."""
    return golden(*(each.answer.events for each in await play(name)))
