"""What a page might say next: how CopilotKit asks a model for that, and how little of an agent is needed for it. Pure.

The request is a run on a thread of its own, with the history that the page shows, one tool and the wish that it be
called. Nothing of it is ever asked for again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, cast

from agui_bridge.page_tools import tool_choice
from agui_bridge.run_input import RunInput
from runtime.agent import Agent
from runtime.canonical import JsonObject
from runtime.hooks import AFTER_ROUND, BEFORE_ROUND

SUGGEST: Final = "copilotkitSuggest"
"""The tool by which a model gives its suggestions."""

_ROUNDS: Final = (BEFORE_ROUND, AFTER_ROUND)


def asks_for_suggestions(run_input: RunInput) -> bool:
    """Whether this is such a request, whatever route it comes by: older pages, and those of the single endpoint, send
    it as a run."""
    choice = tool_choice(run_input)
    return choice is not None and choice.name == SUGGEST and [tool["name"] for tool in run_input.tools] == [SUGGEST]


def in_words(run_input: RunInput) -> RunInput:
    """The request without its media: they are kept with the conversation, and a guess does not need them."""
    return replace(run_input, messages=[_in_words(message) for message in run_input.messages])


def suggesting(agent: Agent) -> Agent:
    """The agent as it may be asked for suggestions: without tools it does nothing, and it owes no value. Hooks of its
    rounds are asked, the others have nothing to be asked of."""
    hooks = [hook for hook in agent.hooks if hook.point in _ROUNDS]
    return replace(agent, tools=(), hooks=hooks, output_type=None, output_mode=None, state_type=None)


def _in_words(message: JsonObject) -> JsonObject:
    content: Any = message.get("content")
    if not isinstance(content, list):
        return message
    parts = [part for part in cast("list[JsonObject]", content) if part.get("type") == "text"]
    return {**message, "content": parts or ""}
