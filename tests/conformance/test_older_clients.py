"""Pages on the clients before 1.0, which send no version: they are content, and hold what the server holds."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import orjson
import pytest

from agui_bridge.demo import demo_agent
from agui_bridge.encoders import Rendering, plain_frames
from agui_bridge.prelude import restated
from agui_bridge.transcript import Line
from agui_bridge.wire import events as agui
from agui_bridge.wire.versions.before_1_0 import Before10
from runtime.agent import Agent
from runtime.errors import ProviderError
from runtime.hooks import BeforeTool, before_tool
from runtime.samples import TextDelta, ToolCallDelta
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.conformance.test_golden_streams_in_the_official_client import LIVE, PICK
from tests.official_client import NEWEST, OLDER, OfficialClient, Verdict
from tests.serving import Served, ask, serving
from tests.wire.scenes import SCENES, lookup, made, send, shown, staged, thread_of

JsonObject = dict[str, Any]
NAMES = itertools.count(1)


def known_to(client: str, messages: list[JsonObject]) -> list[JsonObject]:
    """The messages as this client keeps them: none is told whose words they are, and the oldest has no metadata."""
    unknown = {"subagentRunId", "metadata"} if client == "0.0.57" else {"subagentRunId"}
    return [{name: value for name, value in message.items() if name not in unknown} for message in messages]


def assert_holds(verdict: Verdict, client: str, messages: list[JsonObject], state: Any) -> None:
    verdict.assert_clean()
    assert verdict.terminal is not None
    assert known_to(client, verdict.messages) == known_to(client, messages)
    assert verdict.state == state


def without_version(asked: JsonObject) -> JsonObject:
    return {name: value for name, value in asked.items() if name != "protocolVersion"}


# --- the golden streams -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENES)
async def test_a_golden_stream_builds_what_the_server_holds(name: str, official_client: OfficialClient) -> None:
    async with staged(name) as served:
        last: JsonObject | None = None
        for request in SCENES[name].asked:
            asked = without_version(made(request, await thread_of(served.bridge), last))
            answer = await served.run(asked)
            last = answer.events[-1]
            thread = await thread_of(served.bridge)
            state = asked.get("state", {})
            for client in OLDER:
                verdict = await official_client.replay(answer.body, {**asked, "state": state}, client=client)
                if name == "answer put elsewhere":  # and stays where the page has put it
                    verdict.assert_clean()
                else:
                    assert_holds(verdict, client, shown(thread), thread.state)


# --- live ---------------------------------------------------------------------------------------------------------


class OldPage:
    """A page on an older client that stays open from run to run."""

    def __init__(self, judge: OfficialClient, served: Served, client: str) -> None:
        self.name = f"old-page-{next(NAMES)}"
        self._judge = judge
        self._served = served
        self._client = client
        self._count = itertools.count(1)

    async def say(self, text: str, **more: Any) -> Verdict:
        message = {"id": f"u{next(self._count)}", "role": "user", "content": text}
        return await self.send([message], **more)

    async def send(self, added: list[JsonObject], **more: Any) -> Verdict:
        return await self._judge.run(
            self._served.url + "/",
            agent=self.name,
            client=self._client,
            thread_id="t1",
            run_id=f"r{next(self._count)}",
            add_messages=added,
            tools=[PICK],
            **more,
        )

    async def agrees(self, verdict: Verdict) -> None:
        thread = await thread_of(self._served.bridge)
        assert_holds(verdict, self._client, shown(thread), thread.state)


@pytest.mark.parametrize("client", OLDER)
@pytest.mark.parametrize("name", LIVE)
async def test_a_page_and_the_server_hold_the_same_after_every_run(
    name: str, client: str, official_client: OfficialClient
) -> None:
    async with serving(demo_agent()) as served:
        page = OldPage(official_client, served, client)
        for words in LIVE[name]:
            await page.agrees(await page.say(words))


@pytest.mark.parametrize("client", OLDER)
async def test_a_tool_of_the_page_is_answered_by_a_message(client: str, official_client: OfficialClient) -> None:
    async with serving(demo_agent()) as served:
        page = OldPage(official_client, served, client)
        asked = await page.say('/script {"rounds": [{"text": "Pick", "tool_calls": [{"name": "pick_color"}]}]}')
        await page.agrees(asked)
        assert asked.terminal is not None
        assert asked.terminal["outcome"] == {"type": "success"}
        call = asked.messages[-1]["toolCalls"][0]["id"]
        answered = await page.send([{"id": "a1", "role": "tool", "toolCallId": call, "content": "blue"}])
        await page.agrees(answered)
        assert answered.messages[-1]["content"] == "done"


@pytest.mark.parametrize("client", OLDER)
async def test_a_page_that_shows_later_turns_alone_ends_with_the_whole_in_our_order(
    client: str, official_client: OfficialClient
) -> None:
    async with serving(demo_agent()) as served:
        page = OldPage(official_client, served, client)
        for words in ("Let me hear you think", "What is the weather in Oslo?"):
            await page.say(words)
        later = shown(await thread_of(served.bridge))
        second = next(place for place, message in enumerate(later) if message.get("content", "").startswith("What is"))
        shows_less = OldPage(official_client, served, client)
        verdict = await shows_less.send(
            [{"id": "u-new", "role": "user", "content": "Hello"}], messages=known_to(client, later[second:])
        )
        await page.agrees(verdict)
        assert len(verdict.messages) > len(later)


# --- stopped and failed runs --------------------------------------------------------------------------------------


async def stop(served: Served, behind: bytes) -> None:
    """Stop the run that is at work, or will be, as soon as it has committed this."""
    place = f"/api/agent-runs/{await id_of_the_run_at_work(served)}"
    async with served.http.stream("GET", f"{place}/events") as response:
        seen = b""
        async for piece in response.aiter_bytes():
            seen += piece
            if behind in seen:
                break
    await served.http.post(f"{place}/cancel", params={"wait": "10"})


async def id_of_the_run_at_work(served: Served) -> str:
    for _ in range(2000):
        for run in await served.bridge.supervisor.journal.active_runs():
            return run.run_id
        await asyncio.sleep(0.005)
    raise AssertionError("no run has begun")


def cut_in_a_call() -> Agent:
    """An agent that never gets to the end of a call's arguments, and then speaks."""
    call = ToolCallDelta("0", "pick_color", '{"shade": "da', "call_a")
    return Agent(
        "assistant", model=ScriptedProvider([TextDelta("Choose. "), call, asyncio.Event()], says("Hello again"))
    )


@pytest.mark.parametrize("client", OLDER)
async def test_a_call_that_was_cut_by_a_stop_is_run_by_nobody(client: str, official_client: OfficialClient) -> None:
    async with serving(cut_in_a_call()) as served:
        page = OldPage(official_client, served, client)
        running = asyncio.create_task(page.say("Pick"))
        await stop(served, behind=b"event: tool.call.started")
        verdict = await running
        await page.agrees(verdict)
        assert verdict.terminal is not None
        assert (verdict.terminal["type"], verdict.terminal["code"]) == ("RUN_ERROR", "run_cancelled")
        assert not any(message.get("toolCalls") for message in verdict.messages)
        await page.agrees(await page.say("Hello"))


INTERRUPTED: list[JsonObject] = [
    {"type": "RUN_STARTED", "threadId": "t1", "runId": "r0"},
    {
        "type": "RUN_FINISHED",
        "threadId": "t1",
        "runId": "r0",
        "outcome": {"type": "interrupt", "interrupts": [{"id": "i1", "reason": "tool_call"}]},
    },
]
ANSWER: list[JsonObject] = [{"interruptId": "i1", "status": "resolved", "payload": {"approved": True}}]


@pytest.mark.parametrize("client", [*OLDER, NEWEST])
async def test_a_continuation_that_fails_does_not_lock_the_page(client: str, official_client: OfficialClient) -> None:
    broken = [TextDelta("Half "), ProviderError("The provider is away.", code="provider_unavailable")]
    model = ScriptedProvider(broken, says("Whole again"))
    async with serving(Agent("assistant", model=model)) as served:
        page = OldPage(official_client, served, client)
        await wait_for_an_answer(official_client, page.name, client)
        failed = await page.say("Go on", resume=ANSWER)
        assert failed.types[-2:] == ["RUN_FINISHED", "RUN_ERROR"]
        assert failed.pending_interrupts == []
        again = await page.say("Hello")
        assert again.ok, again.error
        assert again.messages[-1]["content"] == "Whole again"


@pytest.mark.parametrize("client", [*OLDER, NEWEST])
async def test_a_continuation_that_is_stopped_does_not_lock_the_page(
    client: str, official_client: OfficialClient
) -> None:
    model = ScriptedProvider([TextDelta("Half "), asyncio.Event()], says("Whole again"))
    async with serving(Agent("assistant", model=model)) as served:
        page = OldPage(official_client, served, client)
        await wait_for_an_answer(official_client, page.name, client)
        running = asyncio.create_task(page.say("Go on", resume=ANSWER))
        await stop(served, behind=b"event: message.delta")
        stopped = await running
        stopped.assert_clean()
        assert stopped.pending_interrupts == []
        assert stopped.types[-1] == ("RUN_FINISHED" if client == NEWEST else "RUN_ERROR")
        assert (await page.say("Hello")).messages[-1]["content"] == "Whole again"


async def wait_for_an_answer(judge: OfficialClient, name: str, client: str) -> None:
    """Let the page's last run be one that ended with an interrupt."""
    body = b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in INTERRUPTED)
    verdict = await judge.replay(body, {"threadId": "t1", "runId": "r0", "agent": name}, client=client)
    assert [each["id"] for each in verdict.pending_interrupts] == ["i1"]


# --- what is asked ------------------------------------------------------------------------------------------------


def yes(interrupt: JsonObject) -> JsonObject:
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}


SEND_TWO = calls(("send", '{"to":"Ann"}'), ("send", '{"to":"Bob"}'))


@pytest.mark.parametrize("client", OLDER)
async def test_what_a_run_asks_is_answered_by_older_pages_as_by_new_ones(
    client: str, official_client: OfficialClient
) -> None:
    model = ScriptedProvider(SEND_TWO, says("Both are sent"), says("Hello"))
    async with serving(Agent("assistant", model=model, tools=[send])) as served:
        page = OldPage(official_client, served, client)
        asked = await page.say("Write to both")
        await page.agrees(asked)
        assert [each["toolCallId"] for each in asked.pending_interrupts] == ["call_0", "call_1"]
        answered = await page.send([], resume=[yes(each) for each in asked.pending_interrupts])
        await page.agrees(answered)
        assert answered.pending_interrupts == []
        assert answered.messages[-1]["content"] == "Both are sent"
        assert (await page.say("Hi")).ok


@pytest.mark.parametrize("client", OLDER)
async def test_what_a_child_asks_is_asked_of_pages_that_know_no_children(
    client: str, official_client: OfficialClient
) -> None:
    writing = ScriptedProvider(calls(("send", '{"to":"Ann"}'), text="Sending."), says("It is sent"))
    writer = Agent("writer", model=writing, tools=[send], description="Writes.")
    model = ScriptedProvider(calls(("writer", '{"prompt":"Write"}')), says("Done"))
    async with serving(Agent("assistant", model=model, tools=[writer])) as served:
        page = OldPage(official_client, served, client)
        asked = await page.say("Have it written")
        await page.agrees(asked)
        [interrupt] = asked.pending_interrupts
        assert "subagentRunId" not in interrupt
        answered = await page.send([], resume=[yes(interrupt)])
        answered.assert_clean()
        assert answered.pending_interrupts == []
        assert not any(kind.startswith("SUBAGENT") for kind in answered.types)
        assert answered.messages[-1]["content"] == "Done"


@pytest.mark.requirement("R-069")
@pytest.mark.parametrize("client", [*OLDER, NEWEST])
async def test_a_page_goes_on_holding_what_is_asked_when_the_run_fails_that_took_one_answer(
    client: str, official_client: OfficialClient
) -> None:
    troubled: list[bool] = []

    @before_tool
    def nervous(call: BeforeTool) -> None:
        if troubled:
            raise RuntimeError("not now")

    agent = Agent("assistant", model=ScriptedProvider(SEND_TWO, says("Both are sent")), tools=[send], hooks=[nervous])
    async with serving(agent) as served:
        page = OldPage(official_client, served, client)
        ann, bob = (await page.say("Write to both")).pending_interrupts
        troubled.append(True)
        failed = await page.send([], resume=[yes(ann), {**yes(bob), "payload": {"approved": "perhaps"}}])
        assert failed.types[-1] == "RUN_ERROR"
        assert "RUN_FINISHED" not in failed.types
        assert [each["id"] for each in failed.pending_interrupts] == [ann["id"], bob["id"]]
        troubled.clear()
        answered = await page.send([], resume=[yes(ann), yes(bob)])
        answered.assert_clean()
        assert answered.pending_interrupts == []
        assert answered.messages[-1]["content"] == "Both are sent"


# --- who is older -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.10", "2.0", "banana", ""])
async def test_who_says_a_version_is_told_in_ours_whatever_it_is(version: str) -> None:
    async with serving(demo_agent()) as served:
        words = '/script {"rounds": [{"tool_calls": [{"name": "pick_color"}]}]}'
        answer = await served.run(ask(words, tools=[PICK], protocolVersion=version))
        assert answer.events[0]["protocolVersion"] == "1.0"
        assert len(answer.events[-1]["outcome"]["pendingToolCallIds"]) == 1


async def test_who_says_none_is_told_our_version_and_the_older_shape() -> None:
    async with serving(demo_agent()) as served:
        words = '/script {"rounds": [{"tool_calls": [{"name": "pick_color"}]}]}'
        answer = await served.run(ask(words, tools=[PICK]))
        assert answer.events[0]["protocolVersion"] == "1.0"
        assert answer.events[-1]["outcome"] == {"type": "success"}
        again = await served.run(ask(words, tools=[PICK], protocolVersion="1.0"))
        assert again.headers["x-run-id"] == answer.headers["x-run-id"]
        assert "pendingToolCallIds" in again.events[-1]["outcome"]


# --- child runs ---------------------------------------------------------------------------------------------------


def delegating() -> Agent:
    """An agent that has two others look into two things at once; each of them has two rounds of its own."""
    looks = [calls(("lookup", '{"key":"tea"}'), text="Looking. "), says("It is 42")]
    helpers = {
        name: Agent(name, model=ScriptedProvider(*looks), tools=[lookup], description=f"Knows {name}.")
        for name in ("tea", "jam")
    }

    @tool(parallel=True)
    async def research(ctx: ToolContext, topic: str) -> str:
        """Have it looked into."""
        return await ctx.delegate(helpers[topic], f"What of {topic}?")

    both = calls(("research", '{"topic":"tea"}'), ("research", '{"topic":"jam"}'), text="I ask. ")
    return Agent("assistant", model=ScriptedProvider(both, says("Both are 42")), tools=[research])


@pytest.mark.parametrize("client", OLDER)
async def test_a_childs_words_stand_among_the_runs_own(client: str, official_client: OfficialClient) -> None:
    async with serving(delegating()) as served:
        verdict = await OldPage(official_client, served, client).say("Look into it")
        verdict.assert_clean()
        assert not any(kind.startswith("SUBAGENT") for kind in verdict.types)
        assert "subagentRunId" not in str(verdict.events)
        words = [message.get("content") for message in verdict.messages]
        assert words.count("It is 42") == 4  # said by each child, and told as each call's result
        assert words[-1] == "Both are 42"
        newest = await served.run(ask("", run="back", messages=[], protocolVersion="1.0"), "/connect")
        held = next(event["messages"] for event in newest.events if event["type"] == "MESSAGES_SNAPSHOT")
        assert {message["id"] for message in held} == {message["id"] for message in verdict.messages}


async def test_child_runs_are_told_as_such_where_the_pages_are_said_to_know_them(
    official_client: OfficialClient,
) -> None:
    async with serving(delegating(), legacy_subagents=True) as served:
        verdict = await OldPage(official_client, served, "0.0.59").say("Look into it")
        verdict.assert_clean()
        assert verdict.types.count("SUBAGENT_STARTED") == verdict.types.count("SUBAGENT_FINISHED") == 2
        assert sum("subagentRunId" in message for message in verdict.messages) > 2


# --- what a runtime between page and server keeps -----------------------------------------------------------------


@tool
async def rename(ctx: ToolContext, to: str) -> str:
    """Change a part of a part of the state, twice."""
    ctx.state["board"]["name"] = to
    ctx.publish_state()
    ctx.state["board"]["size"] = 2
    return "renamed"


@pytest.mark.parametrize("client", OLDER)
async def test_a_runtime_that_folds_a_run_from_nothing_has_the_whole_state(
    client: str, official_client: OfficialClient
) -> None:
    state = {"board": {"name": "old"}, "notes": "n" * 200}
    model = ScriptedProvider(calls(("rename", '{"to": "new"}')), says("Done"))
    after = {**state, "board": {"name": "new", "size": 2}}
    async with serving(Agent("assistant", model=model, tools=[rename])) as served:
        answer = await served.run(ask("Rename it", state=state))
        (verdict, kept) = await asyncio.gather(
            official_client.replay(answer.body, ask("Rename it", state=state), client=client),
            official_client.compact(answer.events, client=client),
        )
        verdict.assert_clean()
        assert verdict.state == after
        assert [event["snapshot"] for event in kept if event["type"] == "STATE_SNAPSHOT"] == [after]
        assert [kind for kind in answer.types if kind.startswith("STATE")] == ["STATE_SNAPSHOT", "STATE_DELTA"]


# --- snapshots ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", OLDER)
async def test_no_stand_in_stays_on_the_page_behind_two_snapshots(client: str, official_client: OfficialClient) -> None:
    ids = {"threadId": "t1", "runId": "r1"}
    user, answer = ({"id": f"{role}1", "role": role, "content": role} for role in ("user", "assistant"))
    activity = {"id": "activity-1", "role": "activity", "activityType": "plan", "content": {"step": 1}}
    missing = {"id": "user0", "role": "user", "content": "before"}
    events = [
        agui.run_started("t1", "r1"),
        *restated([Line(message, "") for message in (missing, user, activity, answer)], [user, answer]).events,
        agui.run_finished("t1", "r1"),
    ]
    body = plain_frames(events, Rendering(shape=Before10(pytest.fail)))
    verdict = await official_client.replay(body, {**ids, "messages": [user, activity, answer]}, client=client)
    verdict.assert_clean()
    assert sorted(message["id"] for message in verdict.messages) == ["activity-1", "assistant1", "user0", "user1"]
    spoken = [message["id"] for message in verdict.messages if message["role"] != "activity"]
    assert spoken == ["user0", "user1", "assistant1"]
