"""The shared state over a socket: what a page sends, what tools make of it, and what a page may expect of a call."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from runtime.agent import Agent
from runtime.errors import ConfigurationError
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.serving import JsonObject, ask, serving


class Todo(BaseModel):
    """Something to do."""

    text: str
    done: bool = False


class Board(BaseModel):
    """A list of things to do."""

    todos: list[Todo] = Field(default_factory=list[Todo])
    owner: str = "nobody"


@tool
async def finish(ctx: ToolContext, text: str) -> str:
    """Finish something."""
    board: Board = ctx.state
    for todo in board.todos:
        todo.done = todo.done or todo.text == text
    return f"{sum(todo.done for todo in board.todos)} done"


@tool
def take(ctx: ToolContext, name: str) -> str:
    """Take the board over; from a thread."""
    ctx.state.owner = name
    return "taken"


@tool
async def replace(ctx: ToolContext) -> str:
    """Begin anew."""
    ctx.state = Board(owner="new")
    return "new"


@tool
async def misfit(ctx: ToolContext) -> str:
    """Make of the state what it cannot be."""
    ctx.state = object()
    return "never"


def agent(*rounds: Any) -> Agent:
    return Agent("a", model=ScriptedProvider(*rounds), tools=[finish, take, replace, misfit], state_type=Board)


BOARD: JsonObject = {"todos": [{"text": "tea", "done": False}, {"text": "jam", "done": False}], "owner": "ann"}


@pytest.mark.requirement("R-049")
async def test_tools_change_a_state_of_a_type_and_the_page_is_told_what_changed():
    async with serving(
        agent(calls(("finish", '{"text": "jam"}'), ("take", '{"name": "bob"}')), says("Done"))
    ) as served:
        answer = await served.run(ask("Go", state=BOARD, protocolVersion="1.0"))
    deltas = [event["delta"] for event in answer.events if event["type"] == "STATE_DELTA"]
    assert deltas == [
        [{"op": "replace", "path": "/todos/1/done", "value": True}],
        [{"op": "replace", "path": "/owner", "value": "bob"}],
    ]
    assert "STATE_SNAPSHOT" not in answer.types


async def test_a_tool_may_put_another_value_of_the_type_in_its_place():
    async with serving(agent(calls(("replace", "{}")), says("Done"))) as served:
        answer = await served.run(ask("Go", state=BOARD, protocolVersion="1.0"))
        thread = (await served.run(ask("", run="c", messages=[]), "/connect")).events
    assert [e["snapshot"] for e in thread if e["type"] == "STATE_SNAPSHOT"] == [{"todos": [], "owner": "new"}]
    assert answer.types[-1] == "RUN_FINISHED"


async def test_what_is_no_value_of_the_type_fails_the_call_and_changes_nothing():
    async with serving(agent(calls(("misfit", "{}")), says("Done"))) as served:
        answer = await served.run(ask("Go", state=BOARD, protocolVersion="1.0"))
    [result] = [event["content"] for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]
    assert "no JSON form" in result or "does not fit" in result
    assert "STATE_DELTA" not in answer.types


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"todos": "none"}, "/state/todos"),
        ({"todos": [{"text": "tea"}, {"done": True}]}, "/state/todos/1/text"),
        ({"owner": 7}, "/state/owner"),
    ],
)
async def test_a_state_that_does_not_fit_is_refused_with_its_path_and_nothing_is_recorded(state: Any, path: str):
    async with serving(agent(says("Hello"))) as served:
        refused = await served.run(ask("Go", state=state))
        assert (refused.status, refused.document["code"]) == (422, "state_invalid")
        assert refused.document["details"]["path"] == path
        assert (await served.get("/api/sessions")).document["sessions"] == []
        assert (await served.run(ask("Go", state={}))).types[-1] == "RUN_FINISHED"


async def test_the_schema_of_the_state_is_served_with_the_agent():
    async with serving(agent()) as served:
        [shown] = (await served.get("/agents")).document["agents"]
    assert shown["state_schema"]["properties"].keys() == {"todos", "owner"}


@pytest.mark.parametrize("type_", [int, list[str], object()])
def test_a_type_that_no_state_can_have_is_refused_when_the_agent_is_served(type_: Any):
    with pytest.raises(ConfigurationError, match="state type"):
        Agent("a", state_type=type_).shared_state  # noqa: B018


# --- what a call will make of it ----------------------------------------------------------------------------------


@tool(predict_state={"document": "text"})
async def write(ctx: ToolContext, text: str, title: str = "") -> str:
    """Write the document."""
    ctx.state["document"] = text
    return "written"


async def test_a_page_is_told_what_a_call_will_make_of_the_state_before_the_call_begins():
    model = ScriptedProvider(calls(("write", '{"text": "Once upon a time"}'), text="Writing."), says("Done"))
    async with serving(Agent("a", model=model, tools=[write])) as served:
        answer = await served.run(ask("Write", state={"notes": "n" * 100}, protocolVersion="1.0"))
    told = next(event for event in answer.events if event.get("name") == "PredictState")
    assert told["value"] == [{"state_key": "document", "tool": "write", "tool_argument": "text"}]
    types = answer.types
    assert answer.events.index(told) < types.index("TOOL_CALL_START") < types.index("STATE_DELTA")
    [delta] = [event["delta"] for event in answer.events if event["type"] == "STATE_DELTA"]
    assert delta == [{"op": "add", "path": "/document", "value": "Once upon a time"}]


def test_a_prediction_of_an_argument_that_is_none_is_refused():
    with pytest.raises(ConfigurationError, match="nothing"):
        tool(predict_state={"document": "nothing"})(write.function)
