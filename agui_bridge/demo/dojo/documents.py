"""An agent that writes into the page's editor, and has what it wrote confirmed there."""

from __future__ import annotations

import asyncio

from agui_bridge import (
    Agent,
    BeforeRound,
    ChangeRequest,
    FunctionCallOutput,
    Respond,
    ToolContext,
    before_round,
    tool,
)
from agui_bridge.demo.dojo.shown_state import shown

DRAWING_S = 0.25
"""How long the page is left to draw a document, in seconds: its editor does so only while the run is at work."""


@tool(predict_state={"document": "document"})
async def write_document_local(ctx: ToolContext, document: str) -> str:
    """Write the document, in Markdown without italics and strike-through. Keep stories short.

    Args:
        document: All of it, also where only some words change; change no more than needed.
    """
    ctx.state["document"] = document
    return "Document written."


@before_round
async def have_it_confirmed(asked: BeforeRound) -> Respond | ChangeRequest:
    """What was written is put before the user by the page, without asking the model whether to."""
    last = asked.items[-1] if asked.items else None
    if isinstance(last, FunctionCallOutput) and last.tool_name == "write_document_local" and not last.is_error:
        await asyncio.sleep(DRAWING_S)
        return Respond(calls=[("confirm_changes", {})])
    return shown(asked, "document")


predictive_state_updates = Agent(
    "predictive_state_updates",
    instructions="You write documents. Write with write_document_local, always the whole document. The user then "
    "confirms what you wrote, or not. Do not repeat the document: say in one or two sentences what has changed.",
    description="Writes into the page's editor, and has it confirmed.",
    tools=[write_document_local],
    hooks=[have_it_confirmed],
)
