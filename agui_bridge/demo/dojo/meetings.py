"""An agent that stops in the middle of its work to have the user pick a time."""

from __future__ import annotations

from typing import Any, Final

from agui_bridge import Agent, ToolContext, tool

_CHOICE: Final = {
    "type": "object",
    "properties": {
        "chosen_time": {"type": "string"},
        "chosen_label": {"type": "string"},
        "cancelled": {"type": "boolean"},
    },
}


@tool
async def schedule_meeting(ctx: ToolContext, topic: str, attendee: str = "") -> str:
    """Have the user pick a time for a meeting, and book it.

    Args:
        topic: What it is about, in a few words.
        attendee: Whom the user meets.
    """
    meeting = {"topic": topic, "attendee": attendee}
    choice: Any = await ctx.interrupt(
        message="Pick a time for this meeting.",
        response_schema=_CHOICE,
        metadata={"crewai": {"output": meeting}},
    )
    when = choice.get("chosen_label") or choice.get("chosen_time")
    if choice.get("cancelled") or not when:
        return f"The user does not want to book {topic!r} now."
    return f"Booked {topic!r} for {when}."


interrupt = Agent(
    "interrupt",
    instructions="You book meetings. Work out what is to be met about and with whom, and call schedule_meeting, which "
    "asks the user for a time. Then say in one or two friendly sentences what became of it, and ask nothing more.",
    description="Stops to have a time picked.",
    tools=[schedule_meeting],
)
