"""Which agents there are and where, and what is declared of each, over a real socket."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from agui_bridge import Agent, Bridge, Settings
from agui_bridge.capabilities import capabilities
from agui_bridge.demo import demo_agent
from runtime.testing import ScriptedProvider, says
from tests.serving import Answer, Served, ask, listening, serving
from tests.wire.desk import PICK


def named(name: str, **members: Any) -> Agent:
    return Agent(name, model=ScriptedProvider(says(f"I am {name}")), **members)


def said(answer: Answer) -> str:
    return "".join(event["delta"] for event in answer.events if event["type"] == "TEXT_MESSAGE_CONTENT")


async def test_the_agents_are_listed_with_their_words_and_where_each_is() -> None:
    async with serving({"clerk": named("Clerk", description="Files things."), "a/b c": named("other")}) as served:
        assert (await served.get("/agents")).document == {
            "agents": [
                {
                    "agent_id": "clerk",
                    "agent_name": "Clerk",
                    "description": "Files things.",
                    "run_url": "/agents/clerk",
                    "connect_url": "/agents/clerk/connect",
                    "capabilities_url": "/agents/clerk/capabilities",
                    "state_schema": None,
                },
                {
                    "agent_id": "a/b c",
                    "agent_name": "other",
                    "description": "",
                    "run_url": "/agents/a/b%20c",
                    "connect_url": "/agents/a/b%20c/connect",
                    "capabilities_url": "/agents/a/b%20c/capabilities",
                    "state_schema": None,
                },
            ]
        }


async def check_every_place(served: Served, names: list[str]) -> None:
    """Whatever the list says is there answers."""
    listed = (await served.get("/agents")).document["agents"]
    assert [each["agent_id"] for each in listed] == names
    for number, each in enumerate(listed):
        ran = await served.run(ask("hello", run=f"r{number}", thread=f"t{number}"), path=each["run_url"])
        assert said(ran) == f"I am {each['agent_name']}"
        back = await served.run(ask("", run="back", thread=f"t{number}", messages=[]), path=each["connect_url"])
        assert back.types[-1] == "RUN_FINISHED"
        declared = await served.get(each["capabilities_url"])
        assert declared.document["identity"]["name"] == each["agent_name"]


@pytest.mark.requirement("R-190")
@pytest.mark.parametrize("agent_path", ["/agents/{agent:path}", "/bots/{agent:path}/", "/{agent:path}"])
async def test_what_the_list_says_is_there_is_there_wherever_agents_are(agent_path: str) -> None:
    names = ["one", "team/two", "agents", "capabilities"]
    settings = Settings.model_validate({"drain_s": 0})
    agents = {name: named(name) for name in names}
    bridge = Bridge(agents, store="memory:", settings=settings, agent_path=agent_path)
    async with listening(bridge.app) as url:
        served = Served(bridge, url)
        async with served.http:
            await check_every_place(served, names)


async def test_a_mounted_app_lists_where_its_host_has_it() -> None:
    settings = Settings.model_validate({"drain_s": 0})
    bridge = Bridge([named("one"), named("two/three")], store="memory:", settings=settings)
    host = Starlette(routes=[Mount("/ai", bridge.app)], lifespan=bridge.lifespan)
    async with listening(host) as url:
        served = Served(bridge, url)
        async with served.http:
            listed = (await served.get("/ai/agents")).document["agents"]
            assert [each["run_url"] for each in listed] == ["/ai/agents/one", "/ai/agents/two/three"]
            assert said(await served.run(ask("hello"), path=listed[1]["run_url"])) == "I am two/three"


async def test_the_first_agents_capabilities_stand_at_the_root_too() -> None:
    async with serving([demo_agent(), named("other")], max_rounds=7) as served:
        first = await served.get("/capabilities")
        assert first.status == 200
        assert first.headers["content-type"] == "application/json"
        assert first.document == (await served.get("/agents/demo/capabilities")).document
        performer = served.bridge.supervisor.performers["demo"]
        assert first.document == capabilities(performer.agent, performer.model, served.bridge.settings)
        assert first.document["execution"] == {"maxIterations": 7}
        assert (await served.get("/agents/other/capabilities")).document["identity"]["name"] == "other"


async def test_an_agent_that_is_not_there_has_none() -> None:
    async with serving(named("one")) as served:
        answer = await served.get("/agents/nobody/capabilities")
        assert (answer.status, answer.document["code"]) == (404, "not_found")


async def test_they_are_read_and_nothing_else() -> None:
    async with serving(named("one")) as served:
        for path in ("/agents", "/capabilities", "/agents/one/capabilities"):
            assert (await served.http.head(path)).status_code == 200
            answer = await served.run(ask("hello"), path=path)
            assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.requirement("R-194")
async def test_the_tools_of_a_page_are_never_listed_among_the_agents() -> None:
    async with serving(demo_agent()) as served:
        before = await served.get("/capabilities")
        await served.run(ask("hello", tools=[PICK]))
        assert (await served.get("/capabilities")).document == before.document
        names = [each["name"] for each in before.document["tools"]["items"]]
        assert names == list(demo_agent().toolbox.names)
