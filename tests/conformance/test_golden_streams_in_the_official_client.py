"""The official client builds of our streams what the server holds: the golden ones, live conversations, and chance."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agui_bridge.demo import demo_agent
from agui_bridge.encoders import agui_encoder
from runtime.agent import Agent
from runtime.thread import Thread
from tests.official_client import OfficialClient, Verdict
from tests.pure.conversation import Conversation
from tests.pure.histories import Seeded
from tests.serving import Served, serving
from tests.wire.scenes import SCENES, play, shown, thread_of

JsonObject = dict[str, Any]
NAMES = itertools.count(1)
PICK: JsonObject = {
    "name": "pick_color",
    "description": "Let the user pick a colour",
    "parameters": {"type": "object", "properties": {}},
}


def assert_same(verdict: Verdict, messages: list[JsonObject], state: Any) -> None:
    """The client is content, and holds these messages and this state."""
    verdict.assert_clean()
    assert verdict.terminal is not None
    assert verdict.messages == messages
    assert verdict.state == state


# --- the golden streams -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.requirement("R-122", "R-126")
async def test_a_golden_stream_builds_what_the_server_holds(name: str, official_client: OfficialClient) -> None:
    for each in await play(name):
        verdict = await official_client.replay(each.answer.body, each.asked)
        if name == "answer put elsewhere":  # and stays where the page has put it
            verdict.assert_clean()
            assert by_id(verdict.messages) == by_id(each.messages)
        else:
            assert_same(verdict, each.messages, each.state)


def by_id(messages: list[JsonObject]) -> list[JsonObject]:
    return sorted(messages, key=lambda message: message["id"])


# --- live ---------------------------------------------------------------------------------------------------------


class Visitor:
    """A page on the official client that stays open from run to run."""

    def __init__(self, client: OfficialClient, served: Served) -> None:
        self._client = client
        self._served = served
        self._name = f"visitor-{next(NAMES)}"
        self._count = itertools.count(1)
        self.verdict: Verdict | None = None

    async def say(self, *words: str, **more: Any) -> Verdict:
        """Say something and see that afterwards both sides hold the same."""
        said = [{"id": f"u{next(self._count)}", "role": "user", "content": text} for text in words]
        return await self.send(said, **more)

    async def answer(self, call_id: str, content: str, **more: Any) -> Verdict:
        """Answer a call of a tool of the page."""
        id_ = f"a{next(self._count)}"
        return await self.send([{"id": id_, "role": "tool", "toolCallId": call_id, "content": content}], **more)

    async def send(self, messages: list[JsonObject], **more: Any) -> Verdict:
        verdict = await self._client.run(
            self._served.url + "/",
            agent=self._name,
            thread_id="t1",
            run_id=f"r{next(self._count)}",
            add_messages=messages,
            tools=[PICK],
            **more,
        )
        thread = await self.thread()
        assert_same(verdict, shown(thread), thread.state)
        self.verdict = verdict
        return verdict

    async def thread(self) -> Thread:
        return await thread_of(self._served.bridge)


@asynccontextmanager
async def visiting(client: OfficialClient, agent: Callable[[], Agent] = demo_agent) -> AsyncGenerator[Visitor, None]:
    async with serving(agent()) as served:
        yield Visitor(client, served)


LIVE: dict[str, tuple[str, ...]] = {
    "small talk": ("Hello", "And you?", "Goodbye"),
    "many tokens": ("/tokens 200",),
    "the weather, twice": ("What is the weather in Oslo?", "And the weather in Tokyo?"),
    "a list that grows": ("add milk", "add tea", "add jam"),
    "a thought": ("Let me hear you think", "Hello"),
    "a tool that fails": ("Please fail", "Hello"),
    "a failure and the next turn": ("/fail 3", "Hello", "/fail 0", "Hello again"),
    "calls and a failure": (
        '/script {"rounds": [{"text": "Look", "tool_calls": [{"name": "get_time", "arguments": {"tz": "Oslo"}}]}, '
        '{"text": "half a", "fail": 1}]}',
        "Hello",
    ),
    "a call cut by length": (
        '/script {"rounds": [{"reasoning": "Hm", "text": "Look", "finish": "length", '
        '"tool_calls": [{"name": "get_time", "arguments": {"tz": "Oslo"}}]}]}',
        "Hello",
    ),
    "three rounds": (
        '/script {"rounds": [{"reasoning": "One", "text": "First", "tool_calls": [{"name": "get_time", "arguments": '
        '{"tz": "Oslo"}}, {"name": "add_todo", "arguments": {"text": "x"}}]}, {"text": "Second", "tool_calls": '
        '[{"name": "launch", "arguments": {}}, {"name": "get_weather", "arguments": "{oslo"}]}, {"text": "Third"}]}',
        "Hello",
    ),
    "letters of every kind": (
        "/script " + '{"rounds": [{"text": "a\\u2028b\\u2029c\\u0085d é 🎈 \\u0000 \\" \\\\"}]}',
        "Hello",
    ),
    "an empty message": ("", "Hello"),
}


@pytest.mark.parametrize("name", LIVE)
async def test_a_page_and_the_server_hold_the_same_after_every_run(name: str, official_client: OfficialClient) -> None:
    async with visiting(official_client) as page:
        for words in LIVE[name]:
            await page.say(words)


async def test_a_tool_of_the_page_is_answered_by_a_message(official_client: OfficialClient) -> None:
    async with visiting(official_client) as page:
        asked = await page.say('/script {"rounds": [{"text": "Pick", "tool_calls": [{"name": "pick_color"}]}]}')
        assert asked.terminal is not None
        (call_id,) = asked.terminal["outcome"]["pendingToolCallIds"]
        answered = await page.answer(call_id, "blue")
        assert answered.messages[-1]["content"] == "done"
        await page.say("Hello")


async def test_a_tool_of_the_page_that_is_passed_over_stays_without_an_answer(official_client: OfficialClient) -> None:
    async with visiting(official_client) as page:
        await page.say('/script {"rounds": [{"tool_calls": [{"name": "pick_color"}]}]}')
        await page.say("Never mind")
        await page.say("Hello")


async def test_a_page_that_forgot_the_state_is_told_it_again(official_client: OfficialClient) -> None:
    async with visiting(official_client) as page:
        await page.say("add milk")
        again = await page.say("add tea", state={})
        assert [todo["text"] for todo in again.state["todos"]] == ["milk", "tea"]


@pytest.mark.requirement("R-126")
async def test_a_new_page_on_an_old_thread_is_told_everything(official_client: OfficialClient) -> None:
    async with serving(demo_agent()) as served:
        await Visitor(official_client, served).say("What is the weather in Oslo?")
        reloaded = Visitor(official_client, served)
        verdict = await reloaded.send([{"id": "after-reload", "role": "user", "content": "Hello"}])
        assert [message["role"] for message in verdict.messages].count("user") == 2


# --- chance -------------------------------------------------------------------------------------------------------

BATCH = 5


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.requirement("R-081", "R-126")
async def test_what_chance_makes_of_a_conversation_builds_what_the_server_holds(
    seed: int, official_client: OfficialClient
) -> None:
    verdicts: list[Any] = []
    held: list[tuple[list[JsonObject], Any]] = []
    for number in range(BATCH):
        conversation = Conversation(Seeded(seed * BATCH + number))
        for _ in range(3):
            turn = conversation.step()
            body = agui_encoder(turn.performed.projector())(turn.performed.records)
            asked = {"threadId": "t1", "runId": turn.performed.echo.run_id, "messages": turn.messages}
            verdicts.append(official_client.replay(body, {**asked, "state": turn.state}))
            held.append((conversation.theatre.shown(), conversation.theatre.thread.state))
    for verdict, (messages, state) in zip(await asyncio.gather(*verdicts), held, strict=True):
        assert_same(verdict, messages, state)
