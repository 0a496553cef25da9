"""The tools of a page: what a model is told of them, and what is wrong with them. Pure.

Whatever a request says of its tools, a run begins: a page does not know our tools, nor what providers accept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import cast

from agui_bridge.run_input import RunInput
from runtime.canonical import Json, JsonObject
from runtime.items import ToolSpec
from runtime.tool_choice import ToolChoice
from runtime.tools.toolbox import NAME

_SHOWN = 80


def client_tools(run_input: RunInput) -> list[ToolSpec]:
    """The frontend tools of a request as a model is told of them, of two with one name the last.

    Parameters that are no object schema become one. A name that a provider would refuse is left out: the refusal
    would be that of the whole run.
    """
    tools = [
        ToolSpec(tool["name"], tool["description"], _object_schema(tool.get("parameters")))
        for tool in run_input.tools
        if NAME.fullmatch(tool["name"])
    ]
    return list({tool.name: tool for tool in tools}.values())


def tool_choice(run_input: RunInput) -> ToolChoice | None:
    """What `forwardedProps.toolChoice` asks for, in the words of OpenAI's APIs, which is how CopilotKit says it; None
    if the model may choose."""
    asked = _members(run_input.forwarded_props).get("toolChoice")
    if asked == "none" or asked == "required":
        return ToolChoice(any=asked == "required")
    members = _members(asked)
    if members.get("type") != "function":
        return None
    name = _members(members.get("function", members)).get("name")
    return ToolChoice(name) if isinstance(name, str) else None


def _members(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def doubts(run_input: RunInput, ours: Collection[str]) -> Iterator[str]:
    """What the log should say of a request's tools; `ours` are the names of the agent's, which win."""
    for name in dict.fromkeys(tool["name"] for tool in run_input.tools):
        if not NAME.fullmatch(name):
            yield (
                f"{name[:_SHOWN]!r} of the page cannot be a tool's name (letters, digits, _ and -, 1 to 64 of them), "
                "and was left out"
            )
        elif name in ours:
            yield f"the page's tool {name} has the name of a tool of ours, which wins"


def _object_schema(given: Json) -> JsonObject:
    schema: JsonObject = cast("JsonObject", given) if isinstance(given, dict) else {}
    if schema.get("type") == "object" and "properties" in schema:
        return schema
    missing: JsonObject = {"type": "object", "properties": {}}
    return missing if schema.get("type", "object") != "object" else missing | schema
