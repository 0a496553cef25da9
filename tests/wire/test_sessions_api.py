"""The sessions API over real sockets: what is said is kept, found again, asked once, stopped and forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agui_bridge import Agent, Bridge, Settings, tool
from agui_bridge.demo import demo_agent
from runtime.items import FunctionCallOutput, Message
from runtime.journal.memory import MemoryJournal
from runtime.samples import ReasoningDelta, ReasoningDone
from runtime.testing import ScriptedProvider, calls, says
from tests.serving import Answer, JsonObject, Served, ask, listening, serving
from tests.stores import Home
from tests.wire.sockets import eventually
from tests.wire.test_owners import by_name, same

KEYS = count(1)


@tool
async def look(place: str) -> str:
    """Look somewhere."""
    return f"seen {place}"


def gated(*gates: asyncio.Event) -> Agent:
    """An agent that waits at each gate, one a run, before it answers."""
    rounds = [[gate, *says(f"answer {number}")] for number, gate in enumerate(gates, 1)]
    return Agent("gated", model=ScriptedProvider(*rounds))


async def send(served: Served, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """One request with a JSON body, and its whole answer."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = await served.http.request(method, path, headers=given, **({} if body is None else {"json": body}))
    return Answer(sent.status_code, sent.headers, sent.content)


@dataclass
class Talk:
    """A session that a client of the native API has."""

    served: Served
    session_id: str
    headers: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def path(self) -> str:
        return f"/api/sessions/{self.session_id}"

    async def say(self, content: Any, key: str | None = None, **more: Any) -> Answer:
        key = key or f"key-{next(KEYS)}"
        body = {"content": content, **more}
        return await send(self.served, "POST", f"{self.path}/messages", body, idempotency_key=key, **self.headers)

    async def ended(self, said: Answer) -> JsonObject:
        """The run that answers, once it is over."""
        assert said.status == 202, said.body
        await self.served.get(said.document["events_url"], **self.headers)
        return (await self.served.get(f"/api/agent-runs/{said.document['run_id']}", **self.headers)).document

    async def messages(self, query: str = "") -> list[JsonObject]:
        return (await self.served.get(f"{self.path}/messages{query}", **self.headers)).document["messages"]


@asynccontextmanager
async def talking(agents: Any = None, **settings: Any) -> AsyncGenerator[Talk, None]:
    async with serving(agents or demo_agent(), **settings) as served:
        yield await new_talk(served)


async def new_talk(served: Served, title: str | None = None, **headers: str) -> Talk:
    made = await send(served, "POST", "/api/sessions", {"title": title}, **headers)
    assert made.status == 201, made.body
    return Talk(served, made.document["session_id"], headers)


def told(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.document["code"]


# --- sessions -----------------------------------------------------------------------------------------------------


async def test_a_session_is_made_shown_renamed_and_listed():
    async with serving([demo_agent(), gated()]) as served:
        made = await send(served, "POST", "/api/sessions", {"title": "about milk"})
        session = made.document
        assert list(session) == [
            *("session_id", "title", "default_title", "agent_id", "owner_id", "thread_id", "created_at"),
            "archived_at",
        ]
        assert (session["title"], session["agent_id"], session["owner_id"]) == ("about milk", "demo", "anonymous")
        assert made.headers["location"] == f"/api/sessions/{session['session_id']}"
        assert (await served.get(made.headers["location"])).document == session
        changed = await send(served, "PATCH", made.headers["location"], {"title": None, "agent_id": "gated"})
        assert changed.document == session | {"title": None, "agent_id": "gated"}
        assert (await send(served, "PATCH", made.headers["location"], {})).document == changed.document
        assert (await served.get("/api/sessions")).document == {"sessions": [changed.document], "next_cursor": None}


async def test_a_session_that_a_page_has_made_is_one_like_any_other():
    async with serving(demo_agent()) as served:
        for thread in ("t1", "with/slashes", "ümlaut 🙂", "a?b#c%20"):
            await served.run(ask("hello", thread=thread))
        listed = (await served.get("/api/sessions")).document["sessions"]
        assert [session["session_id"] for session in listed] == ["a?b#c%20", "ümlaut 🙂", "with/slashes", "t1"]
        for path, thread in (("with%2Fslashes", "with/slashes"), ("%C3%BCmlaut%20%F0%9F%99%82", "ümlaut 🙂")):
            assert (await served.get(f"/api/sessions/{path}")).document["session_id"] == thread
            talk = Talk(served, path)
            await talk.ended(await talk.say("again"))
            assert [message["role"] for message in await talk.messages()] == ["user", "assistant"] * 2


async def test_pages_of_sessions_do_not_shift_while_sessions_are_added():
    async with serving(demo_agent()) as served:
        made = [(await new_talk(served, f"number {number}")).session_id for number in range(7)]
        seen: list[str] = []
        query = "?limit=3"
        while True:
            page = (await served.get(f"/api/sessions{query}")).document
            seen += [session["session_id"] for session in page["sessions"]]
            if page["next_cursor"] is None:
                break
            await new_talk(served)
            query = f"?limit=3&cursor={page['next_cursor']}"
        assert seen == made[::-1]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/sessions", {"title": "two\nlines"}),
        ("POST", "/api/sessions", {"title": "x" * 201}),
        ("POST", "/api/sessions", {"title": "  "}),
        ("POST", "/api/sessions", {"name": "x"}),
        ("POST", "/api/sessions", [1]),
        ("POST", "/api/sessions", {"agent_id": 7}),
        ("GET", "/api/sessions?limit=0", None),
        ("GET", "/api/sessions?limit=201", None),
        ("GET", "/api/sessions?limit=x", None),
        ("GET", "/api/sessions?cursor=", None),
        ("GET", "/api/sessions?cursor=nonsense", None),
        ("GET", "/api/sessions?cursor=WzEsIngiLDJd", None),
        ("GET", "/api/sessions?cursor=W3RydWUsIngiXQ", None),
        ("GET", "/api/agent-runs?status=lost", None),
        ("GET", "/api/agent-runs?cursor=Wy0xLCJ4Il0", None),
        ("GET", "/api/agent-runs?session_id=", None),
    ],
)
async def test_what_has_not_the_shape_that_is_asked_for_is_refused(method: str, path: str, body: Any):
    async with serving(demo_agent()) as served:
        answer = await send(served, method, path, body)
        assert answer.status == 422
        assert answer.document.keys() == {"code", "message", "details"}


async def test_unknown_paths_and_methods_are_refused_in_the_same_words_as_all_else():
    async with talking() as talk:
        for method, path, status, allowed in (
            ("GET", "/api/nothing", 404, None),
            ("GET", "/api/sessions/nobody/nothing", 404, None),
            ("PUT", "/api/sessions", 405, "GET, HEAD, POST"),
            ("POST", talk.path, 405, "DELETE, GET, HEAD, PATCH"),
            ("DELETE", f"{talk.path}/messages", 405, "GET, HEAD, POST"),
            ("GET", "/api/agent-runs/run_1/cancel", 405, "POST"),
        ):
            answer = await send(talk.served, method, path)
            assert (answer.status, answer.headers.get("allow")) == (status, allowed)
            assert answer.document.keys() == {"code", "message", "details"}


# --- messages -----------------------------------------------------------------------------------------------------


async def test_a_message_is_answered_without_anybody_reading():
    async with talking(disconnect_grace_s=0) as talk:
        said = await talk.say("What is the weather in Oslo?")
        assert said.status == 202
        document = said.document
        assert list(document) == ["message_id", "run_id", "events_url", "agent_id", "agent_name"]
        assert said.headers["location"] == f"/api/agent-runs/{document['run_id']}"
        await eventually(lambda: not talk.served.bridge.supervisor.is_at_work(document["run_id"]))
        run = (await talk.served.get(said.headers["location"])).document
        assert (run["status"], run["session_id"]) == ("succeeded", talk.session_id)
        assert run["client_run_id"] == run["run_id"]


async def test_the_transcript_has_one_message_a_run_and_the_results_behind_it():
    async with talking() as talk:
        said = await talk.say("What is the weather in Oslo?")
        run = await talk.ended(said)
        user, assistant, *results = await talk.messages()
        for message in (user, assistant, *results):
            assert (message["run_id"], message["agent_id"], message["agent_name"]) == (run["run_id"], "demo", "demo")
        assert (user["message_id"], user["role"], user["content"]) == (
            said.document["message_id"],
            "user",
            "What is the weather in Oslo?",
        )
        assert (assistant["message_id"], assistant["role"]) == (run["final_message_id"], "assistant")
        assert [part["kind"] for part in assistant["parts"]] == ["text", "tool_call", "tool_call", "text"]
        assert assistant["content"] == assistant["parts"][-1]["text"]  # the final response
        assert [result["tool_name"] for result in results] == ["get_weather", "get_time"]
        assert [result["role"] for result in results] == ["tool", "tool"]


async def test_the_transcript_shows_nothing_that_is_not_committed_and_what_is_provisional_as_such():
    gate = asyncio.Event()
    model = ScriptedProvider([ReasoningDelta("hm"), ReasoningDone("sig"), gate, *says("so")])
    async with talking(Agent("a", model=model)) as talk:
        said = await talk.say("go")
        cursor = talk.served.bridge.supervisor.follow(said.document["run_id"])
        while not any(record.event_type == "reasoning.delta" for record in await cursor.next()):
            pass
        cursor.close()
        _, speaking = await talk.messages()
        assert [(part["kind"], part["committed"]) for part in speaking["parts"]] == [("reasoning", False)]
        assert speaking["model_visible"] is False
        gate.set()
        await talk.ended(said)
        _, spoken = await talk.messages()
        assert all(part["committed"] for part in spoken["parts"])
        assert (spoken["content"], spoken["model_visible"]) == ("so", True)


async def test_the_transcript_is_turned_back_page_by_page():
    async with talking() as talk:
        for number in range(4):
            await talk.ended(await talk.say(f"hello {number}"))
        whole = await talk.messages()
        assert len(whole) == 8
        pages: list[list[JsonObject]] = []
        query = "?limit=3"
        while True:
            page = (await talk.served.get(f"{talk.path}/messages{query}")).document
            pages.insert(0, page["messages"])
            if page["next_cursor"] is None:
                break
            if len(pages) == 1:  # what is said meanwhile stands behind
                await talk.ended(await talk.say("more"))
            query = f"?limit=3&cursor={page['next_cursor']}"
        assert [len(page) for page in pages] == [2, 3, 3]
        assert [message for page in pages for message in page] == whole
        assert told(await talk.served.get(f"{talk.path}/messages?cursor=WyJub2JvZHkiXQ")) == (422, "invalid_cursor")


async def test_a_message_may_be_made_of_parts():
    model = ScriptedProvider(says("a cat"))
    picture = {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}}
    async with talking(Agent("a", model=model)) as talk:
        await talk.ended(await talk.say([{"type": "text", "text": "what is this?"}, picture]))
        user, _ = await talk.messages()
        assert user["content"] == [{"type": "text", "text": "what is this?"}, picture]
        [message] = model.prompts[0]
        assert isinstance(message, Message)
        assert isinstance(message.content, list)
        assert message.content[1]["source"]["mime_type"] == "image/png"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": ""},
        {"content": []},
        {"content": None},
        {"content": [{"type": "smell", "text": "x"}]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "text", "text": "x", "more": 1}]},
        {"content": "x", "busy": "wait"},
        {"content": "x", "busy": []},
        {"content": "x", "role": "assistant"},
        "x",
    ],
)
async def test_a_message_that_cannot_be_taken_as_it_is_is_refused_and_leaves_nothing(body: Any):
    async with talking() as talk:
        answer = await send(talk.served, "POST", f"{talk.path}/messages", body, idempotency_key="k")
        assert told(answer) == (422, "invalid_input")
        assert await talk.messages() == []
        assert (await talk.say("hello", key="k")).status == 202  # the key was not used


async def test_a_message_names_another_agent_for_itself_alone():
    async with serving({"a": demo_agent(), "b": Agent("Bob", model=ScriptedProvider(says("I am Bob")))}) as served:
        talk = await new_talk(served)
        said = await talk.say("hello", agent_id="b")
        assert (said.document["agent_id"], said.document["agent_name"]) == ("b", "Bob")
        await talk.ended(said)
        await talk.ended(await talk.say("hello"))
        assert [message["agent_id"] for message in await talk.messages()] == ["b", "b", "a", "a"]
        assert (await served.get(talk.path)).document["agent_id"] == "a"
        assert told(await talk.say("hello", agent_id="nobody")) == (404, "not_found")


async def test_a_new_message_closes_the_calls_that_a_page_still_owes():
    pick = {"name": "pick", "description": "Let the user pick", "parameters": {"type": "object"}}
    model = ScriptedProvider(calls(("pick", "{}")), says("never mind"))
    async with serving(Agent("a", model=model)) as served:
        await served.run(ask("choose", tools=[pick]))
        talk = Talk(served, "t1")
        await talk.ended(await talk.say("forget it"))
        *_, output, message = model.prompts[-1]
        assert isinstance(output, FunctionCallOutput)
        assert isinstance(message, Message)
        assert output.output == "Not answered by the client."
        assert message.content == "forget it"
        [shown] = [message for message in await talk.messages() if message["role"] == "tool"]
        assert (shown["kind"], shown["is_error"]) == ("unanswered", True)


async def test_a_page_goes_on_with_what_was_said_by_the_native_api():
    async with talking() as talk:
        await talk.ended(await talk.say("hello"))
        answer = await talk.served.run(ask("and now?", thread=talk.session_id, run="r1", message="u1"))
        *_, snapshot = [event for event in answer.events if event["type"] == "MESSAGES_SNAPSHOT"]
        assert [message["role"] for message in snapshot["messages"]] == ["user", "assistant", "user"]


async def test_a_run_of_the_native_api_has_a_legal_stream_for_pages(official_client: Any):
    async with talking() as talk:
        said = await talk.say("What is the weather in Oslo?")
        stream = await talk.served.get(f"{said.document['events_url']}?format=agui")
        assert stream.events[0]["runId"] == said.document["run_id"]
        (await official_client.replay(stream.body)).assert_clean()


# --- repeats ------------------------------------------------------------------------------------------------------


async def test_a_message_without_a_key_is_refused():
    async with talking() as talk:
        for headers in ({}, {"idempotency_key": ""}, {"idempotency_key": "x" * 256}, {"idempotency_key": "a b"}):
            answer = await send(talk.served, "POST", f"{talk.path}/messages", {"content": "x"}, **headers)
            assert told(answer) == (422, "invalid_input")
            assert answer.document["details"] == {"path": "Idempotency-Key"}


async def test_the_same_key_and_request_get_the_same_answer_while_it_runs_and_after(home: Home):
    gate = asyncio.Event()
    async with talking(gated(gate, gate), store=home.store()) as talk:
        first = await talk.say("go", key="k")
        assert same(await talk.say("go", key="k"), first)
        gate.set()
        await talk.ended(first)
        assert same(await talk.say("go", key="k"), first)
        await talk.ended(await talk.say("more", key="k2"))
        assert same(await talk.say("go", key="k"), first)
        assert len(await talk.messages()) == 4


async def test_the_same_key_for_something_else_is_a_conflict():
    async with talking([demo_agent(), gated()]) as talk:
        first = await talk.say("go", key="k")
        await talk.ended(first)
        other = await new_talk(talk.served)
        for answer in (
            await talk.say("stop", key="k"),
            await talk.say("go", key="k", agent_id="gated"),
            await other.say("go", key="k"),
        ):
            assert told(answer) == (409, "idempotency_conflict")
            assert answer.document["details"] == {"run_id": first.document["run_id"]}
        assert await other.messages() == []


async def test_of_twins_with_one_key_one_runs_and_both_are_told_of_it(home: Home):
    model = ScriptedProvider()
    async with talking(Agent("a", model=model), store=home.store()) as talk:
        answers = await asyncio.gather(*(talk.say("go", key="k") for _ in range(8)))
        assert len({answer.body for answer in answers}) == 1
        await talk.ended(answers[0])
        assert len(model.prompts) == 1
        assert len((await talk.served.get("/api/agent-runs")).document["runs"]) == 1


async def test_a_key_is_told_again_by_the_next_process_even_if_the_agent_is_gone(tmp_path: Path):
    store = f"sqlite:///{tmp_path}/x.db"
    async with talking(store=store) as talk:
        first = await talk.say("hello", key="k")
        await talk.ended(first)
    async with serving(gated(), store=store) as served:
        again = await Talk(served, talk.session_id).say("hello", key="k")
        assert again.document == first.document
        assert told(await Talk(served, talk.session_id).say("hello", key="k2")) == (404, "not_found")


async def test_a_busy_thread_refuses_and_names_what_runs():
    gate = asyncio.Event()
    async with talking(gated(gate)) as talk:
        first = await talk.say("go")
        refused = await talk.say("more", key="k")
        assert told(refused) == (409, "thread_busy")
        assert refused.document["details"] == {"run_id": first.document["run_id"]}
        gate.set()
        await talk.ended(first)
        assert (await talk.say("more", key="k")).status == 202


async def test_a_run_that_a_page_has_left_makes_way():
    gate = asyncio.Event()
    async with serving(gated(gate, gate)) as served:
        async with served.streaming(ask("go")) as events:
            async for event in events:
                if event["type"] == "STEP_STARTED":
                    break
        (run,) = await served.bridge.supervisor.journal.active_runs()
        await eventually(lambda: served.bridge.supervisor.readers(run.run_id) == 0)
        said = await Talk(served, "t1").say("something else")
        assert said.status == 202
        left = (await served.get(f"/api/agent-runs/{run.run_id}")).document
        assert left["status"] == "cancelled"
        gate.set()


# --- runs ---------------------------------------------------------------------------------------------------------


async def test_runs_are_listed_by_session_and_status_page_by_page():
    gate = asyncio.Event()
    async with serving([demo_agent(), gated(gate)]) as served:
        one, two = await new_talk(served), await new_talk(served)
        runs = [(await one.ended(await one.say("hello")))["run_id"] for _ in range(3)]
        live = (await two.say("go", agent_id="gated")).document["run_id"]

        async def listed(query: str) -> list[str]:
            return [run["run_id"] for run in (await served.get(f"/api/agent-runs{query}")).document["runs"]]

        assert await listed("") == [live, *runs[::-1]]
        assert await listed(f"?session_id={one.session_id}") == runs[::-1]
        assert await listed("?status=running") == [live]
        assert await listed("?status=running&status=succeeded") == [live, *runs[::-1]]
        assert await listed("?status=failed") == []
        assert await listed("?session_id=nobody") == []
        page = (await served.get("/api/agent-runs?limit=3")).document
        rest = (await served.get(f"/api/agent-runs?limit=3&cursor={page['next_cursor']}")).document
        assert [run["run_id"] for run in page["runs"] + rest["runs"]] == [live, *runs[::-1]]
        assert rest["next_cursor"] is None
        gate.set()


async def test_a_run_without_children_is_a_tree_of_one():
    async with talking() as talk:
        run = await talk.ended(await talk.say("hello"))
        here = f"/api/agent-runs/{run['run_id']}"
        tree = (await talk.served.get(f"{here}/tree")).document
        assert tree == {
            "run_id": run["run_id"],
            "parent_run_id": None,
            "agent_id": "demo",
            "agent_name": "demo",
            "status": "succeeded",
            "last_event_seq": run["last_event_seq"],
            "events_url": f"{here}/events",
            "cancel_url": f"{here}/cancel",
            "children": [],
        }


async def test_the_rounds_of_a_run_are_what_was_asked_and_answered():
    model = ScriptedProvider(calls(("look", '{"place": "there"}'), text="wait"), says("nothing", usage={"tokens": 3}))
    async with talking(Agent("a", model=model, tools=[look], instructions="Be brief.")) as talk:
        run = await talk.ended(await talk.say("look there"))
        rounds = (await talk.served.get(f"/api/agent-runs/{run['run_id']}/rounds")).document
        assert rounds["agent"]["instructions"] == "Be brief."
        assert rounds["context"]["history_position"] == 0
        first, second = rounds["rounds"]
        assert [item["content"] for item in first["asked"]] == ["look there"]
        assert [(call["tool_name"], call["output"]) for call in first["answered"]["tool_calls"]] == [
            ("look", "seen there")
        ]
        assert [item["output"] for item in second["asked"]] == ["seen there"]
        assert (second["request"]["items"], len(second["request"]["digest"])) == (len(model.prompts[1]), 64)
        assert second["answered"]["runtime_role"] == "final_response"
        assert second["answered"]["parts"][0]["text"] == "nothing"


async def test_a_round_that_failed_has_shown_something_and_answered_nothing():
    async with talking() as talk:
        run = await talk.ended(await talk.say("/fail 2"))
        [only] = (await talk.served.get(f"/api/agent-runs/{run['run_id']}/rounds")).document["rounds"]
        assert (only["answered"]["committed"], only["answered"]["finish"]) == (False, None)
        assert only["answered"]["parts"][0]["committed"] is False


# --- stopping -----------------------------------------------------------------------------------------------------


async def test_a_cancelled_run_ends_and_its_streams_end_legally(official_client: Any):
    gate = asyncio.Event()
    async with talking(gated(gate)) as talk:
        said = (await talk.say("go")).document
        readers = [asyncio.create_task(talk.served.get(f"{said['events_url']}{q}")) for q in ("", "?format=agui")]
        await eventually(lambda: talk.served.bridge.supervisor.readers(said["run_id"]) == 2)
        path = f"/api/agent-runs/{said['run_id']}/cancel?wait=10"
        stopped = await send(talk.served, "POST", path)
        assert (stopped.status, stopped.document["status"]) == (200, "cancelled")
        canonical, agui = await asyncio.gather(*readers)
        types = [event["event_type"] for event in canonical.events]
        assert (types[-1], types.count("run.cancelling"), types.count("run.cancelled")) == ("run.cancelled", 1, 1)
        assert canonical.events[-1]["payload"]["reason"] == "user"
        assert agui.events[-1]["outcome"] == {"type": "cancelled"}
        (await official_client.replay(agui.body)).assert_clean()
        assert (await send(talk.served, "POST", path)).document == stopped.document  # and again
        assert (await talk.say("go on")).status == 202


async def test_a_request_to_cancel_need_not_wait_for_the_end():
    gate = asyncio.Event()
    async with talking(gated(gate)) as talk:
        said = (await talk.say("go")).document
        path = f"/api/agent-runs/{said['run_id']}/cancel"
        asked = await send(talk.served, "POST", path)
        assert asked.status in (200, 202)
        assert asked.document["run_id"] == said["run_id"]
        stream = await talk.served.get(said["events_url"])
        assert stream.events[-1]["event_type"] == "run.cancelled"


@pytest.mark.parametrize("wait", ["-1", "x", "61", "1e1", "", "1.00001", "inf", "٣"])
async def test_a_wait_that_is_none_is_refused_and_stops_nothing(wait: str):
    gate = asyncio.Event()
    async with talking(gated(gate)) as talk:
        said = (await talk.say("go")).document
        path = f"/api/agent-runs/{said['run_id']}"
        assert told(await send(talk.served, "POST", f"{path}/cancel?wait={wait}")) == (422, "invalid_input")
        assert (await talk.served.get(path)).document["status"] == "running"
        gate.set()


# --- deleting -----------------------------------------------------------------------------------------------------


async def test_a_deleted_session_is_gone_for_everybody_and_what_ran_in_it_is_cancelled(home: Home):
    gate = asyncio.Event()
    async with talking(gated(gate, gate), store=home.store()) as talk:
        served = talk.served
        said = (await talk.say("go", key="k")).document
        run_id, run_path = said["run_id"], f"/api/agent-runs/{said['run_id']}"
        reader = asyncio.create_task(served.get(said["events_url"]))
        await eventually(lambda: served.bridge.supervisor.readers(run_id) == 1)
        assert (await send(served, "DELETE", talk.path)).status == 204
        assert (await reader).events[-1]["payload"]["reason"] == "session_deleted"
        for path in (talk.path, f"{talk.path}/messages", run_path, f"{run_path}/events", f"{run_path}/tree"):
            assert told(await served.get(path)) == (404, "not_found")
        assert (await served.get("/api/sessions")).document["sessions"] == []
        assert (await served.get("/api/agent-runs")).document["runs"] == []
        assert told(await send(served, "DELETE", talk.path)) == (404, "not_found")
        assert told(await send(served, "POST", f"{run_path}/cancel")) == (404, "not_found")
        assert told(await talk.say("go", key="k")) == (404, "not_found")
        assert told(await served.run(ask("go", thread=talk.session_id))) == (404, "not_found")
        kept = await served.bridge.supervisor.journal.find_run(run_id)
        assert kept is not None
        assert kept.status == "cancelled"


async def test_a_page_cannot_bring_back_what_was_deleted():
    async with serving(demo_agent()) as served:
        first = await served.run(ask("hello"))
        await send(served, "DELETE", "/api/sessions/t1")
        assert told(await served.run(ask("hello"))) == (404, "not_found")  # the same request again
        assert told(await served.run(ask("more", run="r2", message="u2"))) == (404, "not_found")
        assert told(await served.get(first.headers["location"])) == (404, "not_found")
        assert (await served.run(ask("hello", thread="t2"))).status == 200


async def test_whoever_wants_to_erase_is_not_put_off_with_hiding():
    async with talking() as talk:
        assert told(await send(talk.served, "DELETE", f"{talk.path}?purge=yes")) == (422, "invalid_input")
        assert (await talk.served.get(talk.path)).status == 200


# --- owners -------------------------------------------------------------------------------------------------------


async def test_what_is_anothers_is_answered_exactly_as_what_is_not_there():
    settings = Settings.model_validate({"drain_s": 0})
    bridge = Bridge(demo_agent(), store=MemoryJournal(), settings=settings, authenticate=by_name)
    async with listening(bridge.app) as url:
        served = Served(bridge, url)
        async with served.http:
            mine = await new_talk(served, x_user="ann")
            run = await mine.ended(await mine.say("hello", key="k"))
            run_path, nothing = f"/api/agent-runs/{run['run_id']}", "/api/agent-runs/run_nothing"
            asked: list[tuple[str, str, str, Any]] = [
                ("GET", mine.path, "/api/sessions/nothing", None),
                ("PATCH", mine.path, "/api/sessions/nothing", {"title": "mine"}),
                ("DELETE", mine.path, "/api/sessions/nothing", None),
                ("GET", f"{mine.path}/messages", "/api/sessions/nothing/messages", None),
                ("POST", f"{mine.path}/messages", "/api/sessions/nothing/messages", {"content": "x"}),
                ("GET", f"{run_path}/tree", f"{nothing}/tree", None),
                ("GET", f"{run_path}/rounds", f"{nothing}/rounds", None),
                ("POST", f"{run_path}/cancel", f"{nothing}/cancel", None),
            ]
            for user in ("ben", "other-tenant/ann", "olga"):
                for method, theirs, missing, body in asked:
                    given = {"x_user": user, "idempotency_key": "k"}
                    one = await send(served, method, theirs, body, **given)
                    assert one.status == 404
                    assert same(one, await send(served, method, missing, body, **given))
                assert (await served.get("/api/sessions", x_user=user)).document["sessions"] == []
                assert (await served.get("/api/agent-runs", x_user=user)).document["runs"] == []
                theirs = await new_talk(served, x_user=user)
                assert (await theirs.say("hello", key="k")).status == 202  # a key belongs to its owner
            assert len((await served.get("/api/sessions", x_user="ann")).document["sessions"]) == 1
            assert (await served.get(f"{run_path}/rounds", x_user="ann")).status == 404  # an operator's
