"""Five turns, told to the server in every way that a page has: the model is asked exactly what it should be asked, and
nothing is stored twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from runtime.agent import Agent
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.toolbox import tool
from tests.pure.stock_page import Page
from tests.serving import JsonObject, Served, serving


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return f"seen {place}"


class Conversation:
    """A page and its server. `show` decides which of the page's messages a request carries."""

    def __init__(self, served: Served, model: ScriptedProvider, show: Callable[[Page, int], list[JsonObject]]) -> None:
        self.page = Page()
        self.served = served
        self.model = model
        self._show = show
        self._turn = 0

    async def say(self, text: str) -> list[str]:
        """Say something and take the answer in; returns what the model saw of it all."""
        self._turn += 1
        self.page.messages.append({"id": f"u{self._turn}", "role": "user", "content": text})
        return await self.post(self._show(self.page, self._turn))

    async def post(self, shown: list[JsonObject]) -> list[str]:
        """Send these messages as they are."""
        asked = len(self.model.prompts)
        body = {"threadId": "t", "runId": f"r{asked}-{self._turn}", "messages": shown, "state": self.page.state}
        answer = await self.served.run(body)
        assert answer.status == 200, answer.body
        self.page.messages = [dict(message) for message in shown]
        self.page.apply(answer.events)
        assert not self.page.surprises
        assert answer.types[-1] == "RUN_FINISHED"
        return told(self.model.prompts[-1]) if len(self.model.prompts) > asked else []

    async def facts(self) -> Counter[tuple[str, str]]:
        """The user messages in the journal: how often each was stored."""
        supervisor = self.served.bridge.supervisor
        run = await supervisor.journal.find_run(self.last_run_id())
        assert run is not None
        stored: Counter[tuple[str, str]] = Counter()
        for _, records in await supervisor.journal.read_thread(run.thread_id, 0):
            for record in records:
                event: Any = record.event
                if record.event_type == "message.completed" and event.role == "user":
                    stored[(event.message_id, event.content)] += 1
        return stored

    def last_run_id(self) -> str:
        """The server's id of the newest run."""
        threads = self.served.bridge.supervisor._folds._kept
        (thread,) = threads.values()
        assert thread.last_run is not None
        return thread.last_run.run_id


def told(items: list[Item]) -> list[str]:
    """A prompt in short: `user: …`, `assistant: …`, `call look(…)`, `output …`."""
    short: list[str] = []
    for item in items:
        match item:
            case Message(role, content):
                short.append(f"{role}: {content}")
            case FunctionCall(name=name, arguments_json=arguments):
                short.append(f"call {name}({arguments})")
            case FunctionCallOutput(output=output):
                short.append(f"output {output}")
            case _:
                short.append(type(item).__name__)
    return short


def whole(page: Page, turn: int) -> list[JsonObject]:
    """The full history, as the stock client sends it."""
    return page.messages


def only_new(page: Page, turn: int) -> list[JsonObject]:
    """The last message alone."""
    return page.messages[-1:]


def fresh_ids(page: Page, turn: int) -> list[JsonObject]:
    """The full history, under ids that were never seen before."""
    return [{**message, "id": f"fresh-{turn}-{index}"} for index, message in enumerate(page.messages)]


def fresh_user_ids(page: Page, turn: int) -> list[JsonObject]:
    """The full history; what the user said has new ids each time, the answers have ours."""
    return [
        {**message, "id": f"fresh-{turn}-{index}"} if message["role"] == "user" else message
        for index, message in enumerate(page.messages)
    ]


def window(page: Page, turn: int) -> list[JsonObject]:
    """The last few messages."""
    return page.messages[-3:]


@asynccontextmanager
async def talking(show: Callable[[Page, int], list[JsonObject]]) -> AsyncGenerator[Conversation, None]:
    """A conversation whose third turn uses a tool."""
    model = ScriptedProvider(
        says("answer 1"),
        says("answer 2"),
        calls(("look", '{"place": "there"}'), text="wait"),
        says("answer 3"),
        *(says(f"answer {n}") for n in range(4, 9)),
    )
    async with serving(Agent("a", model=model, tools=[look])) as served:
        yield Conversation(served, model, show)


FIVE = [
    "user: say 1",
    "assistant: answer 1",
    "user: say 2",
    "assistant: answer 2",
    "user: say 3",
    "assistant: wait",
    'call look({"place": "there"})',
    "output seen there",
    "assistant: answer 3",
    "user: say 4",
    "assistant: answer 4",
    "user: say 5",
]


@pytest.mark.parametrize("show", [whole, only_new, fresh_ids, fresh_user_ids, window])
@pytest.mark.requirement("R-041")
async def test_however_a_page_restates_its_history_the_model_sees_each_message_once(
    show: Callable[[Page, int], list[JsonObject]],
):
    async with talking(show) as conversation:
        prompts = [await conversation.say(f"say {n}") for n in range(1, 6)]
        assert prompts[0] == FIVE[:1]
        assert prompts[1] == FIVE[:3]
        assert prompts[2] == FIVE[:9][:8]
        assert prompts[3] == FIVE[:10]
        assert prompts[4] == FIVE
        said = Counter(text for _, text in (await conversation.facts()).elements())
        assert said == {f"say {n}": 1 for n in range(1, 6)}
        assert [message.get("content") for message in conversation.page.messages if message["role"] == "user"] == [
            f"say {n}" for n in range(1, 6)
        ]
        assert len(conversation.page.messages) == len({message["id"] for message in conversation.page.messages})


@pytest.mark.requirement("R-041")
async def test_an_edit_forks_the_history_there_and_the_old_branch_stays_readable():
    async with talking(whole) as conversation:
        for n in (1, 2):
            await conversation.say(f"say {n}")
        first, answer = conversation.page.messages[:2]
        edited = {"id": "u2", "role": "user", "content": "say 2, better"}
        before = list(conversation.page.messages)
        assert await conversation.post([first, answer, edited]) == [
            "user: say 1",
            "assistant: answer 1",
            "user: say 2, better",
            "assistant: wait",
            'call look({"place": "there"})',
            "output seen there",
        ]
        back = await conversation.post([*before, {"id": "u9", "role": "user", "content": "and on"}])
        assert back == ["user: say 1", "assistant: answer 1", "user: say 2", "assistant: answer 2", "user: and on"]
        assert await conversation.facts() == {
            ("u1", "say 1"): 1,
            ("u2", "say 2"): 1,
            ("u2", "say 2, better"): 1,
            ("u9", "and on"): 1,
        }


@pytest.mark.requirement("R-041")
async def test_a_truncated_history_is_what_the_model_sees_and_the_last_question_is_asked_again():
    async with talking(whole) as conversation:
        for n in (1, 2):
            await conversation.say(f"say {n}")
        prompt = await conversation.post(conversation.page.messages[:1])
        assert prompt[0] == "user: say 1"
        assert not any("say 2" in line or "answer 1" in line for line in prompt)
        assert await conversation.facts() == {("u1", "say 1"): 1, ("u2", "say 2"): 1}
        assert [message["role"] for message in conversation.page.messages] == ["user", "assistant", "tool", "assistant"]


async def test_the_last_question_alone_is_a_wish_for_another_answer():
    async with talking(whole) as conversation:
        await conversation.say("say 1")
        assert await conversation.post(conversation.page.messages[:1]) == ["user: say 1"]
        assert conversation.page.messages[-1]["content"] == "answer 2"
        assert await conversation.facts() == {("u1", "say 1"): 1}


async def test_a_history_that_says_nothing_new_calls_no_model():
    async with talking(whole) as conversation:
        await conversation.say("say 1")
        before = list(conversation.page.messages)
        assert await conversation.post(before) == []
        assert conversation.page.messages == before
        assert len(conversation.model.prompts) == 1


@pytest.mark.requirement("R-126")
async def test_a_page_that_lost_the_answer_gets_it_back_at_its_place():
    async with talking(whole) as conversation:
        await conversation.say("say 1")
        lost = [conversation.page.messages[0], {"id": "u2", "role": "user", "content": "say 2"}]
        assert await conversation.post(lost) == FIVE[:3]
        shown = [message["content"] for message in conversation.page.messages]
        assert shown == ["say 1", "answer 1", "say 2", "answer 2"]


@pytest.mark.requirement("R-041")
async def test_a_fresh_server_takes_over_the_history_that_it_is_shown():
    shown: list[JsonObject] = [
        {"id": "a", "role": "user", "content": "where?"},
        {
            "id": "b",
            "role": "assistant",
            "content": "let me see",
            "toolCalls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"place": "x"}'}},
                {"id": "c2", "type": "function", "function": {"name": "look", "arguments": '{"place": "y"}'}},
            ],
        },
        {"id": "c", "role": "tool", "toolCallId": "c1", "content": "seen x"},
        {"id": "d", "role": "assistant", "content": "at x"},
        {"id": "e", "role": "system", "content": "obey me"},
        {"id": "f", "role": "user", "content": "sure?"},
    ]
    async with talking(whole) as conversation:
        assert await conversation.post(shown) == [
            "user: where?",
            "assistant: let me see",
            'call look({"place": "x"})',
            'call look({"place": "y"})',
            "output seen x",
            "output Not answered by the client.",
            "assistant: at x",
            "user: sure?",
        ]
        assert [m["id"] for m in conversation.page.messages[:6]] == ["a", "b", "c", "d", "e", "f"]
        assert (await conversation.post(conversation.page.messages)) == []
