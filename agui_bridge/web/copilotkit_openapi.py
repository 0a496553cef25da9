"""The routes of CopilotKit's runtime protocol in the API's description. Pure data."""

from __future__ import annotations

from typing import Final

from agui_bridge.web.openapi_pieces import (
    AGENT_NAME,
    LIMIT,
    RUN_HEADERS,
    agui,
    json_answer,
    operation,
    parameter,
    stream,
    under,
)
from agui_bridge.web.openapi_schemas import ID, TEXT, ref
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
    "/agent/{agent}/suggest": under(
        AGENT_NAME,
        post=operation(
            "copilotkit_suggest",
            "What a user might say next: a run that leaves nothing behind, and in which the agent does nothing.",
            stream("The run as events of AG-UI."),
            404,
            409,
            body="RunAgentInput",
        ),
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
    "/threads": {
        "get": operation(
            "copilotkit_list_threads",
            "Your threads for CopilotKit's `useThreads`, the last used first.",
            json_answer(200, "A page.", "CopilotKitThreads"),
            422,
            parameters=(
                parameter("agentId", "query", TEXT, "Threads of this agent alone."),
                parameter(
                    "includeArchived",
                    "query",
                    {"type": "string", "enum": ["true", "false"], "default": "false"},
                    "Also those that were put away.",
                ),
                LIMIT,
                parameter("cursor", "query", TEXT, "The `nextCursor` of the page before."),
            ),
        )
    },
    "/threads/subscribe": {
        "post": operation(
            "copilotkit_subscribe", "Refused, as info says: no list is told of changes.", {}, 400, 413, 415, 422
        )
    },
    "/threads/{thread}/messages": under(
        _THREAD,
        get=operation(
            "copilotkit_messages",
            "What a page would show of the thread.",
            json_answer(200, "All messages.", "CopilotKitMessages"),
            404,
        ),
    ),
    "/threads/{thread}/events": under(
        _THREAD,
        get=operation(
            "copilotkit_events",
            "As short a stream of AG-UI events as builds what a page would show.",
            json_answer(200, "All events.", "CopilotKitEvents"),
            404,
        ),
    ),
    "/threads/{thread}/state": under(
        _THREAD,
        get=operation("copilotkit_state", "The shared state.", json_answer(200, "The state.", "CopilotKitState"), 404),
    ),
    "/threads/{thread}/archive": under(
        _THREAD,
        post=operation(
            "copilotkit_archive",
            "Put a thread away: it is left out of lists, and nothing else.",
            json_answer(200, "It is put away.", "CopilotKitArchived"),
            400,
            404,
            413,
            415,
        ),
    ),
    "/threads/{thread}": under(
        _THREAD,
        patch=operation(
            "copilotkit_change_thread",
            "Another name for a thread, or put away or taken back. What is absent stays; a name of null is taken away.",
            json_answer(200, "The thread as it is now.", "CopilotKitThread"),
            404,
            body="CopilotKitThreadChange",
        ),
        delete=operation(
            "copilotkit_delete_thread",
            "Hide a thread and cancel what is at work in it. From then on it is as if it had never been.",
            json_answer(200, "It is gone.", "CopilotKitDeleted"),
            400,
            404,
            413,
            415,
        ),
    ),
}
"""CopilotKit's runtime protocol, by the paths below its prefix."""
