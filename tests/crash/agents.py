"""An agent whose tool leaves a line for each execution in the file that AGUI_BRIDGE_TRACE names."""

from __future__ import annotations

import os

from agui_bridge import Agent, ToolContext, tool


@tool
async def note(ctx: ToolContext, text: str) -> str:
    """Note something down."""
    descriptor = os.open(os.environ["AGUI_BRIDGE_TRACE"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{ctx.idempotency_key}\n".encode())
    os.close(descriptor)
    return f"noted {text}"


agent = Agent("noting", tools=[note])
