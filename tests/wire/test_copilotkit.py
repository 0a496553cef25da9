"""CopilotKit's runtime protocol over real sockets: what its pages are told, how they come back, and how they stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from agui_bridge.capabilities import capabilities
from agui_bridge.copilotkit_info import VERSION
from runtime import samples as s
from runtime.agent import Agent
from runtime.journal.memory import MemoryJournal
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.toolbox import tool
from tests.contract.workshop import until
from tests.pure.agui_rules import Rules
from tests.pure.stock_page import Page
from tests.serving import Answer, JsonObject, Served, ask, serving
from tests.wire.scenes import PICK
from tests.wire.sockets import post, wire
from tests.wire.test_owners import owned
from tests.wire.test_web_guard import PAGE, guarded, refused

RUN = "/copilotkit/agent/a/run"
CONNECT = "/copilotkit/agent/a/connect"
STOP = "/copilotkit/agent/a/stop/t1"


@tool(approval=True)
async def send(to: str) -> str:
    """Send a message."""
    return f"Sent to {to}."


def back(**more: Any) -> JsonObject:
    """The request of a page that was loaded again."""
    return ask("", run="back", messages=[], **more)


def envelope(method: str, body: JsonObject | None = None, **params: str) -> JsonObject:
    return {"method": method, "params": params, **({} if body is None else {"body": body})}


def legal(answer: Answer) -> Answer:
    """The answer, which is one whole and legal run."""
    assert answer.status == 200, answer.body
    rules = Rules()
    rules.check(answer.events)
    assert rules.ended
    return answer


# --- info ---------------------------------------------------------------------------------------------------------


async def test_info_names_the_agents_with_what_they_can_do():
    agents = {"a": Agent("Ann", model=ScriptedProvider(), description="Writes."), "b/c": Agent("b", tools=[send])}
    async with serving(agents, model="scripted") as served:
        info = (await served.get("/copilotkit/info")).document
        assert (info["version"], info["mode"], info["audioFileTranscriptionEnabled"]) == (VERSION, "sse", False)
        assert list(info["agents"]) == ["a", "b/c"]
        ann = info["agents"]["a"]
        assert (ann["name"], ann["description"], ann["className"]) == ("a", "Writes.", "Agent")
        for name, told in info["agents"].items():
            performer = served.bridge.supervisor.performers[name]
            derived = capabilities(performer.agent, performer.model, served.bridge.settings)
            assert told["capabilities"] == orjson.loads(orjson.dumps(derived))


async def test_the_routes_stand_where_the_setting_says_and_nowhere_without_one():
    agent = Agent("a", model=ScriptedProvider(says("one")))
    async with serving(agent, copilotkit_prefix="/api/copilotkit") as served:
        assert (await served.get("/api/copilotkit/info")).status == 200
        assert (await served.get("/copilotkit/info")).status == 404
        assert legal(await served.run(ask("Hi"), path="/api/copilotkit/agent/a/run"))
        described = (await served.get("/openapi.json")).document["paths"]
        assert "/api/copilotkit/info" in described
    async with serving(Agent("a", model=ScriptedProvider()), copilotkit_prefix="") as served:
        assert (await served.get("/copilotkit/info")).status == 404
        described = (await served.get("/openapi.json")).document["paths"]
        assert not [path for path in described if "copilotkit" in path]


async def test_a_page_of_a_foreign_origin_is_refused_and_an_allowed_one_may_read():
    async with guarded(allowed_origins=[PAGE]) as served:
        answer = await served.run(ask("hello"), path="/copilotkit/agent/demo/run", origin=PAGE)
        assert answer.headers["access-control-allow-origin"] == PAGE
        foreign = await served.run(ask("hello"), path="/copilotkit/agent/demo/run", origin="https://else.example")
        assert refused(foreign) == (403, "foreign_origin")
        asked = {
            "origin": PAGE,
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type,x-mine",
        }
        preflight = await served.http.request("OPTIONS", "/copilotkit/agent/demo/stop/t1", headers=asked)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == PAGE


# --- run ----------------------------------------------------------------------------------------------------------


async def test_a_run_is_the_run_of_every_other_route():
    async with serving(Agent("a", model=ScriptedProvider(says("one")))) as served:
        answer = legal(await served.run(ask("Hi"), path=RUN))
        assert answer.types[-1] == "RUN_FINISHED"
        record = await served.get(answer.headers["location"])
        assert (record.document["status"], record.document["client_run_id"]) == ("succeeded", "r1")
        again = await served.run(ask("Hi"))
        assert again.headers["x-run-id"] == answer.headers["x-run-id"]


async def test_names_of_agents_may_hold_slashes():
    agents = {"a": Agent("a", model=ScriptedProvider()), "b/c": Agent("b", model=ScriptedProvider(says("bee")))}
    async with serving(agents) as served:
        for path in ("/copilotkit/agent/b%2Fc/run", "/copilotkit/agent/b/c/connect"):
            assert "bee" in legal(await served.run(ask("Hi"), path=path)).body.decode()


@pytest.mark.parametrize("path", [RUN, CONNECT])
async def test_refusals_have_our_form(path: str):
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        assert refused(await served.run(ask("Hi"), path=path.replace("/a/", "/nobody/"))) == (404, "not_found")
        assert refused(await served.run({"threadId": "t1"}, path=path)) == (422, "invalid_input")
        assert refused(await served.run(b"{", path=path)) == (400, "not_json")
        assert refused(await served.get(path)) == (405, "method_not_allowed")


# --- stop ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def speaking(
    *rounds: Any, path: str = RUN, **request: Any
) -> AsyncGenerator[tuple[Served, asyncio.Task[Answer]], None]:
    """A run that has said "Half" to its page and says nothing more until it is stopped."""
    never = asyncio.Event()
    opening = rounds or ([s.TextDelta("Half "), never],)
    async with serving(Agent("a", model=ScriptedProvider(*opening))) as served:
        page = asyncio.create_task(served.run(ask("Hi", **request), path=path))
        await until(lambda: "Half" in facts(served))
        yield served, page
        page.cancel()


def facts(served: Served) -> str:
    """What is committed of all runs, in words."""
    return str([each.event for records in journal(served)._records.values() for each in records])


def journal(served: Served) -> MemoryJournal:
    store = served.bridge.supervisor.journal
    assert isinstance(store, MemoryJournal)
    return store


async def test_a_stop_without_a_body_ends_whatever_runs_and_for_the_page_it_is_finished():
    async with speaking() as (served, page), wire(served.url) as line:
        await line.send(post(b"", STOP))
        stopped = await line.rest()
        assert b" 200 " in stopped.split(b"\r\n")[0]
        assert orjson.loads(stopped.partition(b"\r\n\r\n")[2]) == {"stopped": True}
        answer = legal(await page)
        assert answer.types[-2:] != ["RUN_ERROR"]
        assert answer.events[-1].keys() - {"usage"} == {"type", "threadId", "runId"}
        assert answer.types.count("TEXT_MESSAGE_END") == 1
        record = await served.get(answer.headers["location"])
        assert record.document["status"] == "cancelled"


async def test_a_stop_names_the_run_by_the_id_of_its_page_or_of_one_that_came_back():
    async with speaking() as (served, page):
        wrong = await served.run({"runId": "another"}, path=STOP)
        assert wrong.document["stopped"] is False
        assert not page.done()
        returned = asyncio.create_task(served.run(back(), path=CONNECT))
        [run_id] = served.bridge.supervisor.live.runs
        await until(lambda: served.bridge.supervisor.readers(run_id) == 2)
        assert (await served.run({"runId": "back"}, path=STOP)).document == {"stopped": True}
        for answer in (legal(await page), legal(await returned)):
            assert answer.events[-1]["type"] == "RUN_FINISHED"
            assert "outcome" not in answer.events[-1]


async def test_a_stop_in_a_call_lets_no_page_run_it():
    never = asyncio.Event()
    half = [s.TextDelta("Half "), s.AssistantMessageDone(), s.ToolCallDelta("0", "pick_color", '{"a', "call_0"), never]
    async with speaking(half, tools=[PICK]) as (served, page):
        await until(lambda: "tool_name='pick_color'" in facts(served))
        await served.run({}, path=STOP)
        answer = legal(await page)
        shown = Page([{"id": "u1", "role": "user", "content": "Hi"}])
        shown.apply(answer.events)
        assert not [message for message in shown.messages if message.get("toolCalls")]


async def test_a_client_of_1_0_is_told_that_the_run_was_cancelled():
    async with speaking(protocolVersion="1.0") as (served, page):
        await served.run({}, path=STOP)
        assert legal(await page).events[-1]["outcome"] == {"type": "cancelled"}


async def test_on_the_other_routes_a_client_before_1_0_is_told_of_an_error():
    async with speaking(path="/") as (served, page):
        await served.run({}, path=STOP)
        assert (await page).events[-1]["code"] == "run_cancelled"


async def test_a_stop_where_nothing_runs_says_so_and_a_malformed_one_is_refused():
    async with serving(Agent("a", model=ScriptedProvider(says("one")))) as served:
        await served.run(ask("Hi"), path=RUN)
        answer = await served.run({}, path=STOP)
        assert (answer.status, answer.document["stopped"]) == (200, False)
        assert refused(await served.run({"runId": 7}, path=STOP)) == (422, "invalid_input")
        assert refused(await served.run(b"[]", path=STOP)) == (422, "invalid_input")
        assert refused(await served.run(b"{", path=STOP)) == (400, "not_json")
        assert refused(await served.run({}, path=STOP.replace("/a/", "/nobody/"))) == (404, "not_found")


async def test_a_stopped_thread_goes_on_with_the_next_message():
    async with speaking([s.TextDelta("Half "), asyncio.Event()], says("Anew")) as (served, page):
        await served.run({}, path=STOP)
        shown = Page([{"id": "u1", "role": "user", "content": "Hi"}])
        shown.apply((await page).events)
        shown.messages.append({"id": "u2", "role": "user", "content": "Again"})
        shown.apply(legal(await served.run(ask("", run="r2", messages=shown.messages), path=RUN)).events)
        assert [message["content"] for message in shown.messages] == ["Hi", "Half ", "Again", "Anew"]


async def test_what_waits_for_the_thread_is_stopped_before_it_can_begin():
    model = ScriptedProvider([s.TextDelta("Half "), asyncio.Event()], says("never asked for"))
    async with serving(Agent("a", model=model), on_busy="enqueue") as served:
        first = asyncio.create_task(served.run(ask("Hi"), path=RUN))
        await until(lambda: "Half" in facts(served))
        second = asyncio.create_task(served.run(ask("More", run="r2", message="u2"), path=RUN))
        await until(lambda: len(journal(served)._runs) == 2)
        assert (await served.run({}, path=STOP)).document == {"stopped": True}
        for answer in (legal(await first), legal(await second)):
            assert answer.types[-1] == "RUN_FINISHED"
        assert len(model.requests) == 1


# --- connect ------------------------------------------------------------------------------------------------------


async def test_an_unknown_thread_is_an_empty_run():
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        assert legal(await served.run(back(), path=CONNECT)).types == ["RUN_STARTED", "RUN_FINISHED"]


async def test_a_page_that_comes_back_in_the_middle_gets_the_words_so_far_and_the_rest():
    go_on = asyncio.Event()
    rest = [s.TextDelta("Half "), go_on, *says("and half")]
    async with speaking(rest) as (served, page):
        [run_id] = served.bridge.supervisor.live.runs
        returned = asyncio.create_task(served.run(back(), path=CONNECT))
        await until(lambda: served.bridge.supervisor.readers(run_id) == 2)
        go_on.set()
        shown = Page()
        shown.apply(legal(await returned).events)
        assert [message["content"] for message in shown.messages] == ["Hi", "Half and half"]
        assert legal(await page).types[-1] == "RUN_FINISHED"


async def test_what_is_asked_is_asked_again_and_its_answer_goes_on_under_the_same_run_id():
    model = ScriptedProvider(calls(("send", '{"to":"ann"}')), says("Done"))
    async with serving(Agent("a", model=model, tools=[send])) as served:
        first = legal(await served.run(ask("Write"), path=RUN))
        shown = Page()
        returned = legal(await served.run(back(), path=CONNECT))
        shown.apply(returned.events)
        asked = returned.events[-1]["outcome"]["interrupts"]
        assert asked == first.events[-1]["outcome"]["interrupts"]
        answer = {"interruptId": asked[0]["id"], "status": "resolved", "payload": {"approved": True}}
        went_on = await served.run(ask("", run="back", messages=shown.messages, resume=[answer]), path=RUN)
        shown.apply(legal(went_on).events)
        assert [message["content"] for message in shown.messages[-2:]] == ["Sent to ann.", "Done"]


# --- the single endpoint ------------------------------------------------------------------------------------------


def without_times(answer: Answer) -> list[JsonObject]:
    return [{name: value for name, value in event.items() if name != "timestamp"} for event in answer.events]


async def test_everything_can_be_had_through_one_path():
    async with serving(Agent("a", model=ScriptedProvider(says("one")))) as served:
        info = await served.run(envelope("info"), path="/copilotkit")
        assert info.document == (await served.get("/copilotkit/info")).document
        ran = await served.run(envelope("agent/run", ask("Hi"), agentId="a"), path="/copilotkit")
        assert without_times(ran) == without_times(await served.run(ask("Hi"), path=RUN))
        returned = await served.run(envelope("agent/connect", back(), agentId="a"), path="/copilotkit")
        assert without_times(returned) == without_times(await served.run(back(), path=CONNECT))
        for body in (None, {"runId": "r1"}):
            stopped = await served.run(envelope("agent/stop", body, agentId="a", threadId="t1"), path="/copilotkit")
            assert stopped.document == (await served.run(body or {}, path=STOP)).document


async def test_a_stop_through_one_path_stops():
    async with speaking() as (served, page):
        wanted = envelope("agent/stop", {"runId": "r1"}, agentId="a", threadId="t1")
        assert (await served.run(wanted, path="/copilotkit")).document == {"stopped": True}
        assert legal(await page).types[-1] == "RUN_FINISHED"


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ([], (422, "invalid_input")),
        ({}, (422, "invalid_input")),
        ({"method": "info", "params": 1}, (422, "invalid_input")),
        ({"method": "agent/run", "body": {}}, (422, "invalid_input")),
        ({"method": "agent/run", "params": {"agentId": "a"}}, (422, "invalid_input")),
        ({"method": "agent/run", "params": {"agentId": "nobody"}, "body": ask("Hi")}, (404, "not_found")),
        ({"method": "agent/stop", "params": {"agentId": "a", "threadId": "\n"}}, (404, "not_found")),
        ({"method": "transcribe"}, (404, "not_found")),
    ],
)
async def test_an_envelope_that_says_nothing_known_is_refused(body: Any, refusal: tuple[int, str]):
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        assert refused(await served.run(body, path="/copilotkit")) == refusal


# --- whose it is --------------------------------------------------------------------------------------------------


async def test_another_owners_thread_is_answered_as_one_that_is_not_there():
    async with owned() as served:
        path = "/copilotkit/agent/demo"
        await served.run(ask("hello"), path=f"{path}/run", x_user="ann")
        for wanted in ({}, {"runId": "r1"}):
            other = await served.run(wanted, path=f"{path}/stop/t1", x_user="ben")
            missing = await served.run(wanted, path=f"{path}/stop/t9", x_user="ann")
            assert refused(other) == (404, "not_found")
            assert other.body == missing.body
        assert (await served.run({}, path=f"{path}/stop/t1", x_user="ann")).status == 200
        assert legal(await served.run(back(), path=f"{path}/connect", x_user="ben")).types[1] == "RUN_FINISHED"
        assert (await served.get("/copilotkit/info")).status == 401
