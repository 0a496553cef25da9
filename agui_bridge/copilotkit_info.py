"""What a server tells a CopilotKit page of itself, and what such a page says without a body of AG-UI. Pure.

The shapes are those of the runtime protocol that `@copilotkit/core` 1.74 speaks: an info document, the scope of a stop,
and an envelope by which everything goes through one path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from agui_bridge.capabilities import capabilities
from agui_bridge.run_input import MalformedInput, is_id
from agui_bridge.settings import Settings
from runtime.canonical import Json, JsonObject
from runtime.errors import NotFound
from runtime.live_runs import Performer

VERSION: Final = "1.74.0"
"""The version of CopilotKit's runtime whose protocol is spoken."""

_MODE: Final = "sse"
"""Runs are streams; the other mode that there is needs a platform with websockets."""

_THREADS: Final[JsonObject] = {"list": True, "inspect": True, "mutations": True, "realtimeMetadata": False}


def runtime_info(performers: Mapping[str, Performer], settings: Settings) -> JsonObject:
    """The info document: `{version, mode, agents: {id: {name, description, className, capabilities}}, …}`."""
    return {
        "version": VERSION,
        "mode": _MODE,
        "agents": {agent_id: _agent(agent_id, each, settings) for agent_id, each in performers.items()},
        "audioFileTranscriptionEnabled": False,
        "threadEndpoints": _THREADS,
        "singleRoute": {"resourceOperations": True, "threadEndpoints": _THREADS},
        "suggestions": True,
        "a2uiEnabled": False,
        "openGenerativeUIEnabled": False,
        "telemetryDisabled": True,
    }


def _agent(agent_id: str, performer: Performer, settings: Settings) -> JsonObject:
    agent = performer.agent
    return {
        "name": agent_id,
        "description": agent.description,
        "className": type(agent).__name__,
        "capabilities": capabilities(agent, performer.model, settings),
    }


def stop_scope(document: Json) -> str | None:
    """The `runId` that a stop is meant for; None: whatever runs. Raises MalformedInput."""
    if document is None:
        return None
    run_id = _object(document, "").get("runId")
    if run_id is None or is_id(run_id):
        return run_id
    raise _malformed("/runId", "a run's id")


@dataclass(frozen=True, slots=True)
class Envelope:
    """A request of the single endpoint: what is wanted, of which agent and thread, and the body of it."""

    method: str
    params: JsonObject
    body: Json = None

    @property
    def agent_id(self) -> str:
        """Raises MalformedInput, NotFound for what cannot be one."""
        return self._id("agentId")

    @property
    def thread_id(self) -> str:
        """Raises MalformedInput, NotFound for what cannot be one."""
        return self._id("threadId")

    def text(self, name: str) -> str:
        """A parameter that has to be there. Raises MalformedInput."""
        value = self.params.get(name)
        if not isinstance(value, str):
            raise _malformed(f"/params/{name}", "a text")
        return value

    def _id(self, name: str) -> str:
        value = self.text(name)
        if not is_id(value):
            raise NotFound
        return value


def envelope(document: Json) -> Envelope:
    """The envelope in a request's document, `{method, params?, body?}`. Raises MalformedInput."""
    members = _object(document, "")
    method, params = members.get("method"), members.get("params")
    if not isinstance(method, str):
        raise _malformed("/method", "a text")
    return Envelope(method, {} if params is None else _object(params, "/params"), members.get("body"))


def _object(value: Json, at: str) -> JsonObject:
    if not isinstance(value, dict):
        raise _malformed(at, "an object")
    return cast("JsonObject", value)


def _malformed(path: str, expected: str) -> MalformedInput:
    message = f"{path or 'The body'} must be {expected}."
    return MalformedInput(message, details={"path": path, "expected": expected})
