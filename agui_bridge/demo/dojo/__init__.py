"""The agents of the AG-UI Dojo's features, on the paths of the integrations that its pages and tests know.

`agui-bridge serve agui_bridge.demo.dojo:agents --model openai:gpt-5-mini`: then CREW_AI_URL and LANGGRAPH_FAST_API_URL
of the Dojo are `http://127.0.0.1:8000/agents`, and PYDANTIC_AI_URL is `http://127.0.0.1:8000/agents/pydantic-ai`. One
family of features is a module.

The pages decide the names of tools, the members of the state and the shapes of questions; which model answers is
nobody's business here.
"""

from __future__ import annotations

from typing import Final

from agui_bridge import Agent
from agui_bridge.demo.dojo import chat, crew, documents, meetings, plans, recipes, travel, weather

__all__ = ["agents"]

_EVERYWHERE: Final = {
    "agentic_chat": chat.agentic_chat,
    "agentic_chat_multimodal": chat.agentic_chat_multimodal,
    "agentic_chat_reasoning": chat.agentic_chat_reasoning,
    "tool_based_generative_ui": chat.tool_based_generative_ui,
    "predictive_state_updates": documents.predictive_state_updates,
}
_FLOWS: Final = {
    **_EVERYWHERE,
    "backend_tool_rendering": weather.weather_assistant,
    "human_in_the_loop": chat.human_in_the_loop,
    "agentic_generative_ui": plans.agentic_generative_ui,
    "shared_state": recipes.shared_state,
    "interrupt": meetings.interrupt,
}
_GRAPHS: Final = {
    **_EVERYWHERE,
    "backend_tool_rendering": weather.backend_tool_rendering,
    "human_in_the_loop": plans.human_in_the_loop_langgraph,
    "agentic_generative_ui": plans.agentic_generative_ui_langgraph,
    "shared_state": recipes.shared_state,
    "subgraphs": travel.subgraphs,
}
_PYDANTIC: Final = {
    **_EVERYWHERE,
    "backend_tool_rendering": weather.backend_tool_rendering,
    "human_in_the_loop": chat.human_in_the_loop,
    "agentic_generative_ui": plans.agentic_generative_ui_pydantic,
    "shared_state": recipes.shared_state_pydantic,
}


def _below(path: str, features: dict[str, Agent]) -> dict[str, Agent]:
    return {f"{path}{feature}": agent for feature, agent in features.items()}


agents: Final[dict[str, Agent]] = {
    **_FLOWS,
    "crew_chat": crew.crew_chat,
    "error_flow": crew.error_flow,
    **_below("conversational_flows/", _FLOWS),
    **_below("agent/", _GRAPHS),
    **_below("pydantic-ai/", _PYDANTIC),
}
"""What is served, by the paths below `/agents`."""
