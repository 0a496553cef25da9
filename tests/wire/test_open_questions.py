"""Around an open question: edits, losses, repeated answers, children that are answered bit by bit."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from runtime.agent import Agent
from runtime.errors import ProviderError
from runtime.samples import TextDelta
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.wire.scenario_rules import by_speaker
from tests.wire.test_interrupts import SEND, Page, answered, asked, outcome, page, resolved, results

CUT = [TextDelta("Half "), ProviderError("The provider's stream broke off.", code="stream_cut")]


async def agree(desk: Page) -> None:
    """The page holds what the server does."""
    assert by_speaker(desk.page.messages) == by_speaker(await desk.held())


def sender(*rounds: Any, tools: list[Any]) -> Agent:
    return Agent("writer", model=ScriptedProvider(*rounds), tools=tools, description="Writes.")


ASK_WRITER = calls(("writer", '{"prompt": "Write"}'))


# --- edits --------------------------------------------------------------------------------------------------------


async def test_a_call_that_an_edit_has_taken_from_the_page_is_not_told_of():
    async with page(SEND, says("Hello"), says("Again")) as desk:
        asked(await desk.turn("Write to Ann"))
        desk.page.messages.clear()
        answer = await desk.turn("Just say hello")
        assert "TOOL_CALL_RESULT" not in answer.types
        await agree(desk)
        await desk.turn("Again")
        await agree(desk)


async def test_what_a_child_has_said_on_another_branch_is_not_taken_for_somebody_elses():
    writer = sender(says("Tea is fine"), says("Tea is great"), tools=[])
    async with page(ASK_WRITER, says("One"), ASK_WRITER, says("Two"), says("Three"), tools=[writer]) as desk:
        await desk.turn("Write")
        first = copy.deepcopy(desk.page.messages)
        desk.page.messages = desk.page.messages[:1]
        await desk.turn()
        desk.page.messages = first
        await desk.turn("And now?")
        ids = [message["id"] for message in desk.page.messages]
        assert len(ids) == len(set(ids))
        await agree(desk)


# --- what is still open -------------------------------------------------------------------------------------------


async def test_a_tool_is_not_called_again_while_its_question_is_open():
    called: list[str] = []

    @tool
    async def order(ctx: ToolContext) -> str:
        """Order."""
        called.append("order")
        return str(await ctx.interrupt(message="Which size?"))

    @tool(approval=True)
    async def send(to: str) -> str:
        """Send."""
        called.append(f"send to {to}")
        return "Sent."

    both = calls(("order", "{}"), ("send", '{"to": "Ann"}'))
    async with page(both, says("Done"), tools=[order, send]) as desk:
        questions = {each["toolCallId"]: each for each in asked(await desk.turn("Order and write"))}
        [size] = asked(await desk.turn(resume=[resolved(questions["call_1"], approved=True)]))
        assert called == ["order"]
        assert outcome(await desk.turn(resume=[answered(size, "L")])) == {"type": "success"}
        assert called == ["order", "order", "send to Ann"]


async def test_a_child_is_not_begun_again_while_nothing_that_it_asked_is_answered():
    @tool(approval=True)
    async def send(to: str) -> str:
        """Send."""
        return f"Sent to {to}."

    writer = sender(calls(("send", '{"to": "Ann"}')), says("It is sent"), tools=[send])
    both = calls(("writer", '{"prompt": "Write"}'), ("send", '{"to": "Bob"}'))
    async with page(both, says("Done"), tools=[writer, send]) as desk:
        questions = {each["toolCallId"]: each for each in asked(await desk.turn("Write to both"))}
        second = await desk.turn(resume=[resolved(questions.pop("call_1"), approved=True)])
        assert "SUBAGENT_STARTED" not in second.types
        [left] = asked(second)
        assert left["id"] == next(iter(questions.values()))["id"]
        assert outcome(await desk.turn(resume=[resolved(left, approved=True)])) == {"type": "success"}
        await agree(desk)


async def test_a_child_that_is_answered_bit_by_bit_keeps_what_came_of_each_answer():
    @tool(approval=True)
    async def send(ctx: ToolContext, to: str) -> str:
        """Send."""
        ctx.activity("sending", {"to": to}, activity_id="sending")
        return f"Sent to {to}."

    two = calls(("send", '{"to": "Ann"}'), ("send", '{"to": "Bob"}'))
    writer = sender(two, says("Both are sent"), tools=[send])
    async with page(ASK_WRITER, says("Done"), tools=[writer]) as desk:
        ann, bob = asked(await desk.turn("Write to both"))
        second = await desk.turn(resume=[resolved(ann, approved=True)])
        assert [each["id"] for each in asked(second)] == [bob["id"]]
        await agree(desk)
        assert outcome(await desk.turn(resume=[resolved(bob, approved=True)])) == {"type": "success"}
        await agree(desk)
        shown = [message["content"] for message in desk.page.messages if message["role"] == "activity"]
        assert shown == [{"to": "Ann"}, {"to": "Bob"}]


# --- the same answer again ----------------------------------------------------------------------------------------


@pytest.mark.requirement("R-071", "R-170")
async def test_a_page_that_shows_what_came_of_its_answer_is_not_told_it_word_by_word_again():
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        entry = resolved(interrupt, approved=True)
        first = await desk.turn(resume=[entry])
        again = await desk.turn(resume=[entry])
        assert again.headers["x-run-id"] == first.headers["x-run-id"]
        assert "TEXT_MESSAGE_START" not in again.types
        assert outcome(again) == {"type": "success"}
        await agree(desk)


async def test_an_old_answer_takes_nothing_from_a_page_that_has_gone_on():
    async with page(SEND, says("It is sent"), says("You are welcome")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        entry = resolved(interrupt, approved=True)
        await desk.turn(resume=[entry])
        await desk.turn("Thanks")
        before = copy.deepcopy(desk.page.messages)
        assert outcome(await desk.turn(resume=[entry])) == {"type": "success"}
        assert desk.page.messages == before
        assert desk.done == ["sent to Ann"]


@pytest.mark.requirement("R-170")
async def test_an_answer_goes_on_however_often_its_run_has_failed():
    async with page(SEND, CUT, CUT, says("It is sent"), model_retries=0) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        entry = resolved(interrupt, approved=True)
        for _ in range(2):
            assert (await desk.turn(resume=[entry])).events[-1]["code"] == "stream_cut"
        assert outcome(await desk.turn(resume=[entry])) == {"type": "success"}
        assert desk.done == ["sent to Ann"]
        await agree(desk)
        last = await desk.turn(resume=[entry])
        assert outcome(last) == {"type": "success"}
        assert len(desk.model.prompts) == 4


async def test_a_new_message_beside_an_old_answer_is_heard():
    async with page(SEND, says("It is sent"), says("You are welcome")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        entry = resolved(interrupt, approved=True)
        await desk.turn(resume=[entry])
        answer = await desk.turn("Thanks", resume=[entry])
        assert outcome(answer) == {"type": "success"}
        assert desk.prompt[-1] == "user: Thanks"
        assert results(answer) == {}
        await agree(desk)
