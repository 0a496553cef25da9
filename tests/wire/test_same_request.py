"""The same request again, in every order of events: it is one run, and every asker gets all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from runtime.agent import Agent
from runtime.samples import AssistantMessageDone, Completed, TextDelta
from runtime.testing import ScriptedProvider, says
from tests.serving import JsonObject, ask, serving


def waiting(gate: asyncio.Event) -> ScriptedProvider:
    """A model that says one word, waits, and says another."""
    said = [TextDelta("one "), gate, TextDelta("two"), AssistantMessageDone(), Completed("stop")]
    return ScriptedProvider(said, says("another answer"))


async def until(events: AsyncGenerator[JsonObject, None], kind: str) -> list[JsonObject]:
    """The events up to the first of this kind."""
    seen: list[JsonObject] = []
    async for event in events:
        seen.append(event)
        if event["type"] == kind:
            break
    return seen


async def test_ten_twins_at_once_are_one_run_and_get_the_same_stream():
    model = ScriptedProvider(says("only once"))
    async with serving(Agent("a", model=model)) as served:
        answers = await asyncio.gather(*(served.run(ask("hi")) for _ in range(10)))
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 1
        assert len({answer.headers["x-run-id"] for answer in answers}) == 1
        assert len(model.requests) == 1


async def test_a_repeat_while_the_run_speaks_gets_the_beginning_too():
    gate = asyncio.Event()
    model = waiting(gate)
    async with serving(Agent("a", model=model)) as served, served.streaming(ask("hi")) as first:
        seen = await until(first, "TEXT_MESSAGE_CONTENT")
        async with served.streaming(ask("hi")) as second:
            assert await until(second, "TEXT_MESSAGE_CONTENT") == seen
            gate.set()
            rest = [[event async for event in stream] for stream in (first, second)]
        assert rest[0] == rest[1]
        assert rest[0][-1]["type"] == "RUN_FINISHED"
        assert len(model.requests) == 1


async def test_the_same_run_id_for_something_else_is_a_conflict_that_names_the_run():
    async with serving(Agent("a", model=ScriptedProvider(says("fine")))) as served:
        first = await served.run(ask("hi"))
        second = await served.run(ask("something else", message="u2"))
        assert second.status == 409
        assert second.document["code"] == "run_conflict"
        assert second.document["details"] == {"run_id": first.headers["x-run-id"]}


async def test_a_repeat_is_answered_before_the_thread_is_found_busy():
    gate = asyncio.Event()
    model = ScriptedProvider(says("first"), [TextDelta("x"), gate, AssistantMessageDone(), Completed("stop")])
    async with serving(Agent("a", model=model)) as served:
        first = await served.run(ask("hi"))
        shown = [{"id": "u1", "role": "user", "content": "hi"}, {"id": "u2", "role": "user", "content": "on"}]
        async with served.streaming(ask("", run="r2", messages=shown)) as running:
            await until(running, "TEXT_MESSAGE_CONTENT")
            assert (await served.run(ask("hi"))).body == first.body
            busy = await served.run(ask("", run="r3", messages=[*shown, {"id": "u3", "role": "user", "content": "!"}]))
            assert (busy.status, busy.document["code"]) == (409, "thread_busy")
            gate.set()
            assert (await until(running, "RUN_FINISHED"))[-1]["outcome"] == {"type": "success"}


async def test_a_reloaded_page_that_asks_again_under_a_new_run_id_follows_the_run_that_is_at_work():
    gate = asyncio.Event()
    model = waiting(gate)
    async with serving(Agent("a", model=model)) as served, served.streaming(ask("hi")) as first:
        await until(first, "TEXT_MESSAGE_CONTENT")
        async with served.streaming(ask("hi", run="after-reload")) as again:
            seen = await until(again, "TEXT_MESSAGE_CONTENT")
            assert seen[0]["runId"] == "after-reload"
            gate.set()
            assert (await until(again, "RUN_FINISHED"))[-1]["runId"] == "after-reload"
        assert len(model.requests) == 1


async def test_a_repeat_after_other_turns_still_gets_its_own_stream():
    model = ScriptedProvider(says("first"), says("second"))
    async with serving(Agent("a", model=model)) as served:
        first = await served.run(ask("hi"))
        await served.run(ask("on", run="r2", message="u2"))
        assert (await served.run(ask("hi"))).body == first.body
        assert len(model.requests) == 2
