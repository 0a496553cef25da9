"""The routes of CopilotKit's runtime protocol in the API's description. Pure data."""

from __future__ import annotations

from typing import Final

from agui_bridge.web.openapi_pieces import (
    AGENT_NAME,
    RUN_HEADERS,
    agui,
    json_answer,
    operation,
    parameter,
    stream,
    under,
)
from agui_bridge.web.openapi_schemas import ID, ref
from runtime.canonical import JsonObject

_THREAD: Final = parameter("thread", "path", ID, "A thread's id: the page's threadId.", required=True)
COPILOTKIT: Final[JsonObject] = {
    "": {
        "post": operation(
            "copilotkit_single_endpoint",
            "CopilotKit's runtime protocol through one path: each of the operations below by the name of its `method`.",
            stream("A run, for `agent/run` and `agent/connect`; JSON for the others.", RUN_HEADERS),
            404,
            409,
            429,
            body="CopilotKitEnvelope",
        )
    },
    "/info": {
        "get": operation(
            "copilotkit_info",
            "What a CopilotKit page is told of this server: its agents, and what they can do.",
            json_answer(200, "The info document.", "CopilotKitInfo"),
        )
    },
    "/agent/{agent}/run": under(AGENT_NAME, post=agui("copilotkit_run", "Runs an agent for a CopilotKit page.")),
    "/agent/{agent}/connect": under(
        AGENT_NAME, post=agui("copilotkit_connect", "For a CopilotKit page that comes back to its thread.")
    ),
    "/agent/{agent}/stop/{thread}": {
        "parameters": [AGENT_NAME, _THREAD],
        "post": operation(
            "copilotkit_stop",
            "Stop what runs on a thread, or the run that the body names. For the page it is finished.",
            json_answer(200, "Whether anything was there to be stopped.", "CopilotKitStopped"),
            400,
            404,
            413,
            415,
            422,
        )
        | {"requestBody": {"required": False, "content": {"application/json": {"schema": ref("CopilotKitStop")}}}},
    },
}
"""CopilotKit's runtime protocol, by the paths below its prefix."""
