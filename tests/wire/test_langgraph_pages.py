"""Pages made for LangGraph: asked by a CUSTOM event, they answer by a value alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import orjson
import pytest

from agui_bridge import Agent, Interrupt, RunContext
from runtime.errors import ConfigurationError
from tests.serving import Answer, serving
from tests.wire.test_interrupts import Page, asked

STEPS = {"steps": [{"description": "mix", "status": "enabled"}]}


async def planner(ctx: RunContext) -> AsyncGenerator[Any, None]:
    """Asks which steps to take."""
    answer = ctx.answers.get("plan")
    if answer is None:
        yield Interrupt("plan", metadata={"value": STEPS})
    else:
        yield f"Doing {orjson.dumps(answer.payload).decode()}"


@asynccontextmanager
async def page(style: str, function: Any = planner) -> AsyncGenerator[Page, None]:
    async with serving(Agent("a", executor=function, interrupt_style=style)) as served:
        yield Page(served, cast("Any", None))


def values(answer: Answer) -> list[str]:
    return [event["value"] for event in answer.events if event.get("name") == "on_interrupt"]


def text_of(answer: Answer) -> str:
    return "".join(event["delta"] for event in answer.events if event["type"] == "TEXT_MESSAGE_CONTENT")


@pytest.mark.parametrize(("style", "told"), [("standard", []), ("legacy", [STEPS]), ("both", [STEPS])])
async def test_a_question_is_told_in_the_style_of_its_agent(style: str, told: list[Any]):
    async with page(style) as desk:
        answer = await desk.turn("plan")
        assert [orjson.loads(value) for value in values(answer)] == told
        assert ("outcome" in answer.events[-1]) == (style != "legacy")
        if told:
            assert answer.types[-2:] == ["CUSTOM", "RUN_FINISHED"]


@pytest.mark.parametrize("event", [orjson.dumps(STEPS).decode(), STEPS])
@pytest.mark.parametrize(
    ("value", "read"), [("yes", "yes"), ('{"accepted":true}', {"accepted": True}), ({"a": 1}, {"a": 1}), ("3", "3")]
)
async def test_such_a_page_answers_by_a_value(event: Any, value: Any, read: Any):
    async with page("legacy") as desk:
        await desk.turn("plan")
        command = {"resume": value, "interruptEvent": event}
        answer = await desk.turn(run="fresh", forwardedProps={"command": command})
        assert text_of(answer) == f"Doing {orjson.dumps(read).decode()}"


async def test_a_value_that_was_meant_for_another_question_answers_nothing():
    async with page("legacy") as desk:
        await desk.turn("plan")
        command = {"resume": "yes", "interruptEvent": {"steps": []}}
        answer = await desk.turn(run="fresh", forwardedProps={"command": command})
        assert len(values(answer)) == 1


async def test_a_page_that_comes_back_is_asked_again_in_its_style():
    async with page("legacy") as desk:
        first = await desk.turn("plan")
        again = await desk.served.run(
            {"threadId": "t1", "runId": "c", "messages": [], "protocolVersion": "1.0"}, path="/connect"
        )
        assert values(again) == values(first)
        assert "outcome" not in again.events[-1]


async def test_a_question_without_a_value_is_told_as_the_interrupt_that_it_is():
    async def asks(ctx: RunContext):
        yield Interrupt("a", "Sure?")

    async with page("both", asks) as desk:
        answer = await desk.turn("go")
        [interrupt] = asked(answer)
        assert [orjson.loads(value) for value in values(answer)] == [interrupt]


def test_there_are_three_styles():
    with pytest.raises(ConfigurationError, match="standard, legacy, both"):
        Agent("a", interrupt_style="old")
