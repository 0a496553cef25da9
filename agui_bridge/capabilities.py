"""What an agent can do, as AG-UI's `AgentCapabilities`: derived from the agent, its model and the settings.

Pure. A flag is true for what holds and false for what cannot be. What only a run shows is left out: whether a tool
that is given the context asks with it, whether a model takes images of which nobody says so, whether a provider wants
an approval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from agui_bridge.settings import Settings
from runtime.agent import Agent
from runtime.canonical import JsonObject
from runtime.media import data_source
from runtime.models import Model, Receiving, Thinking
from runtime.tools.toolbox import Tool

_TRANSPORT: Final[JsonObject] = {
    "streaming": True,
    "websocket": False,
    "httpBinary": True,
    "pushNotifications": False,
    "resumable": True,
}
"""What every agent is served over. `resumable` speaks of the cursor of `/api/agent-runs/{run_id}/events`."""


def capabilities(agent: Agent, model: Model, settings: Settings) -> JsonObject:
    """The capabilities of an agent that is performed on this model. Groups of which nothing is known are left out."""
    groups: dict[str, dict[str, Any]] = {
        "identity": {"name": agent.name, "type": "agui-bridge", "description": agent.description or None},
        "transport": _TRANSPORT,
        "tools": _tools(agent),
        "output": {"structuredOutput": agent.output_type is not None},
        "state": {"snapshots": True, "deltas": any(map(_uses_context, agent.toolbox)), "persistentState": True},
        "multiAgent": _multi_agent(agent),
        "multimodal": _multimodal(agent, model),
        "reasoning": _reasoning(model),
        "execution": {"maxIterations": agent.budget.with_rounds(settings.max_rounds).rounds},
        "humanInTheLoop": _human_in_the_loop(agent, settings),
    }
    known = {group: _known(members) for group, members in groups.items()}
    return {group: members for group, members in known.items() if members}


def _known(members: dict[str, Any]) -> JsonObject:
    return {name: value for name, value in members.items() if value is not None}


def _tools(agent: Agent) -> dict[str, Any]:
    """Of the tools the agent's own are listed: those of a page come with its requests, and to every agent."""
    items = [
        {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
        for spec in agent.toolbox.specs()
    ]
    parallel = True if any(tool.parallel for tool in agent.toolbox) else None  # a page may run its own together
    return {"supported": True, "items": items, "parallelCalls": parallel, "clientProvided": True}


def _multi_agent(agent: Agent) -> dict[str, Any]:
    asked = list({each.name: each for each in _subagents(agent)}.values())
    delegates = True if asked else _unless_it_may(agent)
    subagents = [_known({"name": each.name, "description": each.description or None}) for each in asked]
    return {"supported": delegates, "delegation": delegates, "handoffs": False, "subagents": subagents or None}


def _reasoning(model: Model) -> dict[str, Any]:
    """All reasoning that is shown is streamed as it comes."""
    shown = model.shows_reasoning if isinstance(model, Thinking) else None
    return {"supported": shown, "streaming": shown}


def _multimodal(agent: Agent, model: Model) -> dict[str, Any]:
    """What is known of its input: kinds that its format has no place for, or that its model is said not to take, are
    false. A document that is text reaches every model."""
    known = model.input_media if isinstance(model, Receiving) else None
    kinds = known if agent.input_media is None else agent.input_media
    kept = {"image": ("image", "image/png"), "audio": ("audio", "audio/wav"), "video": ("video", "video/mp4")}
    declared = {name: _takes(model, kinds, *sample) for name, sample in kept.items()}
    declared |= {"pdf": _takes(model, kinds, "document", "application/pdf"), "file": True}
    return {"input": _known(declared)}


def _takes(model: Model, kinds: Collection[str] | None, kind: str, media_type: str) -> bool | None:
    """Whether the model takes such media; None if only a run shows it."""
    part: JsonObject = {"type": kind, "source": data_source(b"a", media_type)}
    if (kinds is not None and kind not in kinds) or not model.dialect.takes(part, in_output=False):
        return False
    return None if kinds is None else True


def _human_in_the_loop(agent: Agent, settings: Settings) -> dict[str, Any]:
    """Every tool that needs an approval takes other arguments with it; what steers a run is another plan for it.

    Nothing is false of what a page can do with tools of its own.
    """
    asks = _asks(agent)
    steered = True if settings.on_busy == "steer" else None
    return {
        "supported": asks or steered or None,
        "approvals": asks,
        "interventions": steered,
        "interrupts": asks,
        "approveWithEdits": asks,
    }


def _asks(agent: Agent) -> bool | None:
    """Whether its runs may end with a question: its own tools', or those of the agents that it asks."""
    family = list(_family(agent))
    if any(tool.approval is not False for each in family for tool in each.toolbox):
        return True
    may_ask = any(_unless_it_may(each) is None or "tools" in each.model_options for each in family)
    return None if may_ask else False


def _unless_it_may(agent: Agent) -> bool | None:
    """False if no tool of the agent can do anything with its run; None if what they do is not known."""
    return None if any(map(_uses_context, agent.toolbox)) else False


def _uses_context(tool: Tool) -> bool:
    """Whether a tool is given the context for more than to hand its work on."""
    return tool.wants_context and tool.delegates_to is None


def _subagents(agent: Agent) -> Iterator[Agent]:
    return (tool.delegates_to for tool in agent.toolbox if tool.delegates_to is not None)


def _family(agent: Agent) -> Iterator[Agent]:
    """The agent, and all that are asked by it and below it, each once."""
    found = {id(agent): agent}
    waiting = [agent]
    while waiting:
        each = waiting.pop()
        yield each
        for below in _subagents(each):
            if id(below) not in found:
                found[id(below)] = below
                waiting.append(below)
