"""Agents that talk: with what the page has to offer, about pictures, and thinking aloud."""

from __future__ import annotations

from typing import Final

from agui_bridge import Agent, BeforeRound, ChangeRequest, before_round
from agui_bridge.demo.dojo.weather import get_weather
from runtime.canonical import JsonObject

_ASSISTANT: Final = "You are a helpful assistant. Be brief and friendly."

_THOUGHTS: Final[dict[str, tuple[tuple[str, ...], JsonObject]]] = {
    "openai-responses": (("gpt-5", "o1", "o3", "o4"), {"reasoning": {"effort": "medium", "summary": "auto"}}),
    "anthropic": (("claude",), {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
}
"""By dialect, which models show what they think when they are asked to, and how they are asked."""


@before_round
def think_aloud(asked: BeforeRound) -> ChangeRequest | None:
    """Ask a model that thinks to show what it thinks."""
    models, options = _THOUGHTS.get(asked.dialect, ((), {}))
    return ChangeRequest(options=options) if str(asked.options["model"]).startswith(models) else None


agentic_chat = Agent(
    "agentic_chat",
    instructions=f"{_ASSISTANT} Use the application's tools when they are asked for.",
    description="Talks, knows the weather, and changes the page when it is asked to.",
    tools=[get_weather],
)

agentic_chat_reasoning = Agent(
    "agentic_chat_reasoning",
    instructions=f"{_ASSISTANT} Think before you answer.",
    description="Shows what it thinks before it answers.",
    hooks=[think_aloud],
)

agentic_chat_multimodal = Agent(
    "agentic_chat_multimodal",
    instructions=f"{_ASSISTANT} Describe what is in the pictures and documents that you are given.",
    description="Looks at pictures and reads documents.",
)

tool_based_generative_ui = Agent(
    "tool_based_generative_ui",
    instructions="You write haikus. Show each one that you are asked for with the tool generate_haiku, with a picture "
    "and a gradient that fit its mood, and say nothing more.",
    description="Writes haikus, which the page draws.",
)

human_in_the_loop = Agent(
    "human_in_the_loop",
    instructions="You perform tasks for the user. Plan each one first, with the tool generate_task_steps, in as many "
    "steps as you are asked for. The user takes steps out of the plan, and accepts it or not. If it is accepted, tell "
    "in at most three sentences how you did what is left of it, with some humour where a needed step is missing. If it "
    "is not, ask what should be different, and plan again when you know.",
    description="Has its plans approved by the page.",
)
