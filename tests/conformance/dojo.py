"""The Dojo's pages as these tests play them, and what their model answers.

The model is aimock. Its fixtures tell agents apart as the Dojo's do: by words of the user, by tools that are offered,
by words of the instructions.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from agui_bridge.demo.dojo import agents, documents, plans
from runtime.mock_provider import environ_of
from tests.official_client import OfficialClient, Verdict
from tests.serving import serving

JsonObject = dict[str, Any]

CREW_OUTPUT = "The crew planned it: a date, a place, and who comes."
STEPS = [{"description": "Packing", "status": "pending"}, {"description": "Leaving", "status": "pending"}]
PLAN = [{"description": "Pack", "status": "enabled"}, {"description": "Leave", "status": "enabled"}]
RECIPE = {
    "title": "Pasta",
    "skill_level": "Intermediate",
    "cooking_time": "45 min",
    "special_preferences": [],
    "ingredients": [{"icon": "🍝", "name": "Pasta", "amount": "400g"}],
    "instructions": ["Boil it"],
}


def _says(words: str, response: JsonObject, **match: Any) -> JsonObject:
    return {"match": {"userMessage": words, "hasToolResult": False, **match}, "response": response}


def _calls(name: str, **arguments: Any) -> JsonObject:
    """A call whose id is the same each time, as it is in the Dojo's fixtures."""
    return {"toolCalls": [{"name": name, "arguments": json.dumps(arguments), "id": f"call_{name}_1"}]}


_RECIPE_FLAT = {name: value for name, value in RECIPE.items() if name != "title"}
FIXTURES: list[JsonObject] = [
    {"match": {"toolResultContains": CREW_OUTPUT}, "response": {"content": "The crew is done."}},
    {"match": {"hasToolResult": True}, "response": {"content": "Done! I've completed that for you."}},
    {
        "match": {"systemMessage": "Your personal goal is"},
        "response": {"content": f"Thought: I know it.\nFinal Answer: {CREW_OUTPUT}"},
    },
    _says("background color", _calls("change_background", background="blue")),
    _says("Weather in Oslo", _calls("get_weather", location="Oslo")),
    _says("Weather in Rome", _calls("get_weather", location="Rome")),
    _says("best car", {"reasoning": "Reliable, cheap, fun.", "content": "Take the Toyota."}),
    _says("see in this image", {"content": "I see the image that you gave me."}),
    _says("one step with eggs", _calls("plan_execution_steps", steps=PLAN), toolName="plan_execution_steps"),
    _says("one step with eggs", _calls("generate_task_steps", steps=PLAN), toolName="generate_task_steps"),
    _says(
        "Go to Mars",
        _calls("generate_task_steps_generative_ui", steps=STEPS),
        toolName="generate_task_steps_generative_ui",
    ),
    _says("Go to Mars", _calls("generate_task_steps", steps=STEPS), toolName="generate_task_steps"),
    _says("Go to Mars", _calls("create_plan", steps=["Packing", "Leaving"]), toolName="create_plan"),
    _says("I have packed", _calls("update_plan_step", index=0, status="completed"), toolName="update_plan_step"),
    _says("dragon called Atlantis", _calls("write_document_local", document="Atlantis was a dragon.")),
    _says("name to Lola", _calls("write_document_local", document="Lola was a dragon.")),
    _says("pasta recipe", _calls("generate_recipe", recipe=RECIPE), toolName="generate_recipe"),
    _says("pasta recipe", _calls("display_recipe", **_RECIPE_FLAT), toolName="display_recipe"),
    _says("ingredients", {"content": "There are potatoes."}, systemMessage="Potatoes"),
    _says(
        "intro call",
        _calls("schedule_meeting", topic="Pricing", attendee="sales"),
        toolName="schedule_meeting",
    ),
    _says("I will always win", _calls("generate_haiku", japanese=["勝"], english=["Win"])),
    _says("plan a team offsite", _calls("CrewChatCrew", user_message="Plan an offsite"), toolName="CrewChatCrew"),
    _says("goodbye crew", _calls("crew_exit"), toolName="crew_exit"),
    _says("Hi", {"content": "Hello! How can I assist you today?"}),
]


@dataclass
class Page:
    """A page of the Dojo on one agent, as the official client sends and takes it. `name` is told apart from others."""

    client: OfficialClient
    url: str
    name: str
    version: str
    tools: list[JsonObject] = field(default_factory=list[JsonObject])
    context: list[JsonObject] = field(default_factory=list[JsonObject])
    runs: int = 0

    async def run(self, said: Any = None, **more: Any) -> Verdict:
        """One POST: with what the user says, with an answer to a call (`result`), or with neither."""
        self.runs += 1
        messages: list[JsonObject] = []
        if said is not None:
            messages = [{"id": f"u{self.runs}", "role": "user", "content": said}]
        if "result" in more:
            call_id, value = more.pop("result")
            content = json.dumps(value)
            messages = [{"id": f"t{self.runs}", "role": "tool", "toolCallId": call_id, "content": content}]
        verdict = await self.client.run(
            self.url,
            agent=self.name,
            thread_id=self.name,
            run_id=more.pop("run_id", f"r{self.runs}"),
            add_messages=messages,
            tools=self.tools,
            context=self.context,
            client=self.version,
            **more,
        )
        verdict.assert_clean()
        return verdict


@asynccontextmanager
async def page_on(
    path: str,
    origin: str,
    kind: str,
    client: OfficialClient,
    version: str,
    *,
    tools: tuple[str, ...] = (),
) -> AsyncGenerator[Page, None]:
    """A page on the Dojo's agent at this path, whose model is of this kind, before the provider at `origin`."""
    offered = [{"name": name, "description": "", "parameters": {"type": "object"}} for name in tools]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ_of(origin).items():
            patch.setenv(name, value)
        patch.setattr(plans, "WORK_S", 0)
        patch.setattr(documents, "DRAWING_S", 0)
        async with serving({path: agents[path]}, model=f"{kind}:m-1") as served:
            context = [{"description": "Name of the user", "value": "Bob"}]
            name = f"dojo {path} {kind}"
            yield Page(client, f"{served.url}/agents/{path}", name, version, offered, context)


async def asked_of(origin: str) -> JsonObject:
    """The last request that the model was sent, as aimock read it."""
    async with httpx2.AsyncClient() as http:
        journal = (await http.get(f"{origin}/v1/_requests")).json()
    return journal[-1]["body"]


def text_of(verdict: Verdict) -> str:
    """What the agent said in this run."""
    return "".join(event["delta"] for event in verdict.events if event["type"] == "TEXT_MESSAGE_CONTENT")


def calls_of(verdict: Verdict) -> list[tuple[str, str]]:
    """Names and ids of the calls of this run."""
    started = [event for event in verdict.events if event["type"] == "TOOL_CALL_START"]
    return [(event["toolCallName"], event["toolCallId"]) for event in started]


def results_of(verdict: Verdict) -> list[str]:
    """The outputs that this run told, as text."""
    return [event["content"] for event in verdict.events if event["type"] == "TOOL_CALL_RESULT"]


def custom_of(verdict: Verdict, name: str) -> list[Any]:
    """The values of this run's CUSTOM events of one name."""
    return [event["value"] for event in verdict.events if event["type"] == "CUSTOM" and event["name"] == name]
