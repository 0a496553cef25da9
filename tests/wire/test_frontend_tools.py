"""Tools of the page, over a real socket: what a page may call a tool and answer to a call, and what the model hears."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from runtime import samples as s
from runtime.items import FunctionCallOutput, Message
from runtime.testing import calls, says
from tests.pure.stock_page import Page
from tests.serving import Answer, JsonObject
from tests.wire.desk import PICK, Desk, desk

PICTURE: JsonObject = {"type": "image", "source": {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}}


def result(call: str, content: Any, id_: str = "a1", **more: Any) -> JsonObject:
    """A page's answer to a call."""
    return {"id": id_, "role": "tool", "toolCallId": call, "content": content, **more}


def pending(answer: Answer) -> list[str]:
    return answer.events[-1]["outcome"]["pendingToolCallIds"]


def outputs(open_desk: Desk) -> list[FunctionCallOutput]:
    """The outputs that the model saw last."""
    return [item for item in open_desk.model.prompts[-1] if isinstance(item, FunctionCallOutput)]


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-110")
async def test_an_answer_may_have_parts_and_the_model_is_given_each() -> None:
    async with desk(calls(("pick", "{}")), says("Nice"), says("Bye")) as open_desk:
        [call] = pending(await open_desk.say("draw", tools=[PICK]))
        open_desk.page.put_result(result(call, [{"type": "text", "text": "here"}, PICTURE]))
        await open_desk.post(tools=[PICK])
        [output] = outputs(open_desk)
        source = {"type": "data", "value": "iVBORw0KGgo=", "mime_type": "image/png"}
        assert output.output == [{"type": "text", "text": "here"}, {"type": "image", "source": source}]
        assert not output.is_error
        again = await open_desk.say("thanks", tools=[PICK])
        assert "MESSAGES_SNAPSHOT" not in again.types
        assert open_desk.page.messages == await open_desk.held()


@pytest.mark.requirement("R-110")
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no hands"),
        ("half done", "half done\nno hands"),
        ([PICTURE], [{"type": "image"}, {"type": "text", "text": "no hands"}]),
    ],
    ids=["nothing", "text", "parts"],
)
async def test_an_answer_that_failed_says_so_whatever_else_it_holds(content: Any, told: Any) -> None:
    async with desk(calls(("pick", "{}")), says("Pity")) as open_desk:
        [call] = pending(await open_desk.say("draw", tools=[PICK]))
        open_desk.page.put_result(result(call, content, error="no hands"))
        await open_desk.post(tools=[PICK])
        [output] = outputs(open_desk)
        said = output.output
        assert (
            said == told
            if isinstance(said, str)
            else [part | {"source": None} for part in said] == [part | {"source": None} for part in told]
        )
        assert output.is_error
        assert open_desk.page.messages == await open_desk.held()


async def test_answers_in_any_order_are_told_in_the_order_of_the_calls() -> None:
    async with desk(calls(("pick", "{}"), ("pick", "{}"), ("pick", "{}")), says("Fine")) as open_desk:
        first, second, third = pending(await open_desk.say("pick three", tools=[PICK]))
        open_desk.page.messages += [result(third, "c", "a3"), result(first, "a", "a1"), result(second, "b", "a2")]
        await open_desk.post(tools=[PICK])
        assert [output.output for output in outputs(open_desk)] == ["a", "b", "c"]


async def test_an_answer_to_no_call_beside_a_true_one_changes_nothing_of_it() -> None:
    async with desk(calls(("pick", "{}"), ("pick", "{}")), says("Fine")) as open_desk:
        first, second = pending(await open_desk.say("pick two", tools=[PICK]))
        open_desk.page.messages += [result("nobody", "x", "a0"), result(first, "a", "a1")]
        half = await open_desk.post(tools=[PICK])
        assert half.types[-1] == "RUN_FINISHED"
        assert len(open_desk.model.prompts) == 1
        open_desk.page.messages.append(result(second, "b", "a2"))
        await open_desk.post(tools=[PICK])
        assert open_desk.prompt == ["user: pick two", "call pick", "call pick", "output a", "output b"]


async def test_only_the_first_answer_to_a_call_counts_also_when_another_comes_later() -> None:
    async with desk(calls(("pick", "{}")), says("Blue"), says("Still blue")) as open_desk:
        [call] = pending(await open_desk.say("pick", tools=[PICK]))
        open_desk.page.messages += [result(call, "blue", "a1"), result(call, "red", "a2")]
        await open_desk.post(tools=[PICK])
        open_desk.page.messages.append(result(call, "green", "a3"))
        await open_desk.say("sure?", tools=[PICK])
        assert [output.output for output in outputs(open_desk)] == ["blue"]


async def test_a_call_is_answered_though_the_page_no_longer_has_the_tool() -> None:
    async with desk(calls(("pick", "{}")), says("Blue")) as open_desk:
        [call] = pending(await open_desk.say("pick", tools=[PICK]))
        open_desk.page.put_result(result(call, "blue"))
        await open_desk.post()
        assert open_desk.prompt == ["user: pick", "call pick", "output blue"]


async def test_of_our_call_and_the_pages_only_the_pages_waits_and_both_are_told_together() -> None:
    async with desk(calls(("look", '{"place": "there"}'), ("pick", "{}")), says("Both")) as open_desk:
        first = await open_desk.say("look and pick", tools=[PICK])
        [call] = pending(first)
        open_desk.page.messages.append(result(call, "blue"))
        await open_desk.post(tools=[PICK])
        assert [output.output for output in outputs(open_desk)] == ["seen there", "blue"]


# --- answers that come too late ---------------------------------------------------------------------------------------


@pytest.mark.requirement("R-111")
@pytest.mark.parametrize("content", ["", [PICTURE]], ids=["nothing", "parts"])
async def test_an_answer_that_failed_and_came_too_late_says_so(content: Any) -> None:
    async with desk(calls(("pick", "{}")), says("A joke"), says("I see"), says("Bye")) as open_desk:
        [call] = pending(await open_desk.say("pick a colour", tools=[PICK]))
        await open_desk.say("forget it", tools=[PICK])
        open_desk.page.put_result(result(call, content, error="no hands"))
        await open_desk.post(tools=[PICK])
        await open_desk.say("did you see?", tools=[PICK])
        [late] = [m for m in open_desk.model.prompts[-1] if isinstance(m, Message) and m.runtime_role is not None][-1:]
        assert late.runtime_role == "late_tool_answer"
        assert "no hands" in str(late.content)
        assert ("iVBORw0KGgo=" in str(late.content)) is bool(content)
        again = await open_desk.say("bye", tools=[PICK])
        assert "MESSAGES_SNAPSHOT" not in again.types
        assert open_desk.page.messages == await open_desk.held()


async def test_a_page_that_lost_a_late_answer_gets_it_back_as_it_was() -> None:
    async with desk(calls(("pick", "{}")), says("A joke"), says("I see")) as open_desk:
        [call] = pending(await open_desk.say("pick a colour", tools=[PICK]))
        await open_desk.say("forget it", tools=[PICK])
        open_desk.page.put_result(result(call, "half", error="no hands"))
        await open_desk.post(tools=[PICK])
        open_desk.page = Page(open_desk.page.messages[:1])
        await open_desk.say("so?", tools=[PICK])
        assert result(call, "half", error="no hands") in open_desk.page.messages


# --- what a page says of its tools ------------------------------------------------------------------------------------


@pytest.mark.requirement("R-118")
@pytest.mark.parametrize("parameters", [..., True, "any", 3, [], {}, {"type": "string"}], ids=str)
async def test_whatever_a_page_says_of_a_tools_parameters_it_is_called_and_answered(parameters: Any) -> None:
    pick = {name: value for name, value in (PICK | {"parameters": parameters}).items() if value is not ...}
    async with desk(calls(("pick", '{"any": 1}')), says("Fine")) as open_desk:
        [call] = pending(await open_desk.say("pick", tools=[pick]))
        [_, told] = open_desk.model.requests_with_items[0]["tools"]
        assert told.parameters["type"] == "object"
        open_desk.page.put_result(result(call, "blue"))
        await open_desk.post(tools=[pick])
        assert open_desk.prompt == ["user: pick", "call pick", "output blue"]


@pytest.mark.parametrize("name", ["set colour", "shop.pick", "wählen", "x" * 65, ""])
async def test_a_tool_whose_name_no_model_can_be_told_is_left_out_and_the_log_says_so(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with desk(says("Without it")) as open_desk:
        with caplog.at_level(logging.WARNING, "agui_bridge.desk"):
            answer = await open_desk.say("pick", tools=[PICK, {**PICK, "name": name}])
        assert answer.events[-1]["outcome"] == {"type": "success"}
        offered = [tool.name for tool in open_desk.model.requests_with_items[0]["tools"]]
        assert offered == ["look", "pick"]
        assert "cannot be a tool's name" in caplog.text


@pytest.mark.requirement("R-112")
async def test_a_call_of_a_tool_that_the_page_did_not_offer_is_answered_here() -> None:
    async with desk(calls(("pick", "{}")), says("I see")) as open_desk:
        answer = await open_desk.say("pick")
        [told] = [event["content"] for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]
        assert told == "There is no tool named 'pick'. The tools are: look."
        assert answer.events[-1]["outcome"] == {"type": "success"}
        assert isinstance(open_desk.model.prompts[-1][-1], FunctionCallOutput)


async def test_a_call_that_is_still_streaming_when_the_model_ends_badly_is_not_left_to_the_page() -> None:
    cut = [s.ToolCallDelta("0", "pick", '{"col', "call_0"), s.Completed("length")]
    async with desk(cut) as open_desk:
        answer = await open_desk.say("pick", tools=[PICK])
        assert answer.types[-1] == "RUN_ERROR"
        assert not any(message.get("toolCalls") for message in open_desk.page.messages)


async def test_the_id_of_a_call_that_came_to_nothing_is_given_to_no_other() -> None:
    cut = [s.ToolCallDelta("0", "pick", "{", "call_0"), s.Completed("length")]
    async with desk(cut, calls(("pick", "{}"))) as open_desk:
        failed = await open_desk.say("draw", tools=[PICK])
        assert [event["toolCallId"] for event in failed.events if event["type"] == "TOOL_CALL_START"] == ["call_0"]
        assert pending(await open_desk.say("again", tools=[PICK])) != ["call_0"]


async def test_an_id_that_only_a_message_of_the_page_names_is_given_to_no_call() -> None:
    async with desk(calls(("pick", "{}")), says("Fine")) as open_desk:
        open_desk.page.messages += [
            {"id": "u0", "role": "user", "content": "before"},
            result("call_0", "blue", id_="a0"),
        ]
        [call] = pending(await open_desk.say("draw", tools=[PICK]))
        assert call != "call_0"
        await open_desk.say("never mind", tools=[PICK])
        ids = [message["id"] for message in await open_desk.held()]
        assert len(ids) == len(set(ids))
