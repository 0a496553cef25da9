"""What a stream says, one short line an event, and the scenes whose streams are written down in `test_golden_*.py`.

Ids that the server made are named by their order of appearance: `m1` a message, `r1` reasoning, `c1` a call, `o1` its
output. Nothing is left out silently: a member that a line has no place for stands behind it in braces.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from agui_bridge.bridge import Bridge
from agui_bridge.demo import demo_agent
from agui_bridge.transcript import transcript
from runtime import samples as s
from runtime.agent import Agent
from runtime.authority import ANONYMOUS
from runtime.errors import ProviderError
from runtime.testing import Line, ScriptedProvider, calls, says
from runtime.thread import Thread
from runtime.tools.toolbox import Tool, tool
from tests.serving import Answer, JsonObject, Served, ask, serving

MADE = ("msg_", "call_", "result-", "run_", "thr_")
CHANGING = ("content_checksum", "result_checksum", "base_state_digest", "started_at", "idempotency_key", "request")


class Names:
    """Short names for ids, by order of appearance; an id that the client gave stays as it is."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def of(self, kind: str, id_: str) -> str:
        if not id_.startswith(MADE):
            return id_
        if id_ not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[id_] = f"{kind}{self._counts[kind]}"
        return self._names[id_]

    def within(self, value: Any) -> Any:
        """The value with every id that has a name replaced by it."""
        if isinstance(value, dict):
            return {key: self.within(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.within(item) for item in value]
        return self._names.get(value, value) if isinstance(value, str) else value


def golden(*streams: Iterable[JsonObject]) -> str:
    """Streams of AG-UI events as text, a blank line between two."""
    names = Names()
    return "\n\n".join("\n".join(_line(dict(event), names) for event in events) for events in streams)


def _line(event: JsonObject, names: Names) -> str:
    kind = event.pop("type")
    words = [kind]
    for member, prefix in (("threadId", ""), ("runId", ""), ("toolCallId", "c"), ("messageId", _kind_of(kind))):
        if member in event:
            words.append(names.of(prefix, event.pop(member)))
    for member in ("protocolVersion", "role", "stepName", "toolCallName", "name", "code"):
        if member in event:
            words.append(event.pop(member))
    if "parentMessageId" in event:
        words.append("in " + names.of("m", event.pop("parentMessageId")))
    if kind == "CUSTOM":
        words += _round(event, names)
    for member in ("delta", "content", "message", "encryptedValue", "snapshot", "value"):
        if member in event:
            words.append(_json(names.within(event.pop(member))))
    if "messages" in event:
        words.append(" | ".join(_message(dict(message), names) for message in event.pop("messages")))
    if "outcome" in event:
        words += _outcome(dict(event.pop("outcome")), names)
    words += _metadata(event)
    return " ".join(words + ([_json(names.within(event))] if event else []))


def _kind_of(event_type: str) -> str:
    if event_type.startswith("REASONING"):
        return "r"
    return "o" if event_type == "TOOL_CALL_RESULT" else "m"


def _message(message: JsonObject, names: Names) -> str:
    role = message.pop("role")
    words = [role, names.of({"tool": "o", "reasoning": "r"}.get(role, "m"), message.pop("id"))]
    if "toolCallId" in message:
        words.append(names.of("c", message.pop("toolCallId")))
    if "content" in message:
        words.append(_json(message.pop("content")))
    for call in message.pop("toolCalls", []):
        words.append(f"{names.of('c', call['id'])}={call['function']['name']}{call['function']['arguments']}")
    words += _metadata(message)
    return " ".join(words + ([_json(message)] if message else []))


def _outcome(outcome: JsonObject, names: Names) -> list[str]:
    words = [outcome.pop("type")]
    if "pendingToolCallIds" in outcome:
        words.append("pending " + ",".join(names.of("c", id_) for id_ in outcome.pop("pendingToolCallIds")))
    return words + ([_json(outcome)] if outcome else [])


def _round(event: JsonObject, names: Names) -> list[str]:
    """`1 working_message m1` for the classification of a round whose messages all have its role."""
    value = event["value"]
    ids = [message["id"] for message in value.get("messages", [])]
    role = value.get("role")
    if value != {"round": value.get("round"), "role": role, "messages": [{"id": id_, "role": role} for id_ in ids]}:
        return []
    del event["value"]
    return [str(value["round"]), role, *(names.of("m", id_) for id_ in ids)]


def _metadata(event: JsonObject) -> list[str]:
    """`working_message/1` for what a text message is known to be."""
    metadata = event.get("metadata")
    if metadata is None or set(metadata) != {"agui-bridge:role", "agui-bridge:round"}:
        return []
    del event["metadata"]
    return [f"{metadata['agui-bridge:role']}/{metadata['agui-bridge:round']}"]


def golden_facts(documents: Iterable[JsonObject]) -> str:
    """A run's journal as text: seq, type, payload. Digests and times are left out."""
    names = Names()
    return "\n".join(_fact(document, names) for document in documents)


def _fact(document: JsonObject, names: Names) -> str:
    payload = {name: value for name, value in document["payload"].items() if name not in CHANGING}
    for member, prefix in (("message_id", "m"), ("tool_call_id", "c")):
        if member in payload:
            payload[member] = names.of(prefix, payload[member])
    return f"{document['seq']} {document['event_type']} {_json(names.within(payload))}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- the stage ----------------------------------------------------------------------------------------------------


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


@dataclass(frozen=True)
class Played:
    """A request of a scene, its answer, and the thread as the answer left it."""

    asked: JsonObject
    answer: Answer
    thread: Thread


def first(text: str, **more: Any) -> Request:
    """One user message on a new thread."""
    return lambda _: ask(text, protocolVersion="1.0", **more)


def more(*messages: JsonObject, run: str = "r2", **members: Any) -> Request:
    """What the page shows, and these messages."""
    return lambda shown: ask("", run=run, messages=[*shown, *messages], protocolVersion="1.0", **members)


def actor(*rounds: Iterable[Line], **members: Any) -> Callable[[], Agent]:
    """An agent whose model plays these rounds."""
    return lambda: Agent("assistant", model=ScriptedProvider(*rounds), tools=TOOLS, **members)


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
    "empty response": Scene(actor([s.Completed("stop", USAGE)])),
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
    "budget of rounds": Scene(actor(calls(("lookup", '{"key":"tea"}')), max_rounds=1)),
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
    async with serving(SCENES[name].agent()) as served:
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
            asked = request(shown(await thread_of(served.bridge)))
            answer = await served.run(asked)
            assert answer.status == 200, answer.body
            played.append(Played(asked, answer, await thread_of(served.bridge)))
    return played


async def golden_of(name: str) -> str:
    """The streams of a scene as text."""
    return golden(*(each.answer.events for each in await play(name)))
