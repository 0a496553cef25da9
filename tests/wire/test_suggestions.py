"""What a user might say next: throw-away runs of CopilotKit's pages, on whatever route they come."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agui_bridge.suggestion_request import SUGGEST
from runtime import samples as s
from runtime.agent import Agent
from runtime.executors import RunContext
from runtime.hooks import BeforeRound, BeforeTool, ChangeRequest, RunEnd, before_round, before_tool, on_run_end
from runtime.items import Message
from runtime.journal.memory import MemoryJournal
from runtime.testing import MockProvider, ScriptedProvider, calls, says
from runtime.tools.toolbox import tool
from tests.contract.provider_server import KINDS, model_of
from tests.contract.workshop import until
from tests.pure.stock_page import Page
from tests.serving import Answer, JsonObject, Served, ask, serving
from tests.wire.test_copilotkit import RUN, envelope, legal
from tests.wire.test_web_guard import refused

ROUTE = "/copilotkit/agent/a/suggest"
TOOL: JsonObject = {
    "name": SUGGEST,
    "description": "Suggest what the user could say next",
    "parameters": {"type": "object", "properties": {"suggestions": {"type": "array"}}},
}
GIVEN = '{"suggestions":[{"title":"More","message":"Tell me more"}]}'


def wish(thread: str = "s1", **more: Any) -> JsonObject:
    """The request of a page: the history that it shows, and the wish behind it."""
    shown = [
        {"id": "u1", "role": "user", "content": "Tea?"},
        {"id": "a1", "role": "assistant", "content": "Yes."},
        {"id": thread, "role": "user", "content": "Suggest what the user could say next."},
    ]
    props = {"toolChoice": {"type": "function", "function": {"name": SUGGEST}}}
    given: JsonObject = {"messages": shown, "tools": [TOOL], "forwardedProps": props, **more}
    return ask("", thread, "s-run", **given)


def left(served: Served) -> list[Any]:
    """Everything that the store of suggestions holds."""
    store = served.bridge._suggestions._supervisor.journal
    assert isinstance(store, MemoryJournal)
    return [*store._runs, *store._records, *store._sessions, *store._threads, *store._contents]


def told(served: Served) -> list[Any]:
    """The facts of the suggestions at work."""
    store = served.bridge._suggestions._supervisor.journal
    assert isinstance(store, MemoryJournal)
    return [each.event for records in store._records.values() for each in records]


def suggested(answer: Answer) -> str:
    page = Page()
    page.apply(legal(answer).events)
    return page.messages[-1]["toolCalls"][0]["function"]["arguments"]


async def stored(served: Served) -> list[JsonObject]:
    return (await served.get("/api/sessions")).document["sessions"]


@pytest.mark.parametrize("path", [ROUTE, RUN, "/", "/agents/a"])
async def test_suggestions_come_as_a_call_and_leave_nothing_behind(path: str):
    model = ScriptedProvider(calls((SUGGEST, GIVEN)))
    async with serving(Agent("a", model=model, instructions="Be kind.")) as served:
        answer = await served.run(wish(), path=path)
        assert suggested(answer) == GIVEN
        assert answer.events[0]["threadId"] == "s1"
        assert "x-run-id" not in answer.headers
        [request] = model.requests
        assert (request["tools"], request["choose_tool"]) == ([SUGGEST], {"name": SUGGEST})
        assert request["instructions"] == "Be kind."
        assert [item.content for item in model.prompts[0] if isinstance(item, Message)] == [
            "Tea?",
            "Yes.",
            "Suggest what the user could say next.",
        ]
        assert await stored(served) == []
        assert (await served.get("/api/agent-runs")).document["runs"] == []
        await until(lambda: not left(served))


@pytest.mark.parametrize("kind", KINDS)
async def test_every_provider_is_told_to_call_the_tool(kind: str):
    told: dict[str, Any] = {
        "openai-chat": {"type": "function", "function": {"name": SUGGEST}},
        "openai": {"type": "function", "name": SUGGEST},
        "anthropic": {"type": "tool", "name": SUGGEST},
    }
    async with (
        MockProvider(calls((SUGGEST, GIVEN))) as provider,
        model_of(kind, provider.environ) as model,
        serving(Agent("a", model=model)) as served,
    ):
        assert suggested(await served.run(wish(), path=ROUTE)) == GIVEN
        assert provider.requests[0]["tool_choice"] == told[kind]


async def test_the_single_endpoint_suggests_too_and_info_says_that_it_can_be_had():
    async with serving(Agent("a", model=ScriptedProvider(calls((SUGGEST, GIVEN))))) as served:
        assert (await served.get("/copilotkit/info")).document["suggestions"] is True
        answer = await served.run(envelope("agent/suggest", wish(), agentId="a"), path="/copilotkit")
        assert suggested(answer) == GIVEN


async def test_the_agent_does_nothing_for_a_suggestion():
    done: list[str] = []

    @tool
    async def act() -> str:
        """Do something."""
        done.append("act")
        return "done"

    @before_round
    def polite(asked: BeforeRound) -> ChangeRequest:
        return ChangeRequest(options={"polite": True})

    @before_tool
    def watch(call: BeforeTool) -> None:
        done.append("before_tool")

    @on_run_end
    async def told(end: RunEnd) -> None:
        done.append("on_run_end")

    model = ScriptedProvider(calls(("act", "{}"), (SUGGEST, GIVEN)))
    agent = Agent("a", model=model, tools=[act], hooks=[polite, watch, told], output_type=int)
    async with serving(agent) as served:
        answer = legal(await served.run(wish(), path=ROUTE))
        assert model.requests[0]["tools"] == [SUGGEST]
        assert model.requests[0]["polite"] is True
        assert "act" in str(answer.events)
        await until(lambda: not left(served))
        assert done == []


async def test_an_agent_without_a_model_is_not_asked():
    ran: list[str] = []

    async def perform(context: RunContext):
        ran.append("it")
        yield "Hello"

    async with serving(Agent("a", executor=perform)) as served:
        assert legal(await served.run(wish(), path=ROUTE)).types == ["RUN_STARTED", "RUN_FINISHED"]
        assert ran == []


async def test_media_are_left_out_of_what_is_shown():
    link = {"type": "url", "value": "http://127.0.0.1/api/artifacts/x?expires=1&signature=y"}
    picture = {"type": "image", "source": link}
    messages = [
        {"id": "u1", "role": "user", "content": [{"type": "text", "text": "This?"}, picture]},
        {"id": "u2", "role": "user", "content": [picture]},
        {"id": "s1", "role": "user", "content": "Suggest"},
    ]
    model = ScriptedProvider(calls((SUGGEST, GIVEN)))
    async with serving(Agent("a", model=model)) as served:
        assert suggested(await served.run(wish(messages=messages), path=ROUTE)) == GIVEN
        assert "image" not in str(model.prompts)


async def test_a_page_that_goes_away_ends_it_and_nothing_is_left():
    model = ScriptedProvider([s.TextDelta("Half "), asyncio.Event()])
    async with serving(Agent("a", model=model)) as served:
        async with served.streaming(wish(), ROUTE) as events:
            async for event in events:
                if event["type"] == "TEXT_MESSAGE_CONTENT":
                    break
            assert left(served)
        await until(lambda: not left(served))
        assert model.closed == 1


async def test_a_page_of_the_single_endpoint_stops_it_by_its_thread():
    model = ScriptedProvider([s.TextDelta("Half "), asyncio.Event()])
    async with serving(Agent("a", model=model)) as served:
        page = asyncio.create_task(served.run(envelope("agent/run", wish(), agentId="a"), path="/copilotkit"))
        await until(lambda: "Half" in str(told(served)))
        stop = envelope("agent/stop", {"runId": "s-run"}, agentId="a", threadId="s1")
        assert (await served.run(stop, path="/copilotkit")).document == {"stopped": True}
        assert legal(await page).types[-1] == "RUN_FINISHED"
        await until(lambda: not left(served))
        assert refused(await served.run(stop, path="/copilotkit")) == (404, "not_found")


async def test_suggestions_beside_a_run_do_not_wait_for_it():
    go_on = asyncio.Event()
    model = ScriptedProvider([s.TextDelta("Half "), go_on, *says("and half")], calls((SUGGEST, GIVEN)))
    async with serving(Agent("a", model=model)) as served:
        page = asyncio.create_task(served.run(ask("Tea?"), path=RUN))
        await until(lambda: len(model.requests) == 1)
        assert suggested(await served.run(wish(), path=ROUTE)) == GIVEN
        go_on.set()
        assert legal(await page).types[-1] == "RUN_FINISHED"
        assert [session["session_id"] for session in await stored(served)] == ["t1"]


async def test_a_thread_that_is_talked_in_is_no_throw_away():
    model = ScriptedProvider(says("Yes."), calls((SUGGEST, GIVEN)))
    async with serving(Agent("a", model=model)) as served:
        await served.run(ask("Tea?", thread="s1"), path=RUN)
        answer = await served.run(wish(), path=RUN)
        assert suggested(answer) == GIVEN
        assert "x-run-id" in answer.headers


async def test_a_choice_holds_for_the_first_answer_and_not_for_what_follows():
    @tool
    async def act() -> str:
        """Do something."""
        return "done"

    props = {"toolChoice": {"type": "function", "function": {"name": "act"}}}
    model = ScriptedProvider(calls(("act", "{}")), says("It is done."), says("Hello"))
    async with serving(Agent("a", model=model, tools=[act])) as served:
        page = Page([{"id": "u1", "role": "user", "content": "Act"}])
        page.apply(legal(await served.run(ask("", messages=page.messages, forwardedProps=props), path=RUN)).events)
        assert page.messages[-1]["content"] == "It is done."
        assert [request.get("choose_tool") for request in model.requests] == [{"name": "act"}, None]


async def test_refusals_have_our_form_and_leave_nothing():
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        assert refused(await served.run(wish(), path=ROUTE.replace("/a/", "/nobody/"))) == (404, "not_found")
        assert refused(await served.run({"threadId": "t1"}, path=ROUTE)) == (422, "invalid_input")
        assert refused(await served.get(ROUTE)) == (405, "method_not_allowed")
        assert left(served) == []


async def test_a_bridge_that_is_started_again_suggests_again():
    model = ScriptedProvider(calls((SUGGEST, GIVEN)), calls((SUGGEST, GIVEN)))
    async with serving(Agent("a", model=model)) as served:
        bridge = served.bridge
        assert suggested(await served.run(wish(), path=ROUTE)) == GIVEN
    async with bridge.lifespan():
        suggestions = bridge._suggestions
        assert not suggestions._begun
        await suggestions._begin()
        assert suggestions._begun
