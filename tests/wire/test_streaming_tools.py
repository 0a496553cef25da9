# ruff: noqa: E501  an event is a line, however long
"""What pages see of tools that stream: how far a call is while it is at work, and nothing of it afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from inline_snapshot import snapshot

from agui_bridge.encoders import plain_frames
from runtime.agent import Agent
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.contract.workshop import until
from tests.official_client import NEWEST, OLDER, OfficialClient
from tests.pure.agui_rules import Rules
from tests.pure.stock_page import Page
from tests.serving import JsonObject, Served, ask, serving
from tests.wire.golden import golden
from tests.wire.scenes import shown, thread_of

PROGRESS = "agui-bridge.progress"
COUNT = calls(("count", "{}"), text="Counting.")


class Gates:
    """What a tool waits for behind each value that it yields, so that a test decides how far it goes."""

    def __init__(self, *values: str) -> None:
        self._open = {value: asyncio.Event() for value in values}

    def let(self, *values: str) -> None:
        """Let the tool go on behind these values; behind all without any."""
        for value in values or self._open:
            self._open[value].set()

    async def behind(self, value: str) -> None:
        """Wait for it."""
        await self._open[value].wait()


@dataclass
class Stage:
    """A server, the gates of its tool, and a page that is open on it."""

    served: Served
    gates: Gates
    page: Page = field(default_factory=Page)

    async def ask(self, *, to: str | None = None, is_old: bool = False, **more: Any) -> list[JsonObject]:
        """Ask, and let the tool go on each time that the page is told of its progress; the stream. With `to` the page
        goes away when it is told of this value; an old one sends no version."""
        number = sum(message["role"] == "user" for message in self.page.messages) + 1
        if "resume" not in more:  # an answer comes without words
            self.page.messages.append({"id": f"u{number}", "role": "user", "content": "Count"})
        version = {} if is_old else {"protocolVersion": "1.0"}
        body = ask("", run=f"r{number}", messages=told_back(self.page), **version, **more)
        said: list[JsonObject] = []
        async with self.served.streaming(body) as events:
            async for event in events:
                said.append(event)
                self.page.apply([event])
                for value in progress_in([event]):
                    if to is not None and value == to:
                        return said
                    if value is not None:
                        self.gates.let(value)
        Rules().check(said)
        return said

    async def come_back(self, page: Page) -> list[JsonObject]:
        """The stream of a page that comes back; from its first words on the tool is let go."""
        body = ask("", run="back", messages=told_back(page), protocolVersion="1.0")
        said: list[JsonObject] = []
        async with self.served.streaming(body, "/connect") as events:
            async for event in events:
                said.append(event)
                page.apply([event])
                self.gates.let()
        Rules().check(said)
        return said

    async def is_over(self) -> None:
        """Let the tool go, and return when its run is over."""
        self.gates.let()
        await until(lambda: not self.served.bridge.supervisor.live.runs)

    async def holds(self) -> list[JsonObject]:
        """The messages that a page has to show, as the server holds them."""
        return shown(await thread_of(self.served.bridge))


@asynccontextmanager
async def stage(
    *rounds: Any, gates: Gates | None = None, tools: Sequence[Any] = (), **settings: Any
) -> AsyncGenerator[Stage, None]:
    """A page on an agent that can `count`, and has these tools, too."""
    at = gates or Gates("one", "two")

    @tool
    async def count() -> AsyncGenerator[str, None]:
        """Count to three."""
        for value in ("one", "two"):
            yield value
            await at.behind(value)
        yield "three"

    model = ScriptedProvider(*(rounds or (COUNT, says("That was three"))))
    async with serving(Agent("a", model=model, tools=[count, *tools]), **settings) as served:
        yield Stage(served, at)


def told_back(page: Page) -> list[JsonObject]:
    """The page's messages as a stock client sends them."""
    return [message for message in page.messages if message["role"] != "activity"]


def progress_in(events: Sequence[JsonObject]) -> list[Any]:
    """The values of the progress that is told."""
    told = (event for event in events if event["type"] == "ACTIVITY_SNAPSHOT")
    return [event["content"]["value"] for event in told if event["activityType"] == PROGRESS]


def cards(page: Page) -> list[Any]:
    """What the page shows of progress."""
    return [message["content"] for message in page.messages if message.get("activityType") == PROGRESS]


# --- the stream ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-126", "R-127", "R-130", "R-132")
async def test_the_stream_of_a_tool_that_streams() -> None:
    async with stage() as at:
        assert golden(await at.ask()) == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Counting."
TEXT_MESSAGE_END m1 working_message/1
TOOL_CALL_START c1 count in m1
TOOL_CALL_ARGS c1 "{}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
ACTIVITY_SNAPSHOT activity-call_0-progress {"toolCallId":"c1","toolName":"count","value":"one"} {"activityType":"agui-bridge.progress"}
ACTIVITY_SNAPSHOT activity-call_0-progress {"toolCallId":"c1","toolName":"count","value":"two"} {"activityType":"agui-bridge.progress"}
ACTIVITY_SNAPSHOT activity-call_0-progress {"toolCallId":"c1","toolName":"count","value":null,"settled":true} {"activityType":"agui-bridge.progress"}
TOOL_CALL_RESULT c1 o1 "three"
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "That "
TEXT_MESSAGE_CONTENT m2 "was "
TEXT_MESSAGE_CONTENT m2 "three"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
MESSAGES_SNAPSHOT user u1 "Count" | assistant m1 "Counting." c1=count{} working_message/1 | tool o1 c1 "three" | assistant m2 "That was three" final_response/2 {"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":["agui-bridge.progress"]}}}
RUN_FINISHED t1 r1 success\
""")
        assert at.page.messages == await at.holds()
        assert (cards(at.page), at.page.surprises) == ([], [])


@pytest.mark.parametrize("client", [NEWEST, *OLDER])
async def test_a_page_on_the_official_client_lets_go_of_the_progress_and_an_older_one_keeps_it_as_settled(
    client: str, official_client: OfficialClient
) -> None:
    async with stage() as at:
        events = await at.ask(is_old=client != NEWEST)
        verdict = await official_client.replay(plain_frames(events), ask("Count"), client=client)
        verdict.assert_clean()
        left = [message["content"] for message in verdict.messages if message["role"] == "activity"]
        assert [content["settled"] for content in left] == ([] if client == NEWEST else [True])
        kept = [message["id"] for message in verdict.messages if message["role"] != "activity"]
        assert kept == [message["id"] for message in await at.holds()]


async def test_other_activities_of_the_page_stay() -> None:
    @tool
    async def basket(ctx: ToolContext) -> str:
        """Show a basket."""
        return ctx.activity("shop.basket", {"items": 1})

    async with stage(calls(("basket", "{}"), ("count", "{}")), says("Done"), tools=[basket]) as at:
        assert progress_in(await at.ask()) == ["one", "two", None]
        assert at.page.messages == await at.holds()
        kept = [message["activityType"] for message in at.page.messages if message["role"] == "activity"]
        assert kept == ["shop.basket"]


async def test_a_call_that_failed_leaves_no_progress() -> None:
    gates = Gates("half")

    @tool
    async def fail() -> AsyncGenerator[str, None]:
        """Fail."""
        yield "half"
        await gates.behind("half")
        raise RuntimeError("the shelf is empty")

    async with stage(calls(("fail", "{}")), says("A pity"), gates=gates, tools=[fail]) as at:
        assert progress_in(await at.ask()) == ["half", None]
        assert at.page.messages == await at.holds()


async def test_the_progress_of_a_childs_call_is_the_childs() -> None:
    gates = Gates("half")

    @tool
    async def search() -> AsyncGenerator[str, None]:
        """Search."""
        yield "half"
        await gates.behind("half")
        yield "found"

    helper = Agent("helper", model=ScriptedProvider(calls(("search", "{}")), says("Tea is 42")), tools=[search])
    asks = calls(("helper", '{"prompt":"Tea?"}'))
    async with stage(asks, says("It is 42"), gates=gates, tools=[helper]) as at:
        events = await at.ask()
        (child,) = [event["subagentRunId"] for event in events if event["type"] == "SUBAGENT_STARTED"]
        told = [event for event in events if event["type"] == "ACTIVITY_SNAPSHOT"]
        assert [(event["subagentRunId"], event["content"]["value"]) for event in told] == [
            (child, "half"),
            (child, None),
        ]
        assert at.page.messages == await at.holds()


# --- pages that come and go ---------------------------------------------------------------------------------------


async def test_a_page_that_connects_in_the_midst_sees_how_far_the_call_is_and_ends_without_it() -> None:
    async with stage(on_disconnect="continue") as at:
        await at.ask(to="two")
        page = Page()
        opening = next(event for event in await at.come_back(page) if event["type"] == "MESSAGES_SNAPSHOT")
        (card,) = [message for message in opening["messages"] if message["role"] == "activity"]
        assert (card["activityType"], card["content"]["value"]) == (PROGRESS, "two")
        assert page.messages == await at.holds()


async def test_a_page_that_lost_its_connection_in_the_midst_lets_go_of_the_progress_when_it_comes_back() -> None:
    async with stage(on_disconnect="continue") as at:
        await at.ask(to="one")
        assert [card["value"] for card in cards(at.page)] == ["one"]
        await at.is_over()
        await at.come_back(at.page)
        assert cards(at.page) == []
        assert at.page.messages == await at.holds()


async def test_a_page_that_lost_its_connection_and_goes_on_lets_go_of_the_progress_too() -> None:
    async with stage(on_disconnect="continue") as at:
        await at.ask(to="one")
        await at.is_over()
        await at.ask()
        assert cards(at.page) == []
        assert at.page.messages == await at.holds()


async def test_a_page_that_is_loaded_again_after_the_end_shows_no_progress() -> None:
    async with stage() as at:
        await at.ask()
        page = Page()
        assert progress_in(await at.come_back(page)) == []
        assert cards(page) == []


# --- runs that stop -----------------------------------------------------------------------------------------------


async def test_a_run_that_is_stopped_takes_the_progress_back() -> None:
    async with stage(on_disconnect="continue") as at:
        await at.ask(to="one")
        supervisor = at.served.bridge.supervisor
        (run_id,) = supervisor.live.runs
        await until(lambda: supervisor.readers(run_id) == 0)
        body = ask("", run="back", messages=[], protocolVersion="1.0")
        back = asyncio.create_task(at.served.run(body, path="/connect"))
        await until(lambda: supervisor.readers(run_id) > 0)
        await supervisor.cancel(run_id, "user", 5)
        events = (await back).events
        assert events[-1]["outcome"] == {"type": "cancelled"}
        at.page.apply(events)
        assert cards(at.page) == []
        assert at.page.messages == await at.holds()


async def test_a_call_that_asks_takes_its_progress_back_and_tells_it_anew_when_it_is_answered() -> None:
    gates = Gates("half", "almost")

    @tool
    async def book(ctx: ToolContext) -> AsyncGenerator[str, None]:
        """Book a room."""
        yield "half"
        await gates.behind("half")
        nights = await ctx.interrupt(message="How many nights?")
        yield "almost"
        await gates.behind("almost")
        yield f"Booked {nights} nights."

    async with stage(calls(("book", "{}")), says("Booked"), gates=gates, tools=[book]) as at:
        asked = await at.ask()
        assert progress_in(asked) == ["half", None]
        assert at.page.messages == await at.holds()
        [interrupt] = asked[-1]["outcome"]["interrupts"]
        answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": 3}
        answered = await at.ask(resume=[answer])
        assert progress_in(answered) == ["almost", None]
        results = [event["content"] for event in answered if event["type"] == "TOOL_CALL_RESULT"]
        assert results == ["Booked 3 nights."]
        assert at.page.messages == await at.holds()
