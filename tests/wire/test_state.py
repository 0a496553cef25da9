"""The shared state over a socket: what a page sends, what tools make of it, and what a page may expect of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from runtime.agent import Agent
from runtime.errors import ConfigurationError
from runtime.samples import Completed, ToolCallDelta
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import ToolError, tool
from tests.serving import Answer, JsonObject, ask, serving


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


@tool
async def spoil(ctx: ToolContext) -> str:
    """Change the state into what it could not have been made of."""
    ctx.state.todos[0].done = "perhaps"
    return "never"


@tool
async def look(ctx: ToolContext) -> str:
    """Only look."""
    board: Board = ctx.state
    return f"{len(board.todos)} of {board.owner}"


TOOLS = [finish, take, replace, misfit, spoil, look]


def agent(*rounds: Any) -> Agent:
    return Agent("a", model=ScriptedProvider(*rounds), tools=TOOLS, state_type=Board)


def told(answer: Answer) -> list[Any]:
    """What a page was told of the state."""
    return [event.get("delta") or event.get("snapshot") for event in answer.events if "STATE" in event["type"]]


def results(answer: Answer) -> list[str]:
    """What the model was told."""
    return [event["content"] for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]


BOARD: JsonObject = {"todos": [{"text": "tea", "done": False}, {"text": "jam", "done": False}], "owner": "ann"}


@pytest.mark.requirement("R-049")
async def test_tools_change_a_state_of_a_type_and_the_page_is_told_what_changed():
    async with serving(
        agent(calls(("finish", '{"text": "jam"}'), ("take", '{"name": "bob"}')), says("Done"))
    ) as served:
        answer = await served.run(ask("Go", state=BOARD, protocolVersion="1.0"))
    assert told(answer) == [
        [{"op": "replace", "path": "/todos/1/done", "value": True}],
        [{"op": "replace", "path": "/owner", "value": "bob"}],
    ]


async def test_a_tool_that_only_looks_at_a_state_of_a_type_changes_nothing():
    async with serving(agent(calls(("look", "{}")), says("Done"))) as served:
        answer = await served.run(ask("Go", state={"todos": [{"text": "tea"}], "mine": 1}, protocolVersion="1.0"))
    assert (results(answer), told(answer)) == (["1 of nobody"], [])


async def test_what_the_type_does_not_know_is_the_pages_and_stays():
    state = {"todos": [{"text": "tea", "colour": "red"}, {"text": "jam"}], "scroll": 7}
    async with serving(agent(calls(("finish", '{"text": "tea"}'), ("replace", "{}")), says("Done"))) as served:
        answer = await served.run(ask("Go", state=state, protocolVersion="1.0"))
    assert told(answer) == [
        [{"op": "add", "path": "/todos/0/done", "value": True}],
        {"todos": [], "scroll": 7, "owner": "new"},
    ]


async def test_a_tool_may_put_another_value_of_the_type_in_its_place():
    async with serving(agent(calls(("replace", "{}")), says("Done"))) as served:
        answer = await served.run(ask("Go", state=BOARD, protocolVersion="1.0"))
        thread = (await served.run(ask("", run="c", messages=[]), "/connect")).events
    assert [e["snapshot"] for e in thread if e["type"] == "STATE_SNAPSHOT"] == [{"todos": [], "owner": "new"}]
    assert answer.types[-1] == "RUN_FINISHED"


async def test_what_is_no_value_of_the_type_fails_the_call_and_changes_nothing():
    async with serving(agent(calls(("misfit", "{}")), says("Done"))) as served:
        answer = await served.run(ask("Go", state=BOARD, protocolVersion="1.0"))
    assert ["no JSON form" in result for result in results(answer)] == [True]
    assert told(answer) == []


async def test_a_value_that_was_changed_into_a_misfit_fails_the_call_and_changes_nothing():
    async with serving(agent(calls(("spoil", "{}"), ("look", "{}")), says("Done"))) as served:
        answer = await served.run(ask("Go", state=BOARD, protocolVersion="1.0"))
    [spoiled, looked] = results(answer)
    assert spoiled.startswith("The state does not fit Board: todos.0.done")
    assert (looked, told(answer)) == ("2 of ann", [])


async def test_a_state_that_does_not_fit_any_more_fails_who_reads_it_and_may_be_replaced():
    model = ScriptedProvider(says("Hello"), calls(("look", "{}"), ("replace", "{}"), ("look", "{}")), says("Done"))
    untyped = Agent("before", model=model, tools=TOOLS)
    typed = Agent("now", model=model, tools=TOOLS, state_type=Board)
    async with serving([untyped, typed]) as served:
        given = {"owner": 7}
        await served.run(ask("Go", state=given, protocolVersion="1.0"), "/agents/before")
        again = ask("On", run="r2", message="u2", state=given, protocolVersion="1.0")
        answer = await served.run(again, "/agents/now")
    assert [result.partition(":")[0] for result in results(answer)] == [
        "The state does not fit Board",
        "new",
        "0 of new",
    ]


class Notes(TypedDict):
    """Notes as a plain dict of a type."""

    notes: list[str]


@dataclass
class Counter:
    """A dataclass."""

    n: int = 0


@pytest.mark.parametrize(
    ("type_", "state", "act", "delta"),
    [
        (Notes, {"notes": ["a"]}, lambda s: s["notes"].append("b"), {"op": "add", "path": "/notes/1", "value": "b"}),
        (Counter, {"n": 1}, lambda s: setattr(s, "n", 2), {"op": "replace", "path": "/n", "value": 2}),
    ],
)
async def test_a_typed_dict_and_a_dataclass_are_types_of_states(type_: Any, state: Any, act: Any, delta: Any):
    def change(ctx: ToolContext) -> str:
        act(ctx.state)
        return "changed"

    state["more"] = "m" * 100
    model = ScriptedProvider(calls(("change", "{}")), says("Done"))
    async with serving(Agent("a", model=model, tools=[change], state_type=type_)) as served:
        answer = await served.run(ask("Go", state=state, protocolVersion="1.0"))
    assert told(answer) == [[delta]]


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"todos": "none"}, "/state/todos"),
        ({"todos": [{"text": "tea"}, {"done": True}]}, "/state/todos/1/text"),
        ({"owner": 7}, "/state/owner"),
        ([1], "/state"),
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


# --- what a call tells of it before it is done ----------------------------------------------------------------------


@tool(parallel=True)
async def walk(ctx: ToolContext, name: str, ending: str = "", pace: int = 1) -> str:
    """Go two steps."""
    ctx.state[name] = {"steps": pace}
    ctx.publish_state()
    ctx.publish_state()
    ctx.state[name]["steps"] = 2 * pace
    if ending == "fall":
        raise ToolError("I fell.")
    return "there"


@tool
def walk_in_a_thread(ctx: ToolContext, name: str) -> str:
    """Go two steps, without an event loop."""
    ctx.state[name] = {"steps": 1}
    ctx.publish_state()
    ctx.state[name]["steps"] = 2
    return "there"


@tool
async def walk_and_ask(ctx: ToolContext, name: str) -> str:
    """Go a step, ask whether to go on, and go another one."""
    ctx.state[name] = ctx.state.get(name, 0) + 1
    ctx.publish_state()
    ctx.state[name] += 100
    await ctx.interrupt("confirmation", "On?")
    return "there"


FIRST, SECOND = (
    [{"op": "add", "path": "/ann", "value": {"steps": 1}}],
    [{"op": "replace", "path": "/ann/steps", "value": 2}],
)
NOTES: JsonObject = {"notes": "n" * 100}


async def walked(name: str, arguments: str, *more: tuple[str, str]) -> Answer:
    """What a page is told of calls that publish."""
    model = ScriptedProvider(calls((name, arguments), *more), says("Done"))
    async with serving(Agent("a", model=model, tools=[walk, walk_in_a_thread, walk_and_ask])) as served:
        return await served.run(ask("Walk", state=NOTES, protocolVersion="1.0"))


@pytest.mark.parametrize("name", ["walk", "walk_in_a_thread"])
async def test_a_page_is_told_what_a_call_publishes_before_it_is_done(name: str):
    answer = await walked(name, '{"name": "ann"}')
    assert told(answer) == [FIRST, SECOND]
    assert answer.types.index("STATE_DELTA") < answer.types.index("TOOL_CALL_RESULT")


async def test_what_was_published_stays_when_the_call_fails():
    assert told(await walked("walk", '{"name": "ann", "ending": "fall"}')) == [FIRST]


async def test_what_was_published_stays_when_the_call_asks_and_is_there_when_it_is_called_again():
    model = ScriptedProvider(calls(("walk_and_ask", '{"name": "ann"}')), says("Done"))
    async with serving(Agent("a", model=model, tools=[walk_and_ask])) as served:
        asked = await served.run(ask("Walk", state=NOTES, protocolVersion="1.0"))
        assert told(asked)[0] == [{"op": "add", "path": "/ann", "value": 1}]
        (open_,) = asked.events[-1]["outcome"]["interrupts"]
        resume = [{"interruptId": open_["id"], "status": "resolved", "payload": True}]
        state = {**NOTES, "ann": 1}
        again = await served.run(ask("Walk", run="r2", state=state, resume=resume, protocolVersion="1.0"))
        assert [delta[0]["value"] for delta in told(again)] == [2, 102]


async def test_of_calls_side_by_side_that_publish_different_things_of_one_part_the_later_fails():
    answer = await walked("walk", '{"name": "ann"}', ("walk", '{"name": "ann", "pace": 5}'))
    outputs = [event["content"] for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]
    assert outputs == ["there", "What this call made of the shared state does not fit into it; the state is as it was."]
    assert told(answer) == [FIRST, SECOND]


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
    predicted = next(event for event in answer.events if event.get("name") == "PredictState")
    assert predicted["value"] == [{"state_key": "document", "tool": "write", "tool_argument": "text"}]
    types = answer.types
    assert answer.events.index(predicted) < types.index("TOOL_CALL_START") < types.index("STATE_DELTA")
    assert told(answer) == [[{"op": "add", "path": "/document", "value": "Once upon a time"}]]


@tool(predict_state={"document": "text"})
async def tear(ctx: ToolContext, text: str) -> str:
    """Write the document, and tear it up."""
    ctx.state["document"] = text
    raise ToolError("I tore it up.")


@tool(predict_state={"document": "text"})
async def add(ctx: ToolContext, text: str) -> str:
    """Change something within the document."""
    ctx.state["document"]["more"] = text
    return "added"


@tool(predict_state={"document": "text"}, approval=True)
async def propose(ctx: ToolContext, text: str) -> str:
    """Write the document, if that is wanted."""
    ctx.state["document"] = text
    return "written"


DOCUMENT: JsonObject = {"document": {"title": "The hare"}, "notes": "n" * 100}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tear", DOCUMENT),
        ("add", {**DOCUMENT, "document": {"title": "The hare", "more": "Once"}}),
        ("propose", DOCUMENT),
    ],
)
async def test_what_a_call_did_not_make_of_the_state_as_predicted_is_taken_back(name: str, expected: JsonObject):
    model = ScriptedProvider(calls((name, '{"text": "Once"}')), says("Done"))
    async with serving(Agent("a", model=model, tools=[tear, add, propose])) as served:
        answer = await served.run(ask("Write", state=DOCUMENT, protocolVersion="1.0"))
    assert told(answer)[-1] == expected
    assert answer.types.count("STATE_SNAPSHOT") == 1


async def test_the_prediction_of_a_call_that_was_cut_is_taken_back_before_the_end():
    cut = [ToolCallDelta("0", "tear", '{"text": "Once', "call_0"), Completed("length")]
    model = ScriptedProvider(cut)
    async with serving(Agent("a", model=model, tools=[tear])) as served:
        answer = await served.run(ask("Write", state=DOCUMENT, protocolVersion="1.0"))
    assert told(answer) == [DOCUMENT]
    assert answer.types[-1] == "RUN_ERROR"


async def test_what_a_child_run_will_make_of_its_state_is_not_predicted_of_the_pages():
    below = Agent("below", model=ScriptedProvider(calls(("write", '{"text": "Once"}')), says("Done")), tools=[write])
    above = ScriptedProvider(calls(("below", '{"prompt": "Write"}')), says("Done"))
    async with serving(Agent("above", model=above, tools=[below])) as served:
        answer = await served.run(ask("Write", state=DOCUMENT, protocolVersion="1.0"))
    assert "SUBAGENT_FINISHED" in answer.types
    assert told(answer) == []
    assert [event for event in answer.events if event.get("name") == "PredictState"] == []


def test_a_prediction_of_an_argument_that_is_none_is_refused():
    with pytest.raises(ConfigurationError, match="nothing"):
        tool(predict_state={"document": "nothing"})(write.function)
