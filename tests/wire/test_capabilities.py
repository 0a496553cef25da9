"""What is declared is done: each flag that an agent declares as true is put to the test over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import orjson
import pytest

from runtime.agent import Agent
from runtime.scripted import ScriptedModel
from runtime.testing import ScriptedProvider, calls
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import Tool, tool
from tests.pictures import inline, png
from tests.serving import Answer, JsonObject, Served, ask, serving
from tests.wire.desk import PICK
from tests.wire.protobuf import PROTO, types_of

ALL = "/agents/all"
VALUED = "/agents/valued"


@dataclass
class Backstage:
    """What the tools are held by, and what they did: `hold` says that it was `held`, and ends when it may `go`."""

    held: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    pair: asyncio.Barrier = field(default_factory=lambda: asyncio.Barrier(2))
    sent: list[str] = field(default_factory=list[str])


@dataclass
class Stage:
    """A server with an agent of everything and one that answers with a number."""

    served: Served
    behind: Backstage

    async def play(self, *rounds: JsonObject, **more: Any) -> Answer:
        """A run of the agent of everything whose model plays these rounds."""
        return await self.served.run(played(*rounds, **more), path=ALL)

    async def declared(self, path: str = ALL) -> JsonObject:
        return (await self.served.get(f"{path}/capabilities")).document


def played(*rounds: JsonObject, **more: Any) -> JsonObject:
    return ask(f"/script {json.dumps({'rounds': list(rounds)})}", protocolVersion="1.0", **more)


def call(name: str, **arguments: Any) -> JsonObject:
    return {"name": name, "arguments": arguments}


def of_type(answer: Answer, type_: str) -> list[JsonObject]:
    return [event for event in answer.events if event["type"] == type_]


def results(answer: Answer) -> list[str]:
    return [event["content"] for event in of_type(answer, "TOOL_CALL_RESULT")]


def said(answer: Answer) -> str:
    return "".join(event["delta"] for event in of_type(answer, "TEXT_MESSAGE_CONTENT"))


def tools_of(stage: Backstage) -> list[Tool | Agent]:
    """A tool for each thing that can be declared of one."""

    @tool(approval=True)
    async def send(to: str) -> str:
        """Send something."""
        stage.sent.append(to)
        return f"Sent to {to}."

    @tool(parallel=True)
    async def meet() -> str:
        """Wait for another call of this tool."""
        await stage.pair.wait()
        return "met"

    @tool
    async def count(ctx: ToolContext) -> str:
        """Count one up in the shared state."""
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return "counted"

    @tool
    async def hold() -> str:
        """Take a while."""
        stage.held.set()
        await stage.go.wait()
        return "held"

    return [send, meet, count, hold, Agent("helper", model=ScriptedModel(), description="Helps.")]


@asynccontextmanager
async def staged() -> AsyncGenerator[Stage, None]:
    behind = Backstage()
    everything = Agent("all", model=ScriptedModel(), tools=tools_of(behind))
    valued = Agent("valued", model=ScriptedProvider(calls(("final_response", '{"value": 4}'))), output_type=int)
    async with serving([everything, valued], on_busy="steer") as served:
        yield Stage(served, behind)


# --- what each flag means ---------------------------------------------------------------------------------------------


async def what_is_in_a_document_is_read(stage: Stage) -> None:
    declared = (await stage.declared())["multimodal"]["input"]
    assert declared == {"image": False, "audio": False, "video": False, "pdf": False, "file": True}
    content = [inline(b"Buy tea.", "text/plain", "document"), inline(png(1, 8))]
    answer = await stage.served.run(ask("", messages=[{"id": "u1", "role": "user", "content": content}]), path=ALL)
    assert "Buy tea." in said(answer)


async def text_comes_before_the_run_is_over(stage: Stage) -> None:
    body = played({"text": "Wait.", "tool_calls": [call("hold")]}, {"text": "Done"})
    async with stage.served.streaming(body, path=ALL) as events:
        seen = [await anext(events)]
        while seen[-1]["type"] != "TEXT_MESSAGE_CONTENT":
            seen.append(await anext(events))
        assert not stage.behind.go.is_set()
        stage.behind.go.set()
        assert [event async for event in events][-1]["type"] == "RUN_FINISHED"


async def a_stream_comes_as_protobuf_where_that_is_accepted(stage: Stage) -> None:
    answer = await stage.served.run(ask("hello"), path=ALL, accept=PROTO)
    assert answer.headers["content-type"] == PROTO
    assert types_of(answer.body)[-1] == "RUN_FINISHED"


async def a_stream_goes_on_behind_each_of_its_ids(stage: Stage) -> None:
    answer = await stage.play({"reasoning": "hm", "text": "one two three"})
    frames = [frame + b"\n\n" for frame in answer.body.split(b"\n\n") if frame]
    ids = [(at, frame) for at, frame in enumerate(frames) if frame.startswith(b"id: ")]
    assert len(ids) > 5
    for at, frame in ids[:-1]:
        cursor = frame.partition(b"\n")[0].removeprefix(b"id: ").decode()
        again = await stage.served.get(f"{answer.headers['location']}/events?format=agui", last_event_id=cursor)
        assert again.body == b"".join(frames[at + 1 :])


async def a_tool_of_the_agent_is_run(stage: Stage) -> None:
    assert results(await stage.play({"tool_calls": [call("count")]})) == ["counted"]


async def two_calls_of_a_round_run_together(stage: Stage) -> None:
    assert results(await stage.play({"tool_calls": [call("meet"), call("meet")]})) == ["met", "met"]


async def a_tool_of_the_page_is_offered_and_its_answer_used(stage: Stage) -> None:
    rounds = [{"tool_calls": [call("pick")]}, {"text": "Thanks"}]
    first = await stage.play(*rounds, tools=[PICK])
    [pending] = first.events[-1]["outcome"]["pendingToolCallIds"]
    answer = {"id": "a1", "role": "tool", "toolCallId": pending, "content": "blue"}
    second = await stage.served.run(ask("", run="r2", messages=[answer], tools=[PICK]), path=ALL)
    assert (results(first), said(second)) == ([], "Thanks")


async def an_answer_is_a_value_of_its_type(stage: Stage) -> None:
    assert (await stage.served.run(ask("Count"), path=VALUED)).events[-1]["result"] == 4


async def a_change_of_the_state_is_told_as_a_delta(stage: Stage) -> None:
    answer = await stage.play({"tool_calls": [call("count")]}, state={"n": 1, "more": "x" * 200})
    [delta] = of_type(answer, "STATE_DELTA")
    assert delta["delta"] == [{"op": "replace", "path": "/n", "value": 2}]


async def the_state_of_a_thread_lasts_and_is_told_whole_to_who_lacks_it(stage: Stage) -> None:
    await stage.play({"tool_calls": [call("count")]})
    for number in (2, 3):
        body = played({"tool_calls": [call("count")]}, run=f"r{number}", message=f"u{number}")
        answer = await stage.served.run(body, path=ALL)
        assert of_type(answer, "STATE_SNAPSHOT")[0]["snapshot"] == {"n": number - 1}


async def work_is_handed_to_the_agents_that_are_named(stage: Stage) -> None:
    [named] = (await stage.declared())["multiAgent"]["subagents"]
    answer = await stage.play({"tool_calls": [call(named["name"], prompt="/tokens 2")]}, {"text": "Thanks"})
    [started] = of_type(answer, "SUBAGENT_STARTED")
    assert {"name": started["name"], "description": started["description"]} == named
    assert results(answer) == ["tok tok "]
    assert said(answer).endswith("Thanks")


async def thoughts_are_shown_as_they_come(stage: Stage) -> None:
    answer = await stage.play({"reasoning": "one two three", "text": "Yes"})
    thoughts = of_type(answer, "REASONING_MESSAGE_CONTENT")
    assert len(thoughts) > 1
    assert "".join(event["delta"] for event in thoughts) == "one two three"


async def approved(stage: Stage, **payload: Any) -> list[str]:
    """Ask for an approval, give it with this payload, and say what came of the call."""
    first = await stage.play({"tool_calls": [call("send", to="Ann")]}, {"text": "Sent"})
    assert first.events[-1]["outcome"]["type"] == "interrupt"
    [interrupt] = first.events[-1]["outcome"]["interrupts"]
    assert stage.behind.sent == []
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True, **payload}}]
    second = await stage.served.run(ask("", run="r2", messages=[], resume=resume, protocolVersion="1.0"), path=ALL)
    assert second.events[-1]["outcome"] == {"type": "success"}
    return results(second)


async def a_call_waits_for_its_approval_and_runs_with_it(stage: Stage) -> None:
    assert await approved(stage) == ["Sent to Ann."]
    assert stage.behind.sent == ["Ann"]


async def a_call_runs_with_the_arguments_that_were_approved(stage: Stage) -> None:
    [told] = await approved(stage, editedArgs={"to": "Ben"})
    assert told.endswith("Sent to Ben.")
    assert stage.behind.sent == ["Ben"]


async def until_one_waits(served: Served) -> None:
    """Return once a message waits for its thread."""
    async with asyncio.timeout(10):
        while True:
            if (await served.get("/api/agent-runs?status=queued")).document["runs"]:
                return
            await asyncio.sleep(0.005)


async def a_run_at_work_takes_in_what_is_said_meanwhile(stage: Stage) -> None:
    first = asyncio.create_task(stage.play({"tool_calls": [call("hold")]}, {"text": "As planned"}))
    await stage.behind.held.wait()
    body = ask("", run="r2", messages=[{"id": "u2", "role": "user", "content": "/tokens 2"}], protocolVersion="1.0")
    second = asyncio.create_task(stage.served.run(body, path=ALL))
    await until_one_waits(stage.served)
    stage.behind.go.set()
    assert said(await first) == "tok tok "
    assert (await second).types[-1] == "RUN_FINISHED"


async def no_run_has_more_rounds(stage: Stage) -> None:
    most = (await stage.declared())["execution"]["maxIterations"]
    again = {"tool_calls": [call("count")]}
    answer = await stage.play(*[again] * (most + 5))
    assert len(of_type(answer, "STEP_STARTED")) == most
    assert answer.events[-1]["outcome"]["type"] == "cancelled"


Behaviour: TypeAlias = Callable[[Stage], Awaitable[None]]

BEHAVIOURS: dict[str, Behaviour] = {
    "transport.streaming": text_comes_before_the_run_is_over,
    "transport.httpBinary": a_stream_comes_as_protobuf_where_that_is_accepted,
    "transport.resumable": a_stream_goes_on_behind_each_of_its_ids,
    "tools.supported": a_tool_of_the_agent_is_run,
    "tools.parallelCalls": two_calls_of_a_round_run_together,
    "tools.clientProvided": a_tool_of_the_page_is_offered_and_its_answer_used,
    "output.structuredOutput": an_answer_is_a_value_of_its_type,
    "state.snapshots": the_state_of_a_thread_lasts_and_is_told_whole_to_who_lacks_it,
    "state.deltas": a_change_of_the_state_is_told_as_a_delta,
    "state.persistentState": the_state_of_a_thread_lasts_and_is_told_whole_to_who_lacks_it,
    "multiAgent.supported": work_is_handed_to_the_agents_that_are_named,
    "multiAgent.delegation": work_is_handed_to_the_agents_that_are_named,
    "multimodal.input": what_is_in_a_document_is_read,
    "reasoning.supported": thoughts_are_shown_as_they_come,
    "reasoning.streaming": thoughts_are_shown_as_they_come,
    "execution.maxIterations": no_run_has_more_rounds,
    "humanInTheLoop.supported": a_call_waits_for_its_approval_and_runs_with_it,
    "humanInTheLoop.approvals": a_call_waits_for_its_approval_and_runs_with_it,
    "humanInTheLoop.interrupts": a_call_waits_for_its_approval_and_runs_with_it,
    "humanInTheLoop.interventions": a_run_at_work_takes_in_what_is_said_meanwhile,
    "humanInTheLoop.approveWithEdits": a_call_runs_with_the_arguments_that_were_approved,
}
"""What is done to see that a flag says the truth."""

WORDS = {"identity.name", "identity.type", "tools.items", "multiAgent.subagents"}
"""What is declared and is no claim of something done; what is listed is compared where it is derived."""


def claims(declared: JsonObject) -> set[str]:
    """What a document claims: all that is in it, apart from what it says is not so."""
    return {f"{group}.{name}" for group, members in declared.items() for name, value in members.items() if value}


@pytest.mark.requirement("R-192", "R-193")
@pytest.mark.parametrize("flag", BEHAVIOURS)
async def test_what_is_declared_is_done(flag: str) -> None:
    async with staged() as stage:
        assert flag in claims(await stage.declared()) | claims(await stage.declared(VALUED))
        await BEHAVIOURS[flag](stage)


async def test_whatever_can_be_declared_has_such_a_test() -> None:
    async with staged() as stage:
        declared = claims(await stage.declared()) | claims(await stage.declared(VALUED))
    assert declared == BEHAVIOURS.keys() | WORDS


async def test_a_question_of_an_agent_that_is_asked_is_declared_and_reaches_the_page() -> None:
    below = Agent("below", model=ScriptedModel(), tools=tools_of(Backstage())[:1])
    async with serving(Agent("above", model=ScriptedModel(), tools=[below])) as served:
        assert (await served.get("/capabilities")).document["humanInTheLoop"]["approvals"] is True
        script = json.dumps({"rounds": [{"tool_calls": [call("send", to="Ann")]}]})
        answer = await served.run(played({"tool_calls": [call("below", prompt=f"/script {script}")]}))
        assert answer.events[-1]["outcome"]["type"] == "interrupt"


@pytest.mark.requirement("R-192")
async def test_what_is_said_not_to_be_is_not() -> None:
    async with staged() as stage:
        document = (await stage.served.get("/agents/all/capabilities")).body
        assert orjson.loads(document)["transport"]["websocket"] is False
        upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_version": "13"}
        answer = await stage.served.get(ALL, sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==", **upgrade)
        assert answer.status in (400, 403, 404, 405, 426)
