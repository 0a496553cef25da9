"""The demo's second agent: a researcher, who is asked by the first and may ask itself in turn."""

from __future__ import annotations

from agui_bridge.demo.phrases import phrases
from agui_bridge.demo.tools import failing_tool, slow_tool
from runtime.agent import Agent
from runtime.canonical import Json
from runtime.models import Model
from runtime.scripted import ScriptedModel
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import Tool, tool


@tool(parallel=True, idempotent=True)
def look_up(topic: str) -> str:
    """Look a topic up in the demo's library.

    Args:
        topic: What to look for.
    """
    words = topic.split()
    return (
        f"{len(words)} {'entry' if len(words) == 1 else 'entries'} found: {', '.join(word.lower() for word in words)}."
    )


def research_tool(model: Model | str | None = None) -> Tool:
    """The tool by which the demo agent has a topic researched, on this model."""

    tools: list[Tool] = [look_up, slow_tool, failing_tool]
    researcher = Agent(
        "researcher",
        model=ScriptedModel(phrases) if model in (None, "scripted") else model,
        instructions="You are a researcher. Look things up, then say what you found in one or two sentences.",
        description="Finds things out.",
        tools=tools,
    )

    @tool(parallel=True, delegates_to=researcher)
    async def research(ctx: ToolContext, topic: str) -> Json:
        """Have a topic researched by another agent.

        Args:
            topic: What to find out; a command of the scripted model is passed on as it is.
        """
        return await ctx.delegate(researcher, topic if topic.startswith("/") else f"Research: {topic}")

    tools.append(research)  # a researcher may ask another one
    return research
