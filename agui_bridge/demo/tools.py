"""The demo's tools: small, deterministic, one for each thing that a tool can do or suffer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta, timezone
from typing import Any, cast

from runtime.tools.context import ToolContext
from runtime.tools.toolbox import Tool, ToolError, tool

_WEATHER = (("sunny", 24), ("cloudy", 17), ("rainy", 12), ("windy", 15), ("snowing", -2), ("foggy", 8))
_ZONES = {"oslo": 1, "berlin": 1, "paris": 1, "london": 0, "tokyo": 9, "new york": -5, "beijing": 8, "sydney": 10}
_NOON_UTC_MINUTES = 12 * 60


@tool(parallel=True, idempotent=True)
def get_weather(city: str) -> dict[str, Any]:
    """The weather in a city.

    Args:
        city: The city's name.
    """
    conditions, temperature = _WEATHER[sum(city.strip().lower().encode()) % len(_WEATHER)]
    return {"city": city, "conditions": conditions, "temperature": temperature, "unit": "°C"}


@tool(parallel=True, idempotent=True)
def get_time(tz: str) -> dict[str, str]:
    """The demo's time in a time zone; it is always noon in UTC here.

    Args:
        tz: A city or an offset from UTC such as +2.
    """
    hours = _offset(tz)
    minutes = (_NOON_UTC_MINUTES + int(hours * 60)) % (24 * 60)
    zone = timezone(timedelta(hours=hours))
    return {"tz": tz, "time": f"{minutes // 60:02d}:{minutes % 60:02d}", "offset": str(zone)}


def is_known(tz: str) -> bool:
    """Whether the demo's clock knows this city."""
    return tz.strip().lower() in _ZONES


def _offset(tz: str) -> float:
    name = tz.strip().lower()
    if name in _ZONES:
        return _ZONES[name]
    try:
        hours = float(name.removeprefix("utc") or 0)
    except ValueError:
        raise ToolError(f"I do not know the time zone {tz!r}; use a city or an offset such as +2.") from None
    if not -24 < hours < 24:
        raise ToolError("An offset is less than 24 hours.")
    return hours


@tool(approval=True)
async def send_email(ctx: ToolContext, to: str, subject: str, body: str) -> str:
    """Send an e-mail, once somebody has said that it may be sent.

    Args:
        to: The address.
        subject: What it is about.
        body: The text.
    """
    _list_in(ctx.state, "sent").append({"to": to, "subject": subject, "body": body})
    return f"Sent to {to}."


@tool
async def ask_user(ctx: ToolContext, question: str) -> str:
    """Ask the user something, and wait for the answer.

    Args:
        question: What to ask.
    """
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    given: Any = await ctx.interrupt("input_required", question, schema)
    return f"The user answered: {given['answer']}"


@tool
async def add_todo(ctx: ToolContext, text: str) -> str:
    """Add an entry to the shared list of things to do.

    Args:
        text: What is to be done.
    """
    entries = _list_in(ctx.state, "todos")
    entries.append({"text": text, "done": False})
    return f"Added. There are {len(entries)} things to do."


def _list_in(state: Any, name: str) -> list[Any]:
    """The list of this name in the shared state, made if there is none."""
    found: Any = cast("dict[str, Any]", state).setdefault(name, []) if isinstance(state, dict) else None
    if not isinstance(found, list):
        raise ToolError(f"The page has put something else where the list {name!r} would be.")
    return cast("list[Any]", found)


@tool
async def make_report(ctx: ToolContext, title: str) -> str:
    """Write a report, show how far it is, and offer it to be fetched.

    Args:
        title: What it is about.
    """
    name = " ".join(title.split())[:80] or "Untitled"
    progress = ctx.activity("demo.progress", {"title": name, "percent": 0})
    text = f"# {name}\n\nThere is nothing to report: this is a demonstration.\n"
    ctx.activity("demo.progress", {"title": name, "percent": 100}, activity_id=progress)
    made = await ctx.artifact(f"{name}.md", "text/markdown", text)
    return f"The report {made.name} has {made.size} bytes."


@tool
async def slow_tool(seconds: float) -> AsyncGenerator[str | dict[str, float], None]:
    """Wait, show for how long, then say so.

    Args:
        seconds: How long to wait.
    """
    waited = 0.0
    while waited < seconds:
        yield {"waited": waited, "seconds": seconds}
        await asyncio.sleep(min(1, seconds - waited))
        waited += 1
    yield f"Waited {seconds:g} seconds."


@tool
def failing_tool() -> str:
    """Fail, always."""
    raise RuntimeError("This tool always fails.")


TOOLS: list[Tool] = [
    get_weather,
    get_time,
    add_todo,
    send_email,
    ask_user,
    make_report,
    slow_tool,
    failing_tool,
]
