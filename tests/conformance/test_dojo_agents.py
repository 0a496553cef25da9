"""The Dojo's agents do what its pages expect, on every kind of model and for every version of the client."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from agui_bridge.demo.dojo import agents
from agui_bridge.demo.dojo.travel import EXPERIENCES, FLIGHTS, HOTELS
from tests.aimock import aimock_with
from tests.conformance.dojo import (
    CREW_OUTPUT,
    FIXTURES,
    PLAN,
    RECIPE,
    STEPS,
    Page,
    asked_of,
    calls_of,
    custom_of,
    page_on,
    results_of,
    text_of,
)
from tests.contract.provider_server import KINDS
from tests.official_client import NEWEST, OLDER, OfficialClient
from tests.pictures import inline, png

pytestmark = pytest.mark.needs_node

Open = Callable[..., AbstractAsyncContextManager[Page]]

CLIENTS = dict(zip(KINDS, (NEWEST, *OLDER), strict=True))
"""Each kind of model meets another version of the official client; the Dojo has one of the older ones."""
DONE = "Done! I've completed that for you."


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock_with(FIXTURES, tmp_path_factory.mktemp("aimock")) as address:
        yield address


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def open_page(origin: str, kind: str, official_client: OfficialClient) -> Open:
    """Opens a page on the agent at a path, with tools of its own."""

    @asynccontextmanager
    async def on(path: str, *tools: str) -> AsyncGenerator[Page, None]:
        async with page_on(path, origin, kind, official_client, CLIENTS[kind], tools=tools) as page:
            yield page

    return on


def test_every_feature_is_there_on_the_paths_of_each_integration():
    paths = set(agents)
    flows = {path for path in paths if "/" not in path}
    assert {f"conversational_flows/{path}" for path in flows - {"crew_chat", "error_flow"}} < paths
    for prefix, own in (("agent/", {"subgraphs"}), ("pydantic-ai/", set[str]())):
        below = {path.removeprefix(prefix) for path in paths if path.startswith(prefix)}
        assert below == flows - {"crew_chat", "error_flow", "interrupt"} | own


async def test_a_chat_changes_the_page_each_time_under_another_id(open_page: Open, origin: str) -> None:
    async with open_page("agentic_chat", "change_background") as page:
        assert text_of(await page.run("Hi, I am duaa")).startswith("Hello!")
        assert "Bob" in json.dumps((await asked_of(origin))["messages"][0])
        ids: list[str] = []
        for _ in range(2):
            called = await page.run("Hi change the background color to blue")
            ((name, call_id),) = calls_of(called)
            assert (name, results_of(called), called.types[-1]) == ("change_background", [], "RUN_FINISHED")
            ids.append(call_id)
            assert text_of(await page.run(result=(call_id, {"status": "success"}))) == DONE
        assert len(set(ids)) == 2


async def test_thoughts_stand_before_the_answer(open_page: Open) -> None:
    async with open_page("agentic_chat_reasoning", "change_background") as page:
        verdict = await page.run("What is the best car to buy?", state={"model": "Anthropic"})
    types = verdict.types
    assert types.index("REASONING_MESSAGE_CONTENT") < types.index("REASONING_END") < types.index("TEXT_MESSAGE_START")
    assert text_of(verdict) == "Take the Toyota."


async def test_a_picture_is_looked_at(open_page: Open) -> None:
    async with open_page("agentic_chat_multimodal") as page:
        said = [{"type": "text", "text": "What do you see in this image"}, inline(png(1, 8))]
        assert "I see the image" in text_of(await page.run(said))


@pytest.mark.parametrize("path", ["backend_tool_rendering", "agent/backend_tool_rendering", "agentic_chat"])
async def test_the_weather_is_looked_up_for_each_place_that_is_asked_for(open_page: Open, path: str) -> None:
    async with open_page(path) as page:
        for city in ("Oslo", "Rome"):
            verdict = await page.run(f"Weather in {city}")
            (weather,) = map(json.loads, results_of(verdict))
            assert weather["city"] == city
            assert {"temperature", "humidity", "conditions", "wind_speed", "windSpeed", "feelsLike"} < weather.keys()
            assert text_of(verdict)


async def test_a_plan_is_accepted_on_the_page(open_page: Open) -> None:
    async with open_page("human_in_the_loop", "generate_task_steps") as page:
        planned = await page.run("A plan with one step with eggs")
        ((name, call_id),) = calls_of(planned)
        assert name == "generate_task_steps"
        assert text_of(await page.run(result=(call_id, {"accepted": True, "steps": PLAN[:1]}))) == DONE
        assert text_of(await page.run("Hi")).startswith("Hello!")


async def test_a_page_made_for_langgraph_takes_steps_out_of_a_plan(open_page: Open) -> None:
    async with open_page("agent/human_in_the_loop", "generate_task_steps") as page:
        planned = await page.run("A plan with one step with eggs")
        assert calls_of(planned)[0][0] == "plan_execution_steps"
        (value,) = custom_of(planned, "on_interrupt")
        assert json.loads(value) == {"steps": PLAN}
        assert not planned.pending_interrupts
        answer = "The user selected the following steps: Leave"
        command = {"resume": answer, "interruptEvent": value}
        gone_on = await page.run(forwarded_props={"command": command}, run_id=f"r{page.runs}")
        assert (results_of(gone_on), text_of(gone_on)) == ([answer], DONE)


@pytest.mark.parametrize("path", ["agentic_generative_ui", "agent/agentic_generative_ui"])
async def test_the_steps_of_a_task_are_shown_until_all_are_done(open_page: Open, path: str) -> None:
    async with open_page(path) as page:
        verdict = await page.run("Go to Mars")
        assert results_of(verdict) == ["Steps executed."]
        assert verdict.state["steps"] == [{**step, "status": "completed"} for step in STEPS]
        told = [event for event in verdict.events if event["type"] in ("STATE_SNAPSHOT", "STATE_DELTA")]
        assert len(told) == 1 + len(STEPS)
        assert verdict.events.index(told[-1]) < verdict.types.index("TOOL_CALL_RESULT")
        assert text_of(verdict) == DONE


async def test_a_plan_is_gone_through_step_by_step(open_page: Open) -> None:
    async with open_page("pydantic-ai/agentic_generative_ui") as page:
        planned = await page.run("Go to Mars")
        assert [step["status"] for step in planned.state["steps"]] == ["pending", "pending"]
        packed = await page.run("I have packed")
        assert [step["status"] for step in packed.state["steps"]] == ["completed", "pending"]


async def test_what_was_written_is_confirmed_or_taken_back(open_page: Open, origin: str) -> None:
    async with open_page("predictive_state_updates", "confirm_changes", "write_document") as page:
        written = await page.run("A story of a dragon called Atlantis", state={"document": ""})
        (predicted,) = custom_of(written, "PredictState")
        assert predicted[0] | {"tool": "write_document_local"} == predicted[0]
        assert written.state == {"document": "Atlantis was a dragon."}
        assert [name for name, _ in calls_of(written)] == ["write_document_local", "confirm_changes"]
        assert text_of(await page.run(result=(calls_of(written)[1][1], {"accepted": True}))) == DONE

        changed = await page.run("Change the dragon's name to Lola")
        assert changed.state == {"document": "Lola was a dragon."}
        taken_back = {"document": "Atlantis was a dragon."}
        refused = await page.run(result=(calls_of(changed)[1][1], {"accepted": False}), state=taken_back)
        assert (refused.state, text_of(refused)) == (taken_back, DONE)
        assert "Atlantis" in (await asked_of(origin))["messages"][0]["content"]
        assert len({id_ for run in (written, changed) for _, id_ in calls_of(run)}) == 4


@pytest.mark.parametrize("path", ["shared_state", "pydantic-ai/shared_state"])
async def test_agent_and_page_write_one_recipe(open_page: Open, path: str) -> None:
    own = {**RECIPE, "title": "Mine", "ingredients": [{"icon": "🥔", "name": "Potatoes", "amount": "12"}]}
    async with open_page(path) as page:
        assert text_of(await page.run("Give me all the ingredients", state={"recipe": own})) == "There are potatoes."
        written = await page.run("Please, a pasta recipe")
        assert written.state["recipe"]["ingredients"] == RECIPE["ingredients"]
        assert written.state["recipe"]["title"] == ("Pasta" if path == "shared_state" else "Mine")


async def test_a_recipe_is_written_where_the_page_has_none(open_page: Open) -> None:
    async with open_page("agent/shared_state") as page:
        written = await page.run("Please, a pasta recipe")
    assert written.state["recipe"]["title"] == "Pasta"


async def test_a_haiku_is_drawn_by_the_page_which_need_not_answer(open_page: Open) -> None:
    async with open_page("tool_based_generative_ui", "generate_haiku") as page:
        verdict = await page.run('A haiku for "I will always win"')
        assert ([name for name, _ in calls_of(verdict)], text_of(verdict)) == (["generate_haiku"], "")
        assert text_of(await page.run("Hi"))


@pytest.mark.parametrize(
    ("payload", "output"),
    [
        ({"chosen_time": "2030-01-02T10:00:00Z", "chosen_label": "Wed 10:00"}, "Booked 'Pricing' for Wed 10:00."),
        ({"cancelled": True}, "The user does not want to book 'Pricing' now."),
    ],
)
async def test_a_time_is_picked_in_the_middle(open_page: Open, kind: str, payload: Any, output: str) -> None:
    async with open_page("interrupt") as page:
        page.name += output
        asked = await page.run("Book an intro call")
        outcome = asked.events[-1]["outcome"]
        (open_,) = outcome["interrupts"]
        assert open_["metadata"]["crewai"]["output"] == {"topic": "Pricing", "attendee": "sales"}
        resume = [{"interruptId": open_["id"], "status": "resolved", "payload": payload}]
        gone_on = await page.run(resume=resume, run_id=f"r{page.runs}")
        assert (results_of(gone_on), text_of(gone_on)) == ([output], DONE)


async def test_a_crew_works_and_goes_home(open_page: Open) -> None:
    async with open_page("crew_chat") as page:
        worked = await page.run("Ask the crew to plan a team offsite")
        assert results_of(worked)[-1] == CREW_OUTPUT
        assert text_of(worked).endswith("The crew is done.")
        gone = await page.run("goodbye crew")
        assert (results_of(gone), text_of(gone)) == (["Crew exited"], DONE)


async def test_an_error_is_told_with_its_code_and_the_next_run_begins(
    origin: str, official_client: OfficialClient
) -> None:
    async with page_on("error_flow", origin, KINDS[0], official_client, OLDER[0]) as page:
        for _ in range(2):
            verdict = await page.run("trigger error")
            assert verdict.types == ["RUN_STARTED", "RUN_ERROR"]
            assert verdict.events[-1]["code"] == "AGUI_CREWAI_FLOW_ERROR_RUNTIMEERROR"
            assert "CrewAI flow failed" in verdict.events[-1]["message"]


@pytest.mark.parametrize("version", [NEWEST, *OLDER])
async def test_specialists_plan_a_trip_and_ask_for_each_choice(
    origin: str, official_client: OfficialClient, version: str
) -> None:
    async with page_on("agent/subgraphs", origin, "scripted", official_client, version) as page:
        page.name += version

        async def choose(value: str, option: Any) -> Any:
            command = {"resume": json.dumps(option), "interruptEvent": json.loads(value)}
            return await page.run(forwarded_props={"command": command}, run_id=f"r{page.runs}")

        begun = await page.run("Help me plan a trip to San Francisco")
        assert (begun.state["flights"], begun.state["active_agent"]) == ([], "flights")
        (flights,) = custom_of(begun, "on_interrupt")
        assert json.loads(flights)["options"] == FLIGHTS

        flown = await choose(flights, FLIGHTS[1])
        assert (flown.state["itinerary"], flown.state["hotels"]) == ({"flight": FLIGHTS[1]}, [])
        (hotels,) = custom_of(flown, "on_interrupt")
        assert json.loads(hotels)["recommendation"] == HOTELS[2]

        housed = await choose(hotels, HOTELS[1])
        assert housed.state["itinerary"] == {"flight": FLIGHTS[1], "hotel": HOTELS[1]}
        assert (housed.state["experiences"], housed.state["active_agent"]) == (EXPERIENCES, "experiences")
        assert custom_of(housed, "on_interrupt") == []
