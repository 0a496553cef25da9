"""A LangGraph graph as an agent: what it says is committed, shown, stopped and continued like what a model says."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph

from agui_bridge import Agent
from runtime.executors.langgraph import LangGraphExecutor
from tests.serving import Answer, serving
from tests.wire.desk import PICK
from tests.wire.graphs import ScriptedChatModel, calls, react, says
from tests.wire.test_interrupts import Page, answered, asked, cancelled, outcome, results


@asynccontextmanager
async def page(graph: Any, *, store: str = "memory:", **settings: Any) -> AsyncGenerator[Page, None]:
    """A page on an agent that a graph performs."""
    async with serving(Agent("a", executor=LangGraphExecutor(graph, **settings)), store=store) as served:
        yield Page(served, cast("Any", None))


def text_of(answer: Answer) -> str:
    return "".join(event["delta"] for event in answer.events if event["type"] == "TEXT_MESSAGE_CONTENT")


def roles(answer: Answer) -> list[str]:
    return [event["metadata"]["agui-bridge:role"] for event in answer.events if event["type"] == "TEXT_MESSAGE_END"]


def heard(model: ScriptedChatModel) -> list[tuple[str, Any]]:
    """What the model was shown last."""
    return [(message.type, message.content) for message in model.asked[-1]]


async def test_a_graph_speaks_word_by_word_calls_its_tools_and_answers():
    model = ScriptedChatModel(
        rounds=[
            calls("m1", ("c1", "search", {"words": "tea"}), ("c2", "search", {"words": "nothing"}), text="Let me look"),
            says("Here is tea.", "m2", thought="There is some."),
        ],
        asked=[],
    )
    async with page(react(model)) as desk:
        answer = await desk.turn("Tea?")
        assert [kind for kind in answer.types if kind != "CUSTOM"] == [
            "RUN_STARTED",
            "STEP_STARTED",
            "TEXT_MESSAGE_START",
            *["TEXT_MESSAGE_CONTENT"] * 3,
            "TEXT_MESSAGE_END",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_END",
            "STEP_FINISHED",
            "STATE_SNAPSHOT",
            "TOOL_CALL_RESULT",
            "TOOL_CALL_RESULT",
            "STEP_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_START",
            *["TEXT_MESSAGE_CONTENT"] * 3,
            "STATE_SNAPSHOT",
            "TEXT_MESSAGE_END",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ]
        assert results(answer)["c1"] == "found tea"
        assert "nothing found" in results(answer)["c2"]
        assert roles(answer) == ["working_message", "final_response"]
        assert desk.page.state == {"asked": 2}
        [usage] = answer.events[-1]["usage"]
        assert (usage["model"], usage["inputTokens"], usage["outputTokens"]) == ("scripted-1", 10, 6)


async def test_its_memory_goes_on_and_is_told_only_what_is_new():
    model = ScriptedChatModel(rounds=[says("one", "m1"), says("two", "m2")], asked=[])
    async with page(react(model)) as desk:
        await desk.turn("first")
        await desk.turn("second")
        assert heard(model) == [("human", "first"), ("ai", "one"), ("human", "second")]
        assert [message.id for message in model.asked[-1]] == ["u1", "m1", "u2"]


async def test_a_graph_whose_memory_is_gone_is_given_the_history(tmp_path: Any):
    store = f"sqlite:///{tmp_path / 'a.db'}"
    first = ScriptedChatModel(rounds=[calls("m1", ("c1", "search", {"words": "x"})), says("one", "m2")], asked=[])
    async with page(react(first), store=store) as desk:
        await desk.turn("first")
        shown = desk.page.messages
    second = ScriptedChatModel(rounds=[says("two", "m3")], asked=[])
    async with page(react(second), store=store) as desk:
        desk.page.messages, desk.run = shown, 1
        await desk.turn("second")
        assert heard(second) == [
            ("human", "first"),
            ("ai", ""),
            ("tool", "found x"),
            ("ai", "one"),
            ("human", "second"),
        ]
        assert [message["content"] for message in desk.page.messages if message["role"] == "user"] == [
            "first",
            "second",
        ]


async def test_an_edit_takes_the_graph_back_to_where_this_branch_stood():
    model = ScriptedChatModel(rounds=[says(word, f"m{n}") for n, word in enumerate("abcd")], asked=[])
    async with page(react(model)) as desk:
        await desk.turn("first")
        await desk.turn("second")
        desk.page.messages[2:] = [{"id": "u2", "role": "user", "content": "second, edited"}]
        await desk.turn()
        assert heard(model) == [("human", "first"), ("ai", "a"), ("human", "second, edited")]
        desk.page.messages[:] = [{"id": "u1", "role": "user", "content": "first, edited"}]
        await desk.turn()
        assert heard(model) == [("human", "first, edited")]


async def test_a_question_of_a_tool_suspends_the_run_and_resumes_the_graph():
    model = ScriptedChatModel(
        rounds=[calls("m1", ("c1", "ask", {"question": "Colour?"})), says("Blue it is.", "m2")], asked=[]
    )
    async with page(react(model)) as desk:
        answer = await desk.turn("Ask me")
        [interrupt] = asked(answer)
        assert interrupt["message"] == "Colour?"
        assert interrupt["metadata"] == {"langgraph": {"raw": {"question": "Colour?"}}}
        answer = await desk.turn(resume=[answered(interrupt, "blue")])
        assert results(answer) == {"c1": "the user says blue"}
        assert text_of(answer) == "Blue it is."
        assert [message["role"] for message in desk.page.messages] == ["user", "assistant", "tool", "assistant"]


async def test_a_question_that_nobody_will_answer_is_told_to_the_graph():
    model = ScriptedChatModel(
        rounds=[calls("m1", ("c1", "ask", {"question": "?"})), says("Never mind.", "m2")], asked=[]
    )
    async with page(react(model)) as desk:
        [interrupt] = asked(await desk.turn("Ask me"))
        answer = await desk.turn(resume=[cancelled(interrupt)])
        assert "__agui_cancelled__" in results(answer)["c1"]


async def test_a_breakpoint_asks_whether_to_go_on():
    model = ScriptedChatModel(rounds=[calls("m1", ("c1", "search", {"words": "x"})), says("done", "m2")], asked=[])
    async with page(react(model, interrupt_before=["tools"])) as desk:
        [interrupt] = asked(await desk.turn("go"))
        assert interrupt["reason"] == "langgraph:breakpoint"
        answer = await desk.turn(resume=[answered(interrupt, None)])
        assert results(answer) == {"c1": "found x"}
        assert text_of(answer) == "done"


async def test_tools_of_the_page_end_the_run_and_their_answer_goes_to_the_graph():
    model = ScriptedChatModel(rounds=[calls("m1", ("p1", "pick", {"of": [1]})), says("You picked 1.", "m2")], asked=[])
    async with page(react(model)) as desk:
        answer = await desk.turn("Let me pick", tools=[PICK])
        assert outcome(answer)["pendingToolCallIds"] == ["p1"]
        desk.page.messages.append({"id": "t1", "role": "tool", "toolCallId": "p1", "content": "1"})
        assert text_of(await desk.turn(tools=[PICK])) == "You picked 1."
        assert heard(model)[-1] == ("tool", "1")
        assert [message.type for message in model.asked[-1]] == ["human", "ai", "tool"]


async def test_ids_of_calls_that_come_again_are_told_apart_on_the_wire():
    rounds = [m for n in (1, 2) for m in (calls(f"m{n}", ("c", "search", {"words": "x"})), says("ok", f"n{n}"))]
    model = ScriptedChatModel(rounds=rounds, asked=[])
    async with page(react(model)) as desk:
        first, second = await desk.turn("one"), await desk.turn("two")
        assert results(first).keys() != results(second).keys()
        assert [*results(second).values()] == ["found x"]


async def test_what_the_page_changes_of_the_state_reaches_the_graph():
    model = ScriptedChatModel(rounds=[says("a", "m1"), says("b", "m2")], asked=[])
    saver = InMemorySaver()
    async with page(react(model, checkpointer=saver)) as desk:
        await desk.turn("first", state={"note": "mine", "scrolled": 3})
        assert desk.page.state == {"note": "mine", "scrolled": 3, "asked": 1}
        await desk.turn("second", state={"note": "yours", "scrolled": 4, "asked": 1})
        assert desk.page.state == {"note": "yours", "scrolled": 4, "asked": 2}


async def test_a_failure_ends_the_run_and_the_next_begins_where_the_last_commit_stood():
    model = ScriptedChatModel(rounds=[says("one", "m1"), RuntimeError("secret"), says("two", "m2")], asked=[])
    async with page(react(model)) as desk:
        await desk.turn("first")
        failed = await desk.turn("second")
        assert (failed.events[-1]["type"], failed.events[-1]["code"]) == ("RUN_ERROR", "agent_failed")
        assert "secret" not in failed.body.decode()
        await desk.turn("third")
        assert heard(model)[-2:] == [("human", "second"), ("human", "third")]


async def test_messages_of_nodes_without_a_model_and_what_they_write_are_told():
    async def one(state: MessagesState) -> dict[str, Any]:
        get_stream_writer()({"name": "demo.note", "n": 1})
        return {"messages": AIMessage("from one", id="x1")}

    async def two(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("from two")]}

    graph = StateGraph(MessagesState)
    graph.add_node("one", one)
    graph.add_node("two", two)
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", END)
    async with page(graph.compile()) as desk:
        answer = await desk.turn("go")
        assert roles(answer) == ["working_message", "final_response"]
        assert text_of(answer) == "from onefrom two"
        assert [event["value"] for event in answer.events if event.get("name") == "demo.note"] == [
            {"name": "demo.note", "n": 1}
        ]


async def test_nodes_that_speak_at_the_same_time_are_told_one_after_the_other():
    left = ScriptedChatModel(rounds=[says("left says this", "l")], asked=[])
    right = ScriptedChatModel(rounds=[says("right says that", "r")], asked=[])

    def node(model: ScriptedChatModel) -> Any:
        async def speak(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(state["messages"])]}

        return speak

    graph = StateGraph(MessagesState)
    graph.add_node("left", node(left))
    graph.add_node("right", node(right))
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    async with page(graph.compile()) as desk:
        await desk.turn("go")
        said = [message["content"] for message in desk.page.messages if message["role"] == "assistant"]
        assert sorted(said) == ["left says this", "right says that"]


async def test_media_reach_the_graph():
    model = ScriptedChatModel(rounds=[says("a cat", "m1")], asked=[])
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}},
        {"type": "document", "source": {"type": "url", "value": "https://files.example/a.pdf"}},
    ]
    async with page(react(model)) as desk:
        desk.page.messages.append({"id": "u1", "role": "user", "content": parts})
        await desk.turn()
        [message] = model.asked[-1]
        assert message.content == [
            {"type": "text", "text": "What is this?"},
            {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
            {"type": "file", "url": "https://files.example/a.pdf"},
        ]


async def test_its_configurable_names_thread_run_user_and_agent():
    seen: list[Any] = []

    async def look(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        seen.append({key: config.get("configurable", {}).get(key) for key in ("run_id", "user_id", "agent_id", "mine")})
        return {"messages": [HumanMessage("not told"), ToolMessage("nor this", tool_call_id="none"), AIMessage("ok")]}

    graph = StateGraph(MessagesState)
    graph.add_node("look", look)
    graph.add_edge(START, "look")
    async with page(graph.compile(), config={"configurable": {"mine": 1}}) as desk:
        answer = await desk.turn("go")
        assert text_of(answer) == "ok"
        assert results(answer) == {}
        [given] = seen
        assert (given["agent_id"], given["mine"]) == ("a", 1)
        assert given["run_id"].startswith("run_")


def test_a_graph_has_to_be_compiled():
    with pytest.raises(Exception, match="compile"):
        LangGraphExecutor(cast("Any", StateGraph(MessagesState)))
