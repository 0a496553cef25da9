"""Agents with a tool that runs on the server; the page draws its results."""

from __future__ import annotations

from typing import Any, Final

from agui_bridge import Agent, keep_last_turns, tool

_CONDITIONS: Final = ("sunny", "partly cloudy", "overcast", "light rain", "windy", "foggy")


@tool(parallel=True, idempotent=True)
def get_weather(location: str) -> dict[str, Any]:
    """The weather at a place; made up, but always the same for the same place.

    Args:
        location: The name of a city.
    """
    number = sum(location.strip().lower().encode())
    return {
        "city": location,
        "temperature": 12 + number % 17,
        "feelsLike": 11 + number % 17,
        "humidity": 40 + number % 45,
        "wind_speed": 4 + number % 21,
        "windSpeed": 4 + number % 21,
        "conditions": _CONDITIONS[number % len(_CONDITIONS)],
    }


backend_tool_rendering = Agent(
    "backend_tool_rendering",
    instructions="You tell people what the weather is like, in one sentence, and ask for a place if they name none. "
    "Use get_weather for each place.",
    description="Tells the weather; the page draws what its tool returns.",
    tools=[get_weather],
)

weather_assistant = Agent(
    "weather_assistant",
    instructions="You are the Weather Assistant. Always look up the weather before you answer, with get_weather, and "
    "then sum it up in one friendly sentence.",
    description="Tells the weather, knowing of nothing but the last question.",
    tools=[get_weather],
    history_policy=keep_last_turns(1),
)
