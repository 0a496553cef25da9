"""Agents without a model: what an executor says is committed, shown, stopped and continued like what a model says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from agui_bridge import (
    Activity,
    Agent,
    Artifact,
    BeforeRound,
    Custom,
    Done,
    Failed,
    Interrupt,
    MessageDone,
    Reasoning,
    Respond,
    RunContext,
    State,
    Text,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    before_round,
    tool,
)
from runtime.canonical import JsonObject
from runtime.errors import ConfigurationError, InvalidInput
from tests.serving import Answer, ask, serving
from tests.wire.desk import PICK
from tests.wire.test_interrupts import Page, answered, asked, cancelled, outcome, results


@asynccontextmanager
async def page(function: Any, *, tools: Any = (), **settings: Any) -> AsyncGenerator[Page, None]:
    """A page on an agent that a function performs."""
    async with serving(Agent("a", executor=function, tools=tools), **settings) as served:
        yield Page(served, cast("Any", None))


def text_of(answer: Answer) -> str:
    return "".join(event["delta"] for event in answer.events if event["type"] == "TEXT_MESSAGE_CONTENT")


def shown(desk: Page) -> list[tuple[str, Any]]:
    return [(message["role"], message.get("content")) for message in desk.page.messages]


def roles(answer: Answer) -> list[str]:
    """What became of the text of each round."""
    return [event["metadata"]["agui-bridge:role"] for event in answer.events if event["type"] == "TEXT_MESSAGE_END"]


# --- what it says -------------------------------------------------------------------------------------------------


async def test_a_function_of_a_few_lines_is_an_agent():
    async def echo(ctx: RunContext):
        yield "You said: "
        yield ctx.prompt

    async with page(echo) as desk:
        answer = await desk.turn("hello")
        assert answer.types == [
            "RUN_STARTED",
            "STEP_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "CUSTOM",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ]
        assert shown(desk) == [("user", "hello"), ("assistant", "You said: hello")]


@pytest.mark.parametrize(
    ("value", "text", "result"),
    [("It is so.", "It is so.", None), ({"score": 3}, "", {"score": 3}), (None, "", None)],
)
async def test_what_an_async_function_returns_is_the_answer(value: Any, text: str, result: Any):
    async def decide(ctx: RunContext) -> Any:
        return value

    async with page(decide) as desk:
        answer = await desk.turn("decide")
        assert text_of(answer) == text
        assert answer.events[-1].get("result") == result


async def test_what_was_said_is_in_the_history_of_the_next_run():
    seen: list[list[str]] = []

    async def remember(ctx: RunContext) -> str:
        seen.append([getattr(item, "content", "") for item in ctx.items])
        return f"answer {len(seen)}"

    async with page(remember) as desk:
        await desk.turn("one")
        await desk.turn("two")
    assert seen == [["one"], ["one", "answer 1", "two"]]


async def test_only_the_last_of_several_messages_is_the_answer():
    async def talk(ctx: RunContext):
        yield Reasoning("let me see")
        yield "First, "
        yield MessageDone()
        yield "second, "
        yield MessageDone(final=False)
        yield Text("third.")

    async with page(talk) as desk:
        answer = await desk.turn("talk")
        run = (await desk.served.get("/api/sessions/t1/messages")).document["messages"]
        assert [text for role, text in shown(desk) if role == "assistant"] == ["First, ", "second, ", "third."]
        said = [[part["round"], part["text"]] for part in run[-1]["parts"] if part["kind"] == "text"]
        assert said == [[1, "First, "], [2, "second, "], [3, "third."]]
        assert roles(answer) == ["working_message", "working_message", "final_response"]


async def test_its_own_calls_are_shown_with_their_results():
    async def weather(ctx: RunContext):
        yield "Looking. "
        yield ToolCallDelta("w", "get_weather", '{"city":')
        yield ToolCallDelta("w", "get_weather", '"Oslo"}')
        yield ToolCall("get_weather", '{"city":"Oslo"}', "w")
        yield ToolCall("get_time", {"tz": "+1"}, "t")
        yield ToolResult("w", {"degrees": 3})
        yield ToolResult("t", "no clock", is_error=True)
        yield "It is cold."

    async with page(weather) as desk:
        answer = await desk.turn("weather?")
        assert results(answer) == {"w": '{"degrees":3}', "t": "no clock"}
        assert [content for role, content in shown(desk) if role == "tool"] == ['{"degrees":3}', "no clock"]
        assert shown(desk)[-1] == ("assistant", "It is cold.")
        before = list(desk.page.messages)
        desk.page.messages[:] = []
        again = await desk.served.run(ask("", run="c", messages=[], protocolVersion="1.0"), path="/connect")
        desk.page.apply(again.events)
        assert [message["id"] for message in desk.page.messages] == [message["id"] for message in before]


async def test_a_call_of_its_own_without_a_result_has_failed():
    async def forgets(ctx: RunContext):
        yield ToolCall("look", {}, "l")

    async with page(forgets) as desk:
        answer = await desk.turn("look")
        assert results(answer) == {"l": "The agent gave no result for this call."}
        assert outcome(answer) == {"type": "success"}


async def test_state_activities_artifacts_and_facts_of_its_own_are_told():
    async def busy(ctx: RunContext):
        ctx.state["steps"] = [{"text": "a", "done": False}]
        yield Activity("p", "demo.plan", {"steps": 1})
        ctx.state["steps"][0]["done"] = True
        yield Custom("demo.note", {"n": 1})
        yield Artifact("a.md", "text/markdown", "# A")
        yield State({"steps": [], "over": True})
        ctx.state["over"] = "quite"

    async with page(busy) as desk:
        answer = await desk.turn("work")
        assert desk.page.state == {"steps": [], "over": "quite"}
        told = [kind.partition("_")[0] for kind in answer.types if kind.startswith(("STATE", "ACTIVITY", "CUSTOM"))]
        assert told == ["STATE", "ACTIVITY", "STATE", "CUSTOM", "ACTIVITY", "STATE", "STATE"]
        assert next(event["name"] for event in answer.events if event["type"] == "CUSTOM") == "demo.note"


# --- tools of the agent and of the page ---------------------------------------------------------------------------


async def test_tools_of_the_agent_run_behind_the_gate_and_it_is_performed_again_with_their_outputs():
    done: list[str] = []

    @tool(approval=True)
    async def send(to: str) -> str:
        """Send."""
        done.append(to)
        return f"sent to {to}"

    async def mailer(ctx: RunContext):
        outputs = [item for item in ctx.items if hasattr(item, "output")]
        if not outputs:
            yield ToolCall("send", {"to": "Ann"})
            return
        yield f"Result: {cast('Any', outputs[-1]).output}"

    async with page(mailer, tools=[send]) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        assert done == []
        answer = await desk.turn(resume=[answered(interrupt, {"approved": True})])
        assert done == ["Ann"]
        assert text_of(answer) == "Result: sent to Ann"


async def test_a_call_of_the_pages_tool_ends_the_run_and_its_answer_is_in_the_next():
    async def picker(ctx: RunContext):
        assert ctx.client_tools == {"pick"}
        picked = [item for item in ctx.items if hasattr(item, "output")]
        if picked:
            yield f"You picked {cast('Any', picked[-1]).output}."
        else:
            yield ToolCall("pick", {"of": [1, 2]}, "p1")

    async with page(picker) as desk:
        answer = await desk.turn("Let me pick", tools=[PICK])
        assert outcome(answer) == {"type": "success", "pendingToolCallIds": ["p1"]}
        desk.page.messages.append({"id": "a1", "role": "tool", "toolCallId": "p1", "content": "2"})
        assert text_of(await desk.turn(tools=[PICK])) == "You picked 2."


# --- questions ----------------------------------------------------------------------------------------------------

SLOT: JsonObject = {"type": "object", "properties": {"time": {"type": "string"}}, "required": ["time"]}


async def booking(ctx: RunContext) -> AsyncGenerator[Any, None]:
    """Asks for a slot, then whether to book it."""
    slot, sure = ctx.answers.get("slot"), ctx.answers.get("sure")
    if slot is None:
        yield "Which time? "
        yield Interrupt("slot", "Pick a slot", SLOT, metadata={"slots": ["9", "10"]})
    elif not slot.is_resolved:
        yield "Then not."
    elif sure is None:
        yield Interrupt("sure", f"Book {slot.payload['time']}?", reason="confirmation")
    else:
        yield f"Booked {slot.payload['time']}: {sure.payload}."


async def test_a_question_suspends_the_run_and_the_answer_performs_it_anew():
    async with page(booking) as desk:
        answer = await desk.turn("Book")
        [slot] = asked(answer)
        assert text_of(answer) == "Which time? "
        assert slot["metadata"] == {"slots": ["9", "10"]}
        assert "toolCallId" not in slot
        [sure] = asked(await desk.turn(resume=[answered(slot, {"time": "9"})]))
        assert sure["message"] == "Book 9?"
        assert text_of(await desk.turn(resume=[answered(sure, "yes")])) == "Booked 9: yes."
        assert [text for _, text in shown(desk)] == ["Book", "Which time? ", "Booked 9: yes."]


async def test_a_question_can_be_declined_and_an_answer_that_does_not_fit_does_nothing():
    async with page(booking) as desk:
        [slot] = asked(await desk.turn("Book"))
        assert asked(await desk.turn(resume=[answered(slot, {"time": 9})])) == [slot]
        assert text_of(await desk.turn(resume=[cancelled(slot)])) == "Then not."


async def test_of_two_questions_one_may_be_answered_first():
    async def two(ctx: RunContext):
        if len(ctx.answers) < 2:
            yield Interrupt("a", "A?")
            yield Interrupt("b", "B?")
        else:
            yield f"{ctx.answers['a'].payload} and {ctx.answers['b'].payload}"

    async with page(two) as desk:
        a, b = asked(await desk.turn("Ask"))
        assert asked(await desk.turn(resume=[answered(b, 2)])) == [a]
        assert text_of(await desk.turn(resume=[answered(a, 1)])) == "1 and 2"


async def test_a_new_message_waits_for_what_is_asked_and_begins_a_new_matter():
    async with page(booking) as desk:
        [slot] = asked(await desk.turn("Book"))
        assert asked(await desk.turn("Well?")) == [slot]
        answer = await desk.turn(resume=[answered(slot, {"time": "9"})])
        assert text_of(answer) == "Which time? "  # the user has said something since


async def test_a_question_survives_a_restart(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'b.db'}"
    async with page(booking, store=store) as desk:
        [slot] = asked(await desk.turn("Book"))
        shown_before = desk.page.messages
    async with page(booking, store=store) as desk:
        desk.page.messages, desk.run = shown_before, 1
        [open_] = (await desk.served.get("/api/interrupts")).document["interrupts"]
        assert (open_["interrupt_id"], open_["tool_name"], open_["tool_call_id"]) == (slot["id"], None, None)
        [sure] = asked(await desk.turn(resume=[answered(slot, {"time": "10"})]))
        assert sure["message"] == "Book 10?"


async def test_an_edit_before_the_question_takes_it_back():
    async with page(booking) as desk:
        await desk.turn("Book")
        desk.page.messages[:] = [{"id": "u1", "role": "user", "content": "Book it now"}]
        [again] = asked(await desk.turn())
        assert [each["interrupt_id"] for each in (await desk.served.get("/api/interrupts")).document["interrupts"]] == [
            again["id"]
        ]


# --- what goes wrong ----------------------------------------------------------------------------------------------


def fails_with(error: Exception) -> Any:
    async def failing(ctx: RunContext):
        yield "Half a "
        raise error

    return failing


async def says_it_failed(ctx: RunContext):
    yield "Half a "
    yield Failed("The flow failed.", "FLOW_ERROR")


@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        (
            fails_with(RuntimeError("the password is hunter2")),
            "agent_failed",
            "The agent failed; the server's log says",
        ),
        (fails_with(InvalidInput("No such city.")), "invalid_input", "No such city."),
        (says_it_failed, "FLOW_ERROR", "The flow failed."),
    ],
)
async def test_a_failure_ends_the_run_and_nothing_of_the_open_round_is_kept(function: Any, code: str, message: str):
    async with page(function) as desk:
        answer = await desk.turn("go")
        error = answer.events[-1]
        assert (error["type"], error["code"]) == ("RUN_ERROR", code)
        assert error["message"].startswith(message)
        assert "TEXT_MESSAGE_END" in answer.types
        seen: list[int] = []

        async def count(ctx: RunContext):
            seen.append(len(ctx.items))
            yield "ok"

    async with page(count) as desk:
        await desk.turn("again")
    assert seen == [1]


async def nonsense_result(ctx: RunContext):
    yield ToolResult("nobody", "x")


async def call_twice(ctx: RunContext):
    yield ToolCall("x", {}, "c")
    yield ToolResult("c", "1")
    yield ToolCall("x", {}, "c")


async def ask_twice(ctx: RunContext):
    yield Interrupt("k", "A?")
    yield Interrupt("k", "B?")


async def ask_reserved(ctx: RunContext):
    yield Interrupt("k", "A?", reason="core:x")


async def unfinished_call(ctx: RunContext):
    yield ToolCallDelta("c", "x", "{")


@pytest.mark.parametrize("function", [nonsense_result, call_twice, ask_twice, ask_reserved, unfinished_call])
async def test_nonsense_fails_the_run_and_says_what_was_wrong(function: Any):
    async with page(function) as desk:
        answer = await desk.turn("go")
        assert answer.events[-1]["type"] == "RUN_ERROR"
        assert answer.events[-1]["code"] in ("agent_failed", "provider_protocol_error")


async def test_stop_closes_the_function_and_ends_the_run():
    closed = asyncio.Event()

    async def endless(ctx: RunContext):
        try:
            while True:
                yield "tok "
                await asyncio.sleep(0)
        finally:
            closed.set()

    async with page(endless) as desk, desk.served.streaming(ask("go", protocolVersion="1.0")) as events:
        async for event in events:
            if event["type"] == "TEXT_MESSAGE_CONTENT":
                break
        run = (await desk.served.get("/api/sessions/t1/messages")).document["messages"][-1]["run_id"]
        cancelled_ = await desk.served.run({}, path=f"/api/agent-runs/{run}/cancel?wait=5")
        assert cancelled_.document["status"] == "cancelled"
        assert closed.is_set()


async def test_nothing_is_heard_behind_the_end():
    async def over(ctx: RunContext):
        yield "ok"
        yield Done({"n": 1})
        yield "never"

    async with page(over) as desk:
        answer = await desk.turn("go")
        assert (text_of(answer), answer.events[-1]["result"]) == ("ok", {"n": 1})


async def test_a_hook_may_speak_in_its_place():
    async def never(ctx: RunContext) -> str:
        raise AssertionError("it is not asked")

    @before_round
    def stand_in(asked: BeforeRound) -> Respond:
        return Respond("I am closed.")

    async with serving(Agent("a", executor=never, hooks=[stand_in])) as served:
        answer = await Page(served, cast("Any", None)).turn("hello")
        assert text_of(answer) == "I am closed."
        assert answer.types[-1] == "RUN_FINISHED"


def test_an_executor_has_no_use_for_a_model_and_is_async():
    async def fine(ctx: RunContext) -> str:
        return ""

    with pytest.raises(ConfigurationError, match="no place"):
        _ = Agent("a", model="scripted", executor=fine).performer
    with pytest.raises(ConfigurationError, match="async def"):
        _ = Agent("a", executor=lambda ctx: "x").performer  # pyright: ignore[reportArgumentType]
