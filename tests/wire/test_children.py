"""Child runs over a real socket: the demo's research, trees, cursors, older clients, and a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agui_bridge import ANONYMOUS, Agent, ToolContext, tool
from agui_bridge.demo import demo_agent
from runtime.testing import ScriptedProvider, calls, says
from tests.official_client import OfficialClient
from tests.pure.agui_rules import Rules
from tests.pure.stock_page import Page
from tests.serving import Answer, JsonObject, Served, ask, events_in, serving
from tests.wire.test_trees_of_chance import by_speaker
from tests.wire.trees import grown


async def researched(served: Served, words: str = "research black tea", **more: Any) -> Answer:
    answer = await served.run(ask(words, protocolVersion="1.0", **more))
    assert answer.status == 200
    rules = Rules()
    rules.check(answer.events)
    assert rules.ended
    return answer


def kinds(events: list[JsonObject]) -> list[str]:
    return [event["type"] for event in events]


def run_id_of(answer: Answer) -> str:
    return answer.headers["x-run-id"]


async def test_the_demo_has_a_topic_researched_by_another_agent() -> None:
    async with serving(demo_agent()) as served:
        answer = await researched(served)
        (begun,) = [event for event in answer.events if event["type"] == "SUBAGENT_STARTED"]
        assert (begun["name"], begun["description"]) == ("researcher", "Finds things out.")
        child = begun["subagentRunId"]
        said = [
            e["delta"] for e in answer.events if e["type"] == "TEXT_MESSAGE_CONTENT" and e.get("subagentRunId") == child
        ]
        assert "Looking up black tea" in "".join(said)
        (result,) = [e for e in answer.events if e["type"] == "TOOL_CALL_RESULT" and "subagentRunId" not in e]
        assert result["content"] == "The library knows of black tea, and says that it is well worth reading about."


async def test_the_tree_is_shown_and_is_the_same_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with serving(demo_agent(), store=store) as served:
        answer = await researched(served)
        run_id, told = run_id_of(answer), kinds(answer.events)
        before = (await served.get(f"/api/agent-runs/{run_id}/tree")).document
    (child,) = before["children"]
    assert (child["agent_name"], child["status"], child["parent_run_id"]) == ("researcher", "succeeded", run_id)
    async with serving(demo_agent(), store=store) as served:
        assert (await served.get(f"/api/agent-runs/{run_id}/tree")).document == before
        record = (await served.get(f"/api/agent-runs/{child['run_id']}")).document
        assert (record["session_id"], record["root_run_id"]) == (None, run_id)
        replayed = await researched(served)
        assert kinds(replayed.events) == told


async def test_the_roots_stream_counts_the_tree_and_a_childs_its_own() -> None:
    async with serving(demo_agent()) as served:
        answer = await researched(served)
        run_id = run_id_of(answer)
        whole = await served.get(f"/api/agent-runs/{run_id}/events?format=agui")
        events = events_in(whole.body)
        ids = [int(line[4:]) for line in whole.body.decode().split("\n") if line.startswith("id: ")]
        assert ids == sorted(set(ids))
        (child,) = (await served.get(f"/api/agent-runs/{run_id}/tree")).document["children"]
        own = await served.get(f"/api/agent-runs/{child['run_id']}/events?format=agui")
        own_ids = [int(line[4:]) for line in own.body.decode().split("\n") if line.startswith("id: ")]
        assert own_ids[-1] == child["last_event_seq"]
        assert "SUBAGENT_STARTED" not in kinds(events_in(own.body))
        for cut in (1, len(ids) // 2, len(ids) - 2):
            rest = await served.get(f"/api/agent-runs/{run_id}/events?format=agui&after_seq={ids[cut]}")
            assert events_in(whole.body)[-len(events_in(rest.body)) :] == events_in(rest.body)
            assert f"id: {ids[cut + 1]}\n" in rest.body.decode()
            assert f"id: {ids[cut]}\n" not in rest.body.decode()
        assert (await served.get(f"/api/agent-runs/{run_id}/events?format=agui&after_seq={ids[-1]}")).status == 204
        beyond = await served.get(f"/api/agent-runs/{run_id}/events?format=agui&after_seq={ids[-1] + 1}")
        assert (beyond.status, beyond.document["details"]["last_event_seq"]) == (422, ids[-1])
        assert kinds(events)[-1] == "RUN_FINISHED"


async def test_a_child_is_cancelled_by_its_own_id_and_its_parent_goes_on() -> None:
    async with serving(demo_agent()) as served:
        asked = asyncio.create_task(researched(served, "research /tokens 400 20"))
        child: JsonObject | None = None
        async with asyncio.timeout(10):
            while child is None:
                runs = (await served.get("/api/agent-runs?limit=9")).document["runs"]
                child = next((run for run in runs if run["parent_run_id"] and run["status"] == "running"), None)
        await served.run(b"", path=f"/api/agent-runs/{child['run_id']}/cancel?wait=5")
        answer = await asked
        (error,) = [event for event in answer.events if event["type"] == "SUBAGENT_ERROR"]
        assert error["code"] == "run_cancelled"
        assert answer.events[-1]["outcome"] == {"type": "success"}


async def test_clients_that_say_no_version_are_told_of_no_subagents() -> None:
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("research black tea"))
        assert not any(kind.startswith("SUBAGENT") for kind in kinds(answer.events))
        assert "subagentRunId" not in answer.body.decode()
        said = "".join(event["delta"] for event in answer.events if event["type"] == "TEXT_MESSAGE_CONTENT")
        assert "Looking up black tea" in said
        Rules().check(answer.events)


async def test_the_transcript_has_what_children_said_and_no_model_sees_it() -> None:
    async with serving(demo_agent()) as served:
        await researched(served)
        messages = (await served.get("/api/sessions/t1/messages")).document["messages"]
        of_child = [message for message in messages if message["agent_name"] == "researcher"]
        assert of_child
        assert not any(message["model_visible"] for message in of_child)
        assert {message["run_id"] for message in of_child}.isdisjoint({messages[0]["run_id"]})


@pytest.mark.parametrize("seed", range(0, 40, 4))
async def test_the_official_client_builds_of_any_tree_what_the_server_holds(
    seed: int, official_client: OfficialClient
) -> None:
    tree = await grown(seed)
    bodies = [tree.body(tree.projected())]
    bodies += [tree.body(tree.coming_back(at)) for at in range(4, len(tree.records), 9)]
    for verdict in await asyncio.gather(*map(official_client.replay, bodies)):
        verdict.assert_clean()
        assert by_speaker(verdict.messages) == by_speaker(tree.shown())
        assert verdict.state == tree.thread.state


@pytest.mark.requirement("R-148")
async def test_the_state_of_a_child_is_its_own_and_changes_nothing_on_the_page() -> None:
    @tool
    async def note(ctx: ToolContext, text: str) -> str:
        """Note something."""
        ctx.state["note"] = text
        return "noted"

    helper = Agent("helper", model=ScriptedProvider(calls(("note", '{"text": "below"}')), says("ok")), tools=[note])
    model = ScriptedProvider(
        calls(("note", '{"text": "above"}')), calls(("helper", '{"prompt": "note it"}')), says("done")
    )
    page = Page(state={"mine": 1})
    async with serving(Agent("a", model=model, tools=[note, helper])) as served:
        answer = await served.run(ask("Go", state=page.state, protocolVersion="1.0"))
        page.apply(answer.events)
        told = [event for event in answer.events if event["type"].startswith("STATE_")]
        assert told
        assert all("subagentRunId" not in event for event in told)
        _, thread = await served.bridge.supervisor.open(ANONYMOUS, "t1")
        assert page.state == thread.state == {"mine": 1, "note": "above"}
