"""A request that is sent again gets the stream that it got, byte for byte, and nothing happens twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from runtime.agent import Agent
from runtime.errors import ProviderError
from runtime.samples import TextDelta
from runtime.testing import Line, ScriptedProvider, calls, says
from runtime.tools.toolbox import tool
from tests.pure.stock_page import Page
from tests.serving import Answer, JsonObject, Served, ask, serving
from tests.wire.sockets import eventually

PICK: JsonObject = {"name": "pick", "description": "Let the user pick", "parameters": {"type": "object"}}


class Till:
    """A tool that counts how often it is used."""

    def __init__(self) -> None:
        self.sold = 0

    def tool(self) -> Any:
        """The tool."""

        @tool
        async def sell(what: str) -> str:
            """Sell something."""
            self.sold += 1
            return f"sold {what}"

        return sell


def shop(*rounds: Iterable[Line]) -> tuple[Agent, ScriptedProvider, Till]:
    """An agent with a till, its model, and the till."""
    till = Till()
    model = ScriptedProvider(*rounds)
    return Agent("a", model=model, tools=[till.tool()]), model, till


SELL = calls(("sell", '{"what": "tea"}'), text="One moment. ")
BROKEN: list[Line] = [TextDelta("Half a "), ProviderError("The provider is away.", code="provider_unavailable")]


@pytest.mark.parametrize(
    ("rounds", "sold"),
    [([says("Good morning")], 0), ([SELL, says("Here you are")], 1), ([SELL, BROKEN], 1), ([BROKEN], 0)],
    ids=["an answer", "a tool", "a tool, then a failure", "a failure"],
)
@pytest.mark.requirement("R-061")
async def test_the_same_request_again_gets_the_same_bytes(rounds: list[Iterable[Line]], sold: int):
    agent, model, till = shop(*rounds)
    async with serving(agent) as served:
        first = await served.run(ask("Tea, please"))
        asked = len(model.requests)
        again = [await served.run(ask("Tea, please")) for _ in range(3)]
        assert {answer.body for answer in again} == {first.body}
        assert {answer.headers["x-run-id"] for answer in again} == {first.headers["x-run-id"]}
        assert (len(model.requests), till.sold) == (asked, sold)


async def test_ten_twins_at_once_sell_once():
    agent, model, till = shop(SELL, says("Here you are"))
    async with serving(agent) as served:
        answers = await asyncio.gather(*(served.run(ask("Tea, please")) for _ in range(10)))
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 1
        assert (len(model.requests), till.sold) == (2, 1)


async def test_an_edit_that_is_sent_twice_forks_once():
    agent, model, _ = shop(says("one"), says("two"), says("three"))
    async with serving(agent) as served:
        await served.run(ask("Hi"))
        edit = ask("Hello", run="r2")
        answers = await asyncio.gather(*(served.run(edit) for _ in range(5)))
        answers.append(await served.run(edit))
        assert len({answer.body for answer in answers}) == 1
        assert len(model.requests) == 2


async def test_a_wish_for_another_answer_that_is_sent_twice_is_one_wish():
    agent, model, _ = shop(says("one"), says("two"), says("three"))
    async with serving(agent) as served:
        await served.run(ask("Hi"))
        again = [await served.run(ask("Hi", run="r2")) for _ in range(3)]
        assert len({answer.body for answer in again}) == 1
        assert len(model.requests) == 2


async def test_an_answer_of_the_page_that_is_sent_twice_is_taken_once():
    agent, model, _ = shop(calls(("pick", "{}")), says("Blue it is"))
    async with serving(agent) as served:
        first = await served.run(ask("Pick", tools=[PICK]))
        shown = await messages_of(served, first.headers["x-run-id"])
        result = {"id": "a1", "role": "tool", "toolCallId": "call_0", "content": "blue"}
        body = ask("", run="r2", messages=[*shown, result], tools=[PICK])
        answers = await asyncio.gather(*(served.run(body) for _ in range(5)))
        answers.append(await served.run(body))
        assert len({answer.body for answer in answers}) == 1
        assert len(model.requests) == 2


async def test_a_repeat_after_a_fork_gets_the_answer_of_the_branch_that_was_left():
    agent, model, _ = shop(says("one"), says("two"), says("three"))
    async with serving(agent) as served:
        first = await served.run(ask("Hi"))
        await served.run(ask("Hello", run="r2"))
        assert (await served.run(ask("Hi"))).body == first.body
        assert len(model.requests) == 2


async def test_a_repeat_after_a_restart_gets_the_same_bytes(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    agent, _, till = shop(SELL, says("Here you are"))
    async with serving(agent, store=store) as served:
        first = await served.run(ask("Tea, please", state={"guest": 1}))
    agent, model, again_till = shop()
    async with serving(agent, store=store) as served:
        again = await served.run(ask("Tea, please", state={"guest": 1}))
    assert again.body == first.body
    assert (till.sold, again_till.sold, len(model.requests)) == (1, 0, 0)


async def test_a_repeat_is_told_what_its_page_lacked_then_and_not_what_came_since():
    agent, _, _ = shop(says("one"), says("two"), says("three"))
    async with serving(agent) as served:
        await served.run(ask("Hi"))
        second = await served.run(ask("On", run="r2", message="u2"))
        await served.run(ask("And on", run="r3", message="u3"))
        again = await served.run(ask("On", run="r2", message="u2"))
        assert again.body == second.body
        assert [m["content"] for m in again.events[2]["messages"]] == ["Hi", "one", "On"]


async def test_a_repeat_under_other_words_is_a_conflict_though_it_came_at_the_same_time():
    agent, model, _ = shop(says("one"))
    async with serving(agent) as served:
        answers = await asyncio.gather(served.run(ask("Hi")), served.run(ask("Something else", message="u2")))
        assert sorted(answer.status for answer in answers) == [200, 409]
        (won,) = (answer for answer in answers if answer.status == 200)
        (lost,) = (answer for answer in answers if answer.status == 409)
        assert lost.document["code"] in ("run_conflict", "thread_busy")
        assert lost.document["details"]["run_id"] == won.headers["x-run-id"]
        assert len(model.requests) == 1


async def test_order_and_spelling_of_members_make_no_other_request():
    agent, model, _ = shop(says("one"))
    async with serving(agent) as served:
        first = await served.run(ask("Hi"))
        body = {"tools": [], "unknown": 1, "context": [], **dict(reversed(ask("Hi").items()))}
        assert (await served.run(body)).body == first.body
        assert len(model.requests) == 1


async def test_a_run_id_counts_within_its_thread_only():
    agent, model, _ = shop(says("one"), says("two"))
    async with serving(agent) as served:
        answers = [await served.run(ask("Hi", thread=thread)) for thread in ("t1", "t2")]
        assert answers[0].headers["x-run-id"] != answers[1].headers["x-run-id"]
        assert len(model.requests) == 2


# --- requests that were answered by following ---------------------------------------------------------------------


async def follow(
    served: Served, model: ScriptedProvider, go_on: asyncio.Event, body: JsonObject
) -> tuple[Answer, Answer]:
    """Ask, ask for the same with `body` while the run is at work, then let it go on; both answers."""
    first = asyncio.create_task(served.run(ask("Hi")))
    await eventually(lambda: len(model.requests) == 1)
    (live,) = await served.bridge.supervisor.journal.active_runs()
    reload = asyncio.create_task(served.run(body))
    await eventually(lambda: served.bridge.supervisor.readers(live.run_id) == 2)
    go_on.set()
    return await first, await reload


async def test_a_reload_that_followed_a_run_is_a_replay_of_it_later_and_no_wish_for_another_answer(tmp_path: Path):
    store, go_on = f"sqlite:///{tmp_path / 'store.db'}", asyncio.Event()
    agent, model, _ = shop([go_on, *says("one")], says("two"))
    body = ask("Hi", run="reload")
    async with serving(agent, store=store) as served:
        first, followed = await follow(served, model, go_on, body)
        assert followed.headers["x-run-id"] == first.headers["x-run-id"]
        again = await served.run(body)
        assert (again.body, again.headers["x-run-id"]) == (followed.body, first.headers["x-run-id"])
    agent, after, _ = shop(says("three"))
    async with serving(agent, store=store) as served:
        assert (await served.run(body)).body == followed.body
        assert (len(model.requests), len(after.requests)) == (1, 0)
        other = await served.run(ask("Hi", run="once more"))
        assert b"three" in other.body


async def test_other_content_under_the_id_of_a_reload_is_a_conflict():
    go_on = asyncio.Event()
    agent, model, _ = shop([go_on, *says("one")], says("two"))
    async with serving(agent) as served:
        first, _ = await follow(served, model, go_on, ask("Hi", run="reload"))
        answer = await served.run(ask("On", run="reload", message="u2"))
        assert (answer.status, answer.document["code"]) == (409, "run_conflict")
        assert answer.document["details"] == {"run_id": first.headers["x-run-id"]}


async def test_a_repeat_gets_its_own_run_though_another_answers_the_same_message_now():
    go_on = asyncio.Event()
    agent, model, _ = shop(says("one"), [go_on, *says("two")])
    async with serving(agent) as served:
        first = await served.run(ask("Hi"))
        second = asyncio.create_task(served.run(ask("Hi", run="r2")))
        await eventually(lambda: len(model.requests) == 2)
        again = await served.run(ask("Hi"))
        go_on.set()
        assert again.body == first.body
        assert b"two" in (await second).body


async def messages_of(served: Served, run_id: str) -> list[JsonObject]:
    """What a page shows that has read this run."""
    page = Page([{"id": "u1", "role": "user", "content": "Pick"}])
    page.apply((await served.get(f"/api/agent-runs/{run_id}/events?format=agui")).events)
    return page.messages
