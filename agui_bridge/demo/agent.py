"""The demo agent."""

from __future__ import annotations

from agui_bridge.demo.phrases import phrases
from agui_bridge.demo.research import research_tool
from agui_bridge.demo.tools import TOOLS
from runtime.agent import Agent
from runtime.models import Model
from runtime.scripted import ScriptedModel


def demo_agent(model: Model | str | None = None) -> Agent:
    """The demo agent, on the scripted model or on a real one."""
    return Agent(
        "demo",
        model=ScriptedModel(phrases) if model in (None, "scripted") else model,
        instructions="You are the demo agent of agui-bridge. Be brief and friendly; use your tools when they fit.",
        description="Shows everything that the server can do, offline.",
        tools=[*TOOLS, research_tool(model)],
    )


agent = demo_agent()
