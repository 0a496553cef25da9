"""Pages that come back: what `connect` tells them of a thread at rest, of a run at work, and of what is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from runtime import events as e
from runtime import samples as s
from runtime.agent import Agent
from runtime.authority import ANONYMOUS
from runtime.errors import ProviderError
from runtime.journal.memory import MemoryJournal
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.toolbox import ToolError, tool
from tests.contract.workshop import until
from tests.pure.agui_rules import Rules
from tests.pure.stock_page import Page
from tests.serving import Answer, JsonObject, Served, ask, events_in, serving
from tests.wire.golden import golden
from tests.wire.scenes import PICK, lookup
from tests.wire.test_disconnect import GRACE_S, scene


def back(thread: str = "t1", run: str = "back", **more: Any) -> JsonObject:
    """The request of a page that comes back; it shows nothing yet, unless `messages` are given."""
    messages: list[JsonObject] = more.pop("messages", [])
    return ask("", thread, run, messages=messages, **more)


async def connected(served: Served, path: str = "/connect", **more: Any) -> Answer:
    """The whole answer to a page that comes back, which is legal and one run."""
    answer = await served.run(back(**more), path=path)
    assert answer.status == 200, answer.body
    rules = Rules()
    rules.check(answer.events)
    assert rules.ended
    return answer


def page_of(answer: Answer, *messages: JsonObject) -> Page:
    page = Page(messages)
    page.apply(answer.events)
    assert not page.surprises
    return page


# --- a thread at rest ---------------------------------------------------------------------------------------------


async def test_a_thread_at_rest_is_told_as_snapshots_and_a_success_and_nothing_is_begun():
    model = ScriptedProvider(calls(("lookup", '{"key":"tea"}'), text="Look."), says("It is 42"))
    store = MemoryJournal()
    async with serving(Agent("a", model=model, tools=[lookup]), store=store) as served:
        ran = await served.run(ask("Tea?"))
        answer = await connected(served)
        assert golden(answer.events) == (
            "RUN_STARTED t1 back 1.0\n"
            'MESSAGES_SNAPSHOT user u1 "Tea?" | assistant m1 "Look." c1=lookup{"key":"tea"} working_message/1'
            ' | tool o1 c1 "tea is 42" | assistant m2 "It is 42" final_response/2\n'
            "STATE_SNAPSHOT {}\n"
            "RUN_FINISHED t1 back success"
        )
        asked = [{"id": "u1", "role": "user", "content": "Tea?"}]
        assert page_of(answer).messages == page_of(ran, *asked).messages
        assert "x-run-id" not in answer.headers
        assert len(store._runs) == 1
        assert len(model.requests) == 2


async def test_a_run_that_failed_is_no_failure_of_the_page_that_comes_back():
    broken = [s.TextDelta("Half "), ProviderError("The provider is away.", code="provider_unavailable")]
    async with serving(Agent("a", model=ScriptedProvider(says("one"), broken, says("three")))) as served:
        page = Page()
        for number in (1, 2, 3):
            page.messages.append({"id": f"u{number}", "role": "user", "content": "Hi"})
            page.apply((await served.run(ask("", run=f"r{number}", messages=page.messages))).events)
        answer = await connected(served)
        assert answer.types == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]
        assert page_of(answer).messages == page.messages
        assert [m["content"] for m in page.messages] == ["Hi", "one", "Hi", "Half ", "Hi", "three"]


async def test_a_page_that_shows_what_is_there_keeps_its_own_ids_and_order():
    async with serving(Agent("a", model=ScriptedProvider(says("one"), says("two")))) as served:
        await served.run(ask("Hi"))
        own = {"id": "mine", "role": "user", "content": "Hi"}
        answer = await connected(served, messages=[own])
        assert page_of(answer, own).messages[0] == own
        assert len(page_of(answer, own).messages) == 2
        lacking = Page()
        lacking.apply((await connected(served)).events)
        (said,) = lacking.messages[1:]
        page = page_of(await connected(served, messages=[said]), said)
        assert [message["role"] for message in page.messages] == ["user", "assistant"]


async def test_a_call_that_waits_for_the_page_is_there_again_and_can_be_answered():
    model = ScriptedProvider(calls(("pick_color", "{}"), text="Choose."), says("Blue it is"))
    async with serving(Agent("a", model=model)) as served:
        await served.run(ask("Pick", tools=[PICK]))
        answer = await connected(served)
        assert answer.events[-1]["outcome"] == {"type": "success"}
        page = page_of(answer)
        (call,) = page.messages[-1]["toolCalls"]
        result = {"id": "a1", "role": "tool", "toolCallId": call["id"], "content": "blue"}
        await served.run(ask("", run="r2", messages=[*page.messages, result], tools=[PICK]))
        assert page_of(await connected(served)).messages[-1]["content"] == "Blue it is"


# --- what is not there --------------------------------------------------------------------------------------------


async def test_an_unknown_thread_is_an_empty_run_and_is_not_made():
    store = MemoryJournal()
    async with serving(Agent("a", model=ScriptedProvider()), store=store) as served:
        answer = await connected(served, messages=[{"id": "u1", "role": "user", "content": "Hi"}])
        assert answer.types == ["RUN_STARTED", "RUN_FINISHED"]
        assert (answer.events[0]["threadId"], answer.events[0]["runId"]) == ("t1", "back")
        assert (store._sessions, store._runs) == ({}, {})


async def test_connect_is_there_for_every_agent_and_for_no_other():
    agents = {"a": Agent("a", model=ScriptedProvider(says("one"))), "b/c": Agent("b", model=ScriptedProvider())}
    async with serving(agents) as served:
        await served.run(ask("Hi"))
        for path in ("/connect", "/agents/a/connect", "/agents/b/c/connect"):
            assert (await connected(served, path)).types[1] == "MESSAGES_SNAPSHOT"
        answer = await served.run(back(), path="/agents/nobody/connect")
        assert (answer.status, answer.document["code"]) == (404, "not_found")
        assert (await served.run({"threadId": "t1"}, path="/connect")).status == 422


# --- a run at work ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def midway(*lines: Any, **members: Any) -> AsyncGenerator[tuple[Served, asyncio.Event, str], None]:
    """A run that has said these lines and waits; the event lets it go on."""
    go_on = asyncio.Event()
    rest = [*lines, go_on, s.TextDelta("and on"), s.AssistantMessageDone(), s.Completed("stop")]
    async with (
        serving(Agent("a", model=ScriptedProvider(rest), **members)) as served,
        served.http.stream("POST", "/", json=ask("Hi")) as response,
    ):
        run_id = response.headers["x-run-id"]
        seen = b""
        pieces = response.aiter_bytes()
        while lines and lines[-1].text.encode() not in seen:  # the last line is committed, and so are the others
            seen += await anext(pieces)
        yield served, go_on, run_id
        go_on.set()
        async for _ in pieces:
            pass


async def come_back_and_let_go(served: Served, go_on: asyncio.Event, run_id: str, **more: Any) -> Answer:
    comes = asyncio.create_task(connected(served, **more))
    await until(lambda: served.bridge.supervisor.readers(run_id) == 2)
    go_on.set()
    return await comes


async def test_what_is_open_is_begun_anew_with_its_words_so_far_in_one_piece():
    async with midway(s.ReasoningDelta("Hm"), s.ReasoningDone("sig"), s.TextDelta("So "), s.TextDelta("far ")) as at:
        answer = await come_back_and_let_go(*at)
        assert golden(answer.events) == (
            "RUN_STARTED t1 back 1.0\n"
            'MESSAGES_SNAPSHOT user u1 "Hi" | reasoning r1 "Hm" {"encryptedValue":"sig"}\n'
            "STATE_SNAPSHOT {}\n"
            "STEP_STARTED round-1\n"
            "TEXT_MESSAGE_START m1 assistant\n"
            'TEXT_MESSAGE_CONTENT m1 "So far "\n'
            'TEXT_MESSAGE_CONTENT m1 "and on"\n'
            "TEXT_MESSAGE_END m1 final_response/1\n"
            "CUSTOM agui-bridge:round 1 final_response m1\n"
            "STEP_FINISHED round-1\n"
            "RUN_FINISHED t1 back success"
        )
        assert answer.headers["x-run-id"] == at[2]
        assert answer.headers["location"] == f"/api/agent-runs/{at[2]}"


@pytest.mark.parametrize(
    ("said", "half", "whole"),
    [
        ([s.TextDelta("So "), s.TextDelta("far ")], ("-1", "assistant"), ["So far and on"]),
        ([s.ReasoningDelta("So "), s.ReasoningDelta("far ")], ("-p0", "reasoning"), ["So far ", "and on"]),
    ],
    ids=["text", "a thought"],
)
async def test_a_page_that_shows_half_of_it_gets_it_once(said: list[Any], half: tuple[str, str], whole: list[str]):
    async with midway(*said) as at:
        served, _, run_id = at
        facts = await served.bridge.supervisor.journal.read(run_id, 0, 100)
        message_id = next(each.event.message_id for each in facts if isinstance(each.event, e.MessageStarted))
        shown = [
            {"id": "u1", "role": "user", "content": "Hi"},
            {"id": f"{message_id}{half[0]}", "role": half[1], "content": "So "},
        ]
        page = page_of(await come_back_and_let_go(*at, messages=shown), *shown)
        assert [message["content"] for message in page.messages] == ["Hi", *whole]


@tool(predict_state={"document": "text"})
async def tear(text: str) -> str:
    """Write the document, and tear it up."""
    raise ToolError("I tore it up.")


async def test_what_a_call_will_make_of_the_state_is_predicted_anew_and_taken_back_if_it_does_not():
    go_on = asyncio.Event()
    writing = s.ToolCallDelta("0", "tear", '{"text": "On', "call_0")
    whole = s.ToolCallCommitted("0", "tear", '{"text": "Once"}', "call_0")
    model = ScriptedProvider([writing, go_on, whole, s.Completed("tool_calls")], says("Done"))
    async with (
        serving(Agent("a", model=model, tools=[tear])) as served,
        served.streaming(ask("Write", protocolVersion="1.0")) as events,
    ):
        async for event in events:
            if event["type"] == "TOOL_CALL_ARGS":
                break
        run_id = (await served.get("/api/sessions/t1/messages")).document["messages"][0]["run_id"]
        answer = await come_back_and_let_go(served, go_on, run_id, protocolVersion="1.0")
    [predicted] = [event for event in answer.events if event.get("name") == "PredictState"]
    assert predicted["value"] == [{"state_key": "document", "tool": "tear", "tool_argument": "text"}]
    begun = answer.types.index("TOOL_CALL_START")
    assert answer.events[begun - 1] == predicted
    assert answer.types.index("STATE_SNAPSHOT") < begun
    assert "STATE_SNAPSHOT" in answer.types[begun:]  # the page takes it back


async def test_the_ids_of_the_frames_lead_on_where_the_page_left():
    async with midway(s.TextDelta("So "), s.TextDelta("far ")) as at:
        served, go_on, run_id = at
        answer = await come_back_and_let_go(served, go_on, run_id)
        whole = await served.get(f"/api/agent-runs/{run_id}/events?format=agui")
        frames = [frame for frame in answer.body.split(b"\n\n") if frame]
        at_id = next(n for n, frame in enumerate(frames) if b"So far" in frame)
        seen = frames[at_id].split(b"\n")[0].removeprefix(b"id: ").decode()
        rest = await served.get(f"/api/agent-runs/{run_id}/events?format=agui&after_seq={seen}")
        assert [f for f in rest.body.split(b"\n\n") if f][:-1] == frames[at_id + 1 : -1]
        assert whole.body.endswith(rest.body)


async def test_a_page_that_came_back_keeps_the_run_alive_and_one_that_left_does_not():
    async with scene() as at:
        run_id = await at.leave_midway(ask("Hello"))
        await at.grace_began()
        async with at.served.http.stream("POST", "/connect", json=back()) as response:
            assert response.headers["x-run-id"] == run_id
            await until(lambda: at.supervisor.readers(run_id) == 1)
            at.clock.advance(GRACE_S * 2)
            assert run_id in at.supervisor.live.runs
        await until(lambda: at.supervisor.readers(run_id) == 0)
        await at.grace_began()
        at.clock.advance(GRACE_S)
        assert await at.status(run_id) == "cancelled"


async def test_the_id_of_the_page_that_came_back_names_the_run():
    async with midway(s.TextDelta("So ")) as at:
        served, go_on, run_id = at
        await come_back_and_let_go(served, go_on, run_id)
        session = await served.bridge.supervisor.session(ANONYMOUS, "t1")
        assert session is not None
        named = await served.bridge.supervisor.journal.find_named_run(session.thread_id, "back")
        assert named is not None
        assert named.run_id == run_id


async def test_a_run_under_the_id_by_which_the_page_came_back_is_a_run():
    async with serving(Agent("a", model=ScriptedProvider(says("one"), says("two")))) as served:
        await served.run(ask("Hi"))
        page = page_of(await connected(served))
        page.messages.append({"id": "u2", "role": "user", "content": "On"})
        answer = await served.run(ask("", run="back", messages=page.messages))
        assert answer.status == 200
        page.apply(answer.events)
        assert page.messages[-1]["content"] == "two"


async def test_a_library_host_can_let_a_page_come_back_too():
    async with serving(Agent("a", model=ScriptedProvider(says("one")))) as served:
        await served.run(ask("Hi"))
        async with aclosing(served.bridge.stream(back(), connect=True)) as frames:
            events = events_in(b"".join([each async for each in frames]))
        assert events == (await connected(served)).events


async def test_a_page_that_comes_back_under_its_old_run_id_is_told_the_same():
    async with midway(s.TextDelta("So "), s.TextDelta("far ")) as at:
        answer = await come_back_and_let_go(*at, run="r1")
        assert answer.events[0]["runId"] == "r1"
        assert page_of(answer).messages[-1]["content"] == "So far and on"
