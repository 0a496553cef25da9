"""Agents that plan: the page shows their steps as shared state, or asks which of them are to be done."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from agui_bridge import Agent, ToolContext, ToolError, tool

_PLANNER: Final = (
    "You do whatever you are asked to, however unlikely. Whenever you are asked to do something, call {tool}; it plans "
    "and does it. Afterwards do not repeat the steps: say in one sentence, with an emoji or two, that it is done."
)

WORK_S = 0.4
"""How long a step seems to take, in seconds."""


class Step(BaseModel):
    """A step of a plan."""

    description: str = Field(description="What is done, in a few words, in gerund form: Opening the door.")
    status: Literal["pending", "completed"] = "pending"


class Proposal(BaseModel):
    """A step that may still be taken out of a plan."""

    description: str = Field(description="What to do, in a few words, in imperative form: Open the door.")
    status: Literal["enabled", "disabled", "executing"] = "enabled"


async def _carry_out(ctx: ToolContext, steps: list[Step]) -> str:
    ctx.state["steps"] = [step.model_dump() for step in steps]
    for step in ctx.state["steps"]:
        ctx.publish_state()
        await asyncio.sleep(WORK_S)
        step["status"] = "completed"
    return "Steps executed."


@tool(predict_state={"steps": "steps"})
async def generate_task_steps(ctx: ToolContext, steps: list[Step]) -> str:
    """Plan a task in about ten steps, and carry them out.

    Args:
        steps: The steps, in their order, each of them pending.
    """
    return await _carry_out(ctx, steps)


@tool(predict_state={"steps": "steps"})
async def generate_task_steps_generative_ui(ctx: ToolContext, steps: list[Step]) -> str:
    """Plan a task in about ten steps, and carry them out.

    Args:
        steps: The steps, in their order, each of them pending.
    """
    return await _carry_out(ctx, steps)


@tool
async def create_plan(ctx: ToolContext, steps: list[str]) -> str:
    """Make a plan, which the user sees.

    Args:
        steps: What is to be done, step by step.
    """
    ctx.state["steps"] = [{"description": step, "status": "pending"} for step in steps]
    return "The plan is shown."


@tool
async def update_plan_step(
    ctx: ToolContext,
    index: int,
    description: str | None = None,
    status: Literal["pending", "completed"] | None = None,
) -> str:
    """Change a step of the plan.

    Args:
        index: Which step, counted from 0.
        description: What it is now, if that changes.
        status: How far it is now, if that changes.
    """
    steps: list[Any] = ctx.state.get("steps", [])
    if not 0 <= index < len(steps):
        raise ToolError(f"The plan has {len(steps)} steps, counted from 0.")
    changes = {"description": description, "status": status}
    steps[index].update({name: value for name, value in changes.items() if value is not None})
    return "The step is changed."


@tool
async def plan_execution_steps(ctx: ToolContext, steps: list[Proposal]) -> str:
    """Plan a task in about ten steps, and have the user choose which of them are to be done.

    Args:
        steps: The steps, in their order, each of them enabled.
    """
    plan = [{"description": step.description, "status": "enabled"} for step in steps]
    chosen: Any = await ctx.interrupt(
        message="Which steps are to be done?", response_schema={"type": "string"}, metadata={"value": {"steps": plan}}
    )
    return str(chosen)


agentic_generative_ui = Agent(
    "agentic_generative_ui",
    instructions=_PLANNER.format(tool="generate_task_steps"),
    description="Plans a task, and shows how far it is.",
    tools=[generate_task_steps],
)

agentic_generative_ui_langgraph = Agent(
    "agentic_generative_ui",
    instructions=_PLANNER.format(tool="generate_task_steps_generative_ui"),
    description="Plans a task, and shows how far it is.",
    tools=[generate_task_steps_generative_ui],
)

agentic_generative_ui_pydantic = Agent(
    "agentic_generative_ui",
    instructions=_PLANNER.format(tool="create_plan, then update_plan_step for each step"),
    description="Plans a task, and shows how far it is.",
    tools=[create_plan, update_plan_step],
)

human_in_the_loop_langgraph = Agent(
    "human_in_the_loop",
    instructions="You perform tasks for the user. Plan each one with plan_execution_steps; it answers with the steps "
    "that the user wants. Then tell in at most three sentences how you did these and no others, with some humour where "
    "a needed step is missing.",
    description="Asks which steps of its plans are to be done.",
    tools=[plan_execution_steps],
    interrupt_style="legacy",
)
