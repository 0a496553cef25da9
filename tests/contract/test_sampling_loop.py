"""The loop, end to end: what the journal holds and what the model is shown afterwards, item by item."""

from __future__ import annotations

from pathlib import Path

from runtime import events as e
from runtime import samples as s
from runtime.canonical import digest
from runtime.items import FunctionCall, FunctionCallOutput, Message
from runtime.testing import calls, says
from runtime.tools.files import read_file_tool
from tests.contract.workshop import message_of, only, types, workshop

QUESTION = Message("user", "Hello")
OPENED = ["run.started", "message.completed", "message.started", "round.started"]


def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


def part(number: int, kind: str, round_: int, *, committed: bool, **said: str) -> dict[str, object]:
    """A part as `message.completed` has it."""
    return {"part_id": f"p{number}", "kind": kind, "round": round_, "committed": committed, **said}


def protocol_failure(message: str) -> e.RunFailed:
    """How a run ends whose provider broke its own protocol."""
    return e.RunFailed({"code": "provider_protocol_error", "message": message, "retryable": False})


async def test_rejects_streamed_text_without_an_assistant_message_commit():
    lines = [s.TextDelta("It is "), s.TextDelta("raining"), s.Completed("stop")]
    async with workshop(lines, says("Sorry, again.")) as shop:
        events = await shop.run()
        assert types(events) == [*OPENED, "message.delta", "message.delta", "message.completed", "run.failed"]
        assert [delta.delta for delta in only(events, e.MessageDelta)] == ["It is ", "raining"]
        assert message_of(events).content == [part(0, "text", 1, committed=False, text="It is raining")]
        assert events[-1] == protocol_failure("The provider streamed text but never completed the message.")
        assert await shop.items() == [QUESTION]

        assert types(await shop.run("Again?"))[-1] == "run.completed"
        assert shop.script.prompts[1] == [QUESTION, Message("user", "Again?")]


async def test_rejects_tool_argument_deltas_without_a_completed_tool_call():
    told: list[str] = []

    def tell(text: str) -> str:
        told.append(text)
        return "told"

    lines = [
        s.TextDelta("Let me see."),
        s.AssistantMessageDone(),
        s.ToolCallDelta("0", "tell", '{"text": "a"}', "call_0"),
        s.ToolCallCommitted("0", "tell", '{"text": "a"}', "call_0"),
        s.ToolCallDelta("1", "tell", '{"text": ', "call_1"),
        s.ToolCallDelta("1", "tell", '"b"}'),
        s.Completed("tool_calls"),
    ]
    async with workshop(lines, tools=[tell]) as shop:
        events = await shop.run()
        assert types(events) == [
            *OPENED,
            "message.delta",
            "tool.call.started",
            "tool.call.delta",
            "tool.call.started",
            "tool.call.delta",
            "tool.call.delta",
            "message.completed",
            "run.failed",
        ]
        assert message_of(events).content == [
            part(0, "text", 1, committed=False, text="Let me see."),
            part(1, "tool_call", 1, committed=False, tool_call_id="call_0"),
            part(2, "tool_call", 1, committed=False, tool_call_id="call_1"),
        ]
        assert events[-1] == protocol_failure("The provider streamed tool arguments but never completed the call.")
        assert told == []
        assert await shop.items() == [QUESTION]


async def test_a_no_tool_assistant_message_is_the_final_response():
    async with workshop(says("It rains.", usage={"input_tokens": 3, "output_tokens": 2})) as shop:
        events = await shop.run()
        usage = {"provider": "testing", "model": "scripted-provider", "input_tokens": 3, "output_tokens": 2}
        content = [part(0, "text", 1, committed=True, text="It rains.")]
        assert events[2:] == [
            e.MessageStarted("msg_1", "assistant"),
            e.RoundStarted(1, "scripted-provider", "testing", {"digest": digest(shop.script.requests[0]), "items": 1}),
            e.MessageDelta("msg_1", "p0", 0, "It "),
            e.MessageDelta("msg_1", "p0", 0, "rains."),
            e.RoundCompleted(1, "final_response", "stop", [{"part_id": "p0", "kind": "text"}], [], usage=usage),
            e.MessageCompleted("msg_1", "assistant", content, digest(content)),
            e.RunCompleted("msg_1", usage=[usage]),
        ]
        assert await shop.items() == [QUESTION, Message("assistant", "It rains.", "final_response")]
        assert len(shop.script.requests) == 1


async def test_records_working_message_function_call_tool_output_and_final_response():
    arguments = '{"city": "Oslo"}'
    rounds = [calls(("get_weather", arguments), text="Let me look."), says("Rain.")]
    async with workshop(*rounds, tools=[get_weather]) as shop:
        events = await shop.run()
        assert types(events) == [
            *OPENED,
            "message.delta",
            "tool.call.started",
            "tool.call.delta",
            "tool.call.committed",
            "round.completed",
            "tool.execution.started",
            "tool.call.completed",
            "round.started",
            "message.delta",
            "round.completed",
            "message.completed",
            "run.completed",
        ]
        assert events[5:11] == [
            e.ToolCallStarted("msg_1", "p1", 1, "call_0", "get_weather"),
            e.ToolCallDelta("call_0", arguments),
            e.ToolCallCommitted("call_0", "get_weather", arguments, "server"),
            e.RoundCompleted(
                1,
                "working_message",
                "tool_calls",
                [{"part_id": "p0", "kind": "text"}, {"part_id": "p1", "kind": "tool_call"}],
                ["call_0"],
            ),
            e.ToolExecutionStarted("call_0", "get_weather", "run_1:call_0"),
            e.ToolCallCompleted("call_0", "get_weather", "rain in Oslo", digest("rain in Oslo"), False, "result"),
        ]
        assert message_of(events).content == [
            part(0, "text", 1, committed=True, text="Let me look."),
            part(1, "tool_call", 1, committed=True, tool_call_id="call_0"),
            part(2, "text", 2, committed=True, text="Rain."),
        ]
        worked = [
            QUESTION,
            Message("assistant", "Let me look.", "working_message"),
            FunctionCall("call_0", "get_weather", arguments, provider="testing"),
            FunctionCallOutput("call_0", "get_weather", "rain in Oslo", is_error=False),
        ]
        assert shop.script.prompts[1] == worked
        assert await shop.items() == [*worked, Message("assistant", "Rain.", "final_response")]


async def test_records_read_file_output_through_the_sampling_loop(tmp_path: Path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.txt").write_text("1. Sow.\n2. Reap.\n", encoding="utf-8")
    right, wrong = '{"path": "notes/plan.txt"}', '{"path": "../secret"}'
    refusal = "Cannot read '../secret': the path may not go upwards (..)."
    rounds = [calls(("read_file", right), ("read_file", wrong)), says("Sow, then reap.")]
    async with workshop(*rounds, tools=[read_file_tool(tmp_path)]) as shop:
        events = await shop.run("What is the plan?")
        assert [started.tool_call_id for started in only(events, e.ToolExecutionStarted)] == ["call_0", "call_1"]
        done = sorted(only(events, e.ToolCallCompleted), key=lambda one: one.tool_call_id)
        plan = "1. Sow.\n2. Reap.\n"
        assert done == [
            e.ToolCallCompleted("call_0", "read_file", plan, digest(plan), False, "result"),
            e.ToolCallCompleted("call_1", "read_file", refusal, digest(refusal), True, "error"),
        ]
        assert types(events)[-1] == "run.completed"
        assert await shop.items() == [
            Message("user", "What is the plan?"),
            FunctionCall("call_0", "read_file", right, provider="testing"),
            FunctionCall("call_1", "read_file", wrong, provider="testing"),
            FunctionCallOutput("call_0", "read_file", plan, is_error=False),
            FunctionCallOutput("call_1", "read_file", refusal, is_error=True),
            Message("assistant", "Sow, then reap.", "final_response"),
        ]
