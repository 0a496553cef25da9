"""A page's tool and a tool of ours with one name."""

from __future__ import annotations

import logging

import pytest

from runtime.agent import Agent
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.toolbox import tool
from tests.serving import ask, serving


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return f"the server saw {place}"


async def test_the_servers_tool_wins_and_the_log_says_so(caplog: pytest.LogCaptureFixture):
    model = ScriptedProvider(calls(("look", '{"place": "there"}')), says("fine"))
    theirs = {"name": "look", "description": "the page looks", "parameters": {"type": "object"}}
    with caplog.at_level(logging.WARNING, "agui_bridge.desk"):
        async with serving(Agent("a", model=model, tools=[look])) as served:
            answer = await served.run(ask("go", tools=[theirs]))
    results = [event["content"] for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]
    assert results == ["the server saw there"]
    assert [spec.description for spec in model.dialect.encoded[0]["tools"]] == ["Look somewhere."]
    assert "look has the name of a tool of ours" in caplog.text


async def test_a_page_cannot_take_the_name_of_the_tool_that_gives_the_value(caplog: pytest.LogCaptureFixture):
    model = ScriptedProvider(calls(("final_response", '{"value": 4}')))
    theirs = {"name": "final_response", "description": "the page's", "parameters": {"type": "object"}}
    with caplog.at_level(logging.WARNING, "agui_bridge.desk"):
        async with serving(Agent("a", model=model, output_type=int)) as served:
            answer = await served.run(ask("go", tools=[theirs]))
    assert answer.events[-1]["result"] == 4
    assert [spec.name for spec in model.dialect.encoded[0]["tools"]] == ["final_response"]
    assert "final_response has the name of a tool of ours" in caplog.text
