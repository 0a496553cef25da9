"""The threads of CopilotKit's pages over real sockets: lists, names, what is in them, and whose they are."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from runtime import samples as s
from runtime.agent import Agent
from runtime.journal.store import Store
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.contract.workshop import until
from tests.pure.agui_rules import Rules
from tests.pure.stock_page import Page
from tests.serving import Answer, JsonObject, Served, ask, serving
from tests.wire.scenes import lookup
from tests.wire.test_copilotkit import CONNECT, RUN, facts, legal
from tests.wire.test_owners import owned
from tests.wire.test_web_guard import refused

THREADS = "/copilotkit/threads"


async def send(served: Served, method: str, path: str, document: Any = None, **headers: str) -> Answer:
    """A request as the hook makes it: every method but GET has a body."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {} if document is None else {"json": document}
    response = await served.http.request(method, path, headers=sent, **body)
    return Answer(response.status_code, response.headers, response.content)


async def listed(served: Served, **query: str) -> list[JsonObject]:
    answer = await served.get(f"{THREADS}?{urlencode({'agentId': 'a', **query})}")
    assert answer.status == 200, answer.body
    return answer.document["threads"]


def ids(threads: list[JsonObject]) -> list[str]:
    return [thread["id"] for thread in threads]


# --- lists --------------------------------------------------------------------------------------------------------


async def test_a_thread_is_listed_with_its_first_words_for_a_name(store: Store):
    async with serving(Agent("a", model=ScriptedProvider()), store=store) as served:
        assert await listed(served) == []
        await served.run(ask("What is\n tea?", thread="t1"), path=RUN)
        await served.run(ask("And then", thread="t1", run="r2", message="u2"), path=RUN)
        [thread] = await listed(served)
        assert thread.keys() == {
            *("id", "name", "agentId", "organizationId", "createdById", "archived", "createdAt", "updatedAt"),
            "lastRunAt",
        }
        assert (thread["id"], thread["name"], thread["agentId"], thread["archived"]) == (
            *("t1", "What is tea?", "a"),
            False,
        )
        assert thread["createdAt"] <= thread["lastRunAt"] == thread["updatedAt"]
        session = (await served.get("/api/sessions/t1")).document
        assert (session["title"], session["default_title"]) == (None, "What is tea?")


async def test_a_session_of_the_native_api_gets_its_name_with_the_first_message(store: Store):
    async with serving(Agent("a", model=ScriptedProvider()), store=store) as served:
        made = (await send(served, "POST", "/api/sessions", {})).document
        [empty] = await listed(served)
        assert (empty["id"], empty["name"], "lastRunAt" in empty) == (made["session_id"], None, False)
        path = f"/api/sessions/{made['session_id']}/messages"
        await send(served, "POST", path, {"content": "Tea?"}, idempotency_key="k1")
        assert [thread["name"] for thread in await listed(served)] == ["Tea?"]


async def test_an_adopted_history_names_its_thread_by_its_first_words():
    shown = [
        {"id": "u1", "role": "user", "content": "Before"},
        {"id": "a1", "role": "assistant", "content": "Yes"},
        {"id": "u2", "role": "user", "content": "After"},
    ]
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        await served.run(ask("", messages=shown), path=RUN)
        assert [thread["name"] for thread in await listed(served)] == ["Before"]


async def test_the_last_used_thread_is_the_first_and_pages_lead_through_all(store: Store):
    async with serving(Agent("a", model=ScriptedProvider()), store=store) as served:
        for number in range(5):
            await served.run(ask("Hi", thread=f"t{number}"), path=RUN)
        await served.run(ask("Again", thread="t1", run="r2", message="u2"), path=RUN)
        assert ids(await listed(served)) == ["t1", "t4", "t3", "t2", "t0"]
        seen: list[str] = []
        more: str | None = ""
        while more is not None:
            query = {"agentId": "a", "limit": "2", **({"cursor": more} if more else {})}
            page = (await served.get(f"{THREADS}?{urlencode(query)}")).document
            seen, more = seen + ids(page["threads"]), page["nextCursor"]
        assert seen == ["t1", "t4", "t3", "t2", "t0"]


async def test_threads_of_another_agent_are_in_its_own_list():
    agents = {"a": Agent("a", model=ScriptedProvider()), "b": Agent("b", model=ScriptedProvider())}
    async with serving(agents) as served:
        await served.run(ask("Hi", thread="t1"), path=RUN)
        await served.run(ask("Hi", thread="t2"), path="/copilotkit/agent/b/run")
        assert ids(await listed(served)) == ["t1"]
        assert ids(await listed(served, agentId="b")) == ["t2"]
        assert ids((await served.get(THREADS)).document["threads"]) == ["t2", "t1"]


@pytest.mark.parametrize("query", ["limit=0", "limit=many", "includeArchived=yes", "cursor=no"])
async def test_a_list_that_is_asked_for_wrongly_is_refused(query: str):
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        assert (await served.get(f"{THREADS}?{query}")).status == 422


# --- changes ------------------------------------------------------------------------------------------------------


async def test_a_thread_is_renamed_put_away_taken_back_and_deleted(store: Store):
    async with serving(Agent("a", model=ScriptedProvider()), store=store) as served:
        await served.run(ask("Hi"), path=RUN)
        path, agent = f"{THREADS}/t1", {"agentId": "a"}
        renamed = await send(served, "PATCH", path, {**agent, "name": "Tea"})
        assert (renamed.status, renamed.document["name"]) == (200, "Tea")
        assert [thread["name"] for thread in await listed(served)] == ["Tea"]
        bare = await send(served, "PATCH", path, {**agent, "name": None})
        assert bare.document["name"] == "Hi"

        away = await send(served, "POST", f"{path}/archive", agent)
        assert away.document == {"threadId": "t1", "archived": True}
        assert await listed(served) == []
        assert [thread["archived"] for thread in await listed(served, includeArchived="true")] == [True]
        again = await served.run(ask("More", run="r2", message="u2"), path=RUN)
        assert legal(again).types[-1] == "RUN_FINISHED"
        assert await listed(served) == []
        await send(served, "PATCH", path, {**agent, "archived": False})
        assert [thread["archived"] for thread in await listed(served)] == [False]

        gone = await send(served, "DELETE", path, agent)
        assert gone.document == {"threadId": "t1", "deleted": True}
        assert await listed(served, includeArchived="true") == []
        assert refused(await send(served, "DELETE", path, agent)) == (404, "not_found")
        assert refused(await served.get(f"{path}/messages")) == (404, "not_found")


async def test_a_deleted_thread_ends_what_runs_in_it():
    model = ScriptedProvider([s.TextDelta("Half "), asyncio.Event()])
    async with serving(Agent("a", model=model)) as served:
        page = asyncio.create_task(served.run(ask("Hi"), path=RUN))
        await until(lambda: "Half" in facts(served))
        assert (await send(served, "DELETE", f"{THREADS}/t1", {"agentId": "a"})).status == 200
        assert legal(await page).events[-1].keys() - {"usage"} == {"type", "threadId", "runId"}


@pytest.mark.parametrize(
    "document", [None, [], {"name": 7}, {"name": ""}, {"name": "x" * 201}, {"name": "a\nb"}, {"archived": "yes"}]
)
async def test_a_change_that_is_none_is_refused(document: Any):
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        await served.run(ask("Hi"), path=RUN)
        assert refused(await send(served, "PATCH", f"{THREADS}/t1", document)) == (422, "invalid_input")
        assert [thread["name"] for thread in await listed(served)] == ["Hi"]


async def test_ids_of_threads_may_hold_slashes():
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        await served.run(ask("Hi", thread="t/1"), path=RUN)
        path = f"{THREADS}/{quote('t/1', safe='')}"
        assert (await send(served, "PATCH", path, {"name": "Tea"})).document["id"] == "t/1"
        assert len((await served.get(f"{path}/messages")).document["messages"]) == 2
        assert (await served.run({}, path=f"/copilotkit/agent/a/stop/{quote('t/1', safe='')}")).status == 200


async def test_nobody_is_told_of_changes_and_info_says_so():
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        info = (await served.get("/copilotkit/info")).document
        assert info["threadEndpoints"] == {
            "list": True,
            "inspect": True,
            "mutations": True,
            "realtimeMetadata": False,
        }
        assert refused(await send(served, "POST", f"{THREADS}/subscribe", {})) == (422, "no_realtime")


# --- what is in them ----------------------------------------------------------------------------------------------


async def test_messages_events_and_state_are_what_a_page_that_comes_back_gets():
    @tool
    async def note(ctx: ToolContext, text: str) -> str:
        """Write something down."""
        ctx.state["notes"] = [text]
        return "Noted."

    model = ScriptedProvider(calls(("lookup", '{"key":"tea"}'), ("note", '{"text":"hi"}'), text="Look."), says("42"))
    async with serving(Agent("a", model=model, tools=[lookup, note])) as served:
        await served.run(ask("Tea?"), path=RUN)
        events = (await served.get(f"{THREADS}/t1/events")).document["events"]
        rules = Rules()
        rules.check(events)
        assert rules.ended
        built, returned = Page(), Page()
        built.apply(events)
        returned.apply(legal(await served.run(ask("", run="back", messages=[]), path=CONNECT)).events)
        assert (built.messages, built.state) == (returned.messages, returned.state)
        assert (await served.get(f"{THREADS}/t1/state")).document == {"state": {"notes": ["hi"]}}
        messages = (await served.get(f"{THREADS}/t1/messages")).document["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "assistant"]
        made = built.messages[1]["toolCalls"]
        assert messages[1]["toolCalls"] == [
            {"id": made[0]["id"], "name": "lookup", "args": '{"key":"tea"}'},
            {"id": made[1]["id"], "name": "note", "args": '{"text":"hi"}'},
        ]
        assert messages[2] == {
            "id": built.messages[2]["id"],
            "role": "tool",
            "toolCallId": made[0]["id"],
            "content": "tea is 42",
        }


# --- the single endpoint ------------------------------------------------------------------------------------------


async def test_the_single_endpoint_leads_to_the_same_threads():
    async def through(method: str, path: str, body: Any = None) -> Answer:
        wanted = {"method": "resource/request", "params": {"path": path, "httpMethod": method}}
        return await served.run(wanted if body is None else {**wanted, "body": body}, path="/copilotkit")

    async with serving(Agent("a", model=ScriptedProvider())) as served:
        info = (await served.get("/copilotkit/info")).document
        assert info["singleRoute"] == {"resourceOperations": True, "threadEndpoints": info["threadEndpoints"]}
        await served.run(ask("Hi", thread="t 1"), path=RUN)
        assert (await through("GET", "/threads?agentId=a")).document["threads"] == await listed(served)
        assert (await through("GET", "/threads?agentId=b")).document["threads"] == []
        assert (await through("PATCH", "/threads/t%201", {"agentId": "a", "name": "Tea"})).document["name"] == "Tea"
        there = await through("GET", "/threads/t%201/messages")
        assert there.document == (await served.get(f"{THREADS}/t%201/messages")).document
        assert (await through("POST", "/threads/t%201/archive", {"agentId": "a"})).document["archived"] is True
        assert (await through("DELETE", "/threads/t%201", {"agentId": "a"})).document["deleted"] is True
        for method, path in (("PUT", "/threads"), ("GET", "/info"), ("GET", "/threads/../../api/sessions")):
            assert refused(await through(method, path)) == (404, "not_found")
        assert refused(await through("GET", "/threads?limit=0")) == (422, "invalid_input")


# --- whose they are -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "document"),
    [
        ("GET", "/messages", None),
        ("GET", "/events", None),
        ("GET", "/state", None),
        ("PATCH", "", {"name": "Mine"}),
        ("POST", "/archive", {"agentId": "demo"}),
        ("DELETE", "", {"agentId": "demo"}),
    ],
)
async def test_another_owners_thread_is_answered_as_one_that_is_not_there(method: str, path: str, document: Any):
    async with owned() as served:
        await served.run(ask("hello"), path="/copilotkit/agent/demo/run", x_user="ann")
        other = await send(served, method, f"{THREADS}/t1{path}", document, x_user="ben")
        missing = await send(served, method, f"{THREADS}/t9{path}", document, x_user="ann")
        assert refused(other) == (404, "not_found")
        assert other.body == missing.body
        theirs = await send(served, "GET", THREADS, x_user="ben")
        assert theirs.document == {"threads": [], "nextCursor": None}
        [thread] = (await send(served, "GET", THREADS, x_user="ann")).document["threads"]
        assert (thread["name"], thread["archived"]) == ("hello", False)
        assert (await send(served, method, f"{THREADS}/t1{path}", document)).status == 401
