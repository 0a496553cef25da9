"""An agent whose tool leaves a line for each execution in the file that AGUI_BRIDGE_TRACE names."""

from __future__ import annotations

import asyncio
import os

from agui_bridge import Agent, ToolContext, tool


@tool
async def note(ctx: ToolContext, text: str) -> str:
    """Note something down."""
    _leave_a_line(ctx)
    return f"noted {text}"


@tool(approval=True)
async def publish(ctx: ToolContext, text: str) -> str:
    """Publish something, and never come to an end."""
    _leave_a_line(ctx)
    await asyncio.Event().wait()
    return f"published {text}"


def _leave_a_line(ctx: ToolContext) -> None:
    descriptor = os.open(os.environ["AGUI_BRIDGE_TRACE"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{ctx.idempotency_key}\n".encode())
    os.close(descriptor)


agent = Agent("noting", tools=[note, publish])
