"""What is declared of an agent: what holds, what cannot be, and nothing of what is not known."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import AgentCapabilities

from agui_bridge.capabilities import capabilities
from agui_bridge.demo import demo_agent
from agui_bridge.settings import Settings
from agui_check.schema import errors_of
from runtime.agent import Agent
from runtime.budget import Budget
from runtime.canonical import JsonObject
from runtime.dialects.anthropic import Anthropic
from runtime.dialects.openai_chat import OpenAIChat
from runtime.models import Model
from runtime.scripted import ScriptedModel
from runtime.testing import ScriptedProvider
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import Tool, tool


@tool
async def plain(place: str) -> str:
    """Look somewhere."""
    return place


@tool(parallel=True)
async def beside(place: str) -> str:
    """Look somewhere while others look elsewhere."""
    return place


@tool(approval=True)
async def gated() -> str:
    """Do something that needs a yes."""
    return "done"


@tool
async def free(ctx: ToolContext) -> str:
    """Do whatever may be done with a run."""
    return str(ctx.run.run_id)


def of(*tools: Tool | Agent, model: Model | None = None, on_busy: str = "reject", **members: Any) -> JsonObject:
    """What is declared of an agent with these tools."""
    agent = Agent("a", tools=tools, **members)
    return capabilities(agent, model or ScriptedProvider(), Settings.model_validate({"on_busy": on_busy}))


def asker(*tools: Tool | Agent, name: str = "clerk", **members: Any) -> Agent:
    return Agent(name, model=ScriptedProvider(), tools=tools, **members)


AGENTS: dict[str, JsonObject] = {
    "nothing at all": of(),
    "every kind of tool": of(plain, beside, gated, free, asker(description="Files things.")),
    "the demo": capabilities(demo_agent(), ScriptedModel(), Settings.model_validate({})),
    "a value, and steering": of(output_type=int, on_busy="steer", description="Counts."),
}


@pytest.mark.requirement("R-191")
@pytest.mark.parametrize("agent", AGENTS)
def test_the_official_model_and_the_schema_know_all_that_is_declared(agent: str):
    declared = AGENTS[agent]
    assert errors_of("AgentCapabilities", declared) == []
    official = AgentCapabilities.model_validate(declared)
    assert official.model_dump(by_alias=True, exclude_unset=True) == declared
    assert not _unknown_members(official)


def _unknown_members(model: Any) -> list[str]:
    """The official models take any member; which of them they do not know."""
    inner = [value for name, value in model if name not in ("metadata", "custom") and hasattr(value, "model_extra")]
    return [*(model.model_extra or {}), *(name for each in inner for name in _unknown_members(each))]


def test_an_agent_of_nothing_declares_what_every_agent_here_can_do_and_what_it_cannot():
    assert of() == {
        "identity": {"name": "a", "type": "agui-bridge"},
        "transport": {
            "streaming": True,
            "websocket": False,
            "httpBinary": True,
            "pushNotifications": False,
            "resumable": True,
        },
        "tools": {"supported": True, "items": [], "clientProvided": True},
        "output": {"structuredOutput": False},
        "state": {"snapshots": True, "deltas": False, "persistentState": True},
        "multiAgent": {"supported": False, "delegation": False, "handoffs": False},
        "multimodal": {"input": {"file": True}},
        "execution": {"maxIterations": 50},
        "humanInTheLoop": {"approvals": False, "interrupts": False, "approveWithEdits": False},
    }


@pytest.mark.requirement("R-192")
def test_what_a_tool_does_with_its_context_is_not_known_and_not_declared():
    declared = of(free)
    assert "humanInTheLoop" not in declared
    assert declared["multiAgent"] == {"handoffs": False}
    assert declared["state"]["deltas"] is True


def test_a_tool_that_needs_a_yes_is_an_interrupt_that_takes_other_arguments_too():
    assert of(gated)["humanInTheLoop"] == {
        "supported": True,
        "approvals": True,
        "interrupts": True,
        "approveWithEdits": True,
    }


def test_a_policy_that_may_want_a_yes_is_one_too():
    asking = tool(approval=lambda args, ctx: bool(args))(plain.function)
    assert of(asking)["humanInTheLoop"]["approvals"] is True


def test_what_is_asked_below_is_asked_of_the_page_however_deep():
    assert of(asker(asker(gated, name="deeper")))["humanInTheLoop"]["approvals"] is True
    assert of(asker(asker(free, name="deeper"))).get("humanInTheLoop") is None
    assert of(asker(plain))["humanInTheLoop"]["approvals"] is False


def test_tools_of_the_provider_may_want_a_yes_as_far_as_is_known():
    assert "humanInTheLoop" not in of(model_options={"tools": [{"type": "mcp", "require_approval": "always"}]})


def test_agents_that_are_asked_are_named_whichever_way_they_became_tools():
    files, counts = asker(description="Files things."), asker(name="books/2")
    declared = of(files, counts.as_tool(name="count"))["multiAgent"]
    assert declared == {
        "supported": True,
        "delegation": True,
        "handoffs": False,
        "subagents": [{"name": "clerk", "description": "Files things."}, {"name": "books/2"}],
    }


def test_handing_work_on_changes_no_state():
    assert of(asker())["state"]["deltas"] is False


def test_agents_that_ask_each_other_are_read_to_their_end():
    tools: list[Tool] = []
    one = asker(name="one")
    other = Agent("other", model=ScriptedProvider(), tools=tools)
    tools += [one.as_tool(), other.as_tool(name="again"), gated]
    assert of(other)["humanInTheLoop"]["approvals"] is True


def test_calls_run_together_if_a_tool_may():
    assert "parallelCalls" not in of(plain)["tools"]
    assert of(plain, beside)["tools"]["parallelCalls"] is True


def test_reasoning_is_declared_of_models_that_know_it():
    assert "reasoning" not in of()
    assert of(model=ScriptedModel())["reasoning"] == {"supported": True, "streaming": True}


def test_the_smaller_budget_of_rounds_is_the_agents_own():
    assert of(budget=Budget(rounds=3))["execution"] == {"maxIterations": 3}


@pytest.mark.requirement("R-194")
def test_the_tools_are_those_that_the_agents_author_gave_it():
    listed = of(plain, asker(name="books/2"), output_type=int)["tools"]["items"]
    assert [each["name"] for each in listed] == ["plain", "books_2"]
    assert listed[0] == {
        "name": "plain",
        "description": "Look somewhere.",
        "parameters": plain.spec.parameters,
    }


@pytest.mark.requirement("R-192")
def test_media_are_declared_as_far_as_model_and_format_are_known():
    chat, anthropic = ScriptedProvider(), ScriptedProvider()
    chat.dialect, anthropic.dialect = OpenAIChat(), Anthropic()  # pyright: ignore[reportAttributeAccessIssue]
    assert of(model=chat)["multimodal"]["input"] == {"video": False, "file": True}
    assert of(model=anthropic)["multimodal"]["input"] == {"audio": False, "video": False, "file": True}
    known = of(model=anthropic, input_media=["image", "video"])["multimodal"]["input"]
    assert known == {"image": True, "audio": False, "video": False, "pdf": False, "file": True}
