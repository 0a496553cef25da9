"""A trip is planned by several specialists, each of whom asks the user to choose: a function, without any model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import orjson

from agui_bridge import Agent, Interrupt, RunContext
from runtime.canonical import Json, JsonObject

Option = dict[str, str]

_ROUTE: Final = {"departure": "Amsterdam (AMS)", "arrival": "San Francisco (SFO)"}
FLIGHTS: Final[list[Option]] = [
    {"airline": "KLM", **_ROUTE, "price": "$650", "duration": "11h 30m"},
    {"airline": "United", **_ROUTE, "price": "$720", "duration": "12h 15m"},
]
HOTELS: Final[list[Option]] = [
    {"name": "Hotel Zephyr", "location": "Fisherman's Wharf", "price_per_night": "$280/night", "rating": "4.2 stars"},
    {"name": "The Ritz-Carlton", "location": "Nob Hill", "price_per_night": "$550/night", "rating": "4.8 stars"},
    {"name": "Hotel Zoe", "location": "Union Square", "price_per_night": "$320/night", "rating": "4.4 stars"},
]
EXPERIENCES: Final[list[Option]] = [
    {"name": "Pier 39", "type": "activity", "location": "Fisherman's Wharf", "description": "Sea lions by the water"},
    {"name": "Golden Gate Bridge", "type": "activity", "location": "Golden Gate", "description": "A walk with a view"},
    {"name": "Swan Oyster Depot", "type": "restaurant", "location": "Polk Street", "description": "Oysters at a bar"},
    {"name": "Tartine Bakery", "type": "restaurant", "location": "Mission District", "description": "Bread and tarts"},
]
_ANSWER: Final = {"type": ["string", "object"]}


async def plan_trip(ctx: RunContext):
    """Ask for a flight, then for a hotel, then say what there is to see. Each answer performs it anew."""
    flight, hotel = ctx.answers.get("flight"), ctx.answers.get("hotel")
    if flight is None:
        ctx.state.update(itinerary={}, flights=[], hotels=[], experiences=[])
        ctx.state.update(planning_step="flights", active_agent="flights")
        yield "Supervisor: first the flights agent looks for a flight from Amsterdam to San Francisco. "
        text = f"There are {len(FLIGHTS)} flight options. I recommend KLM: it is cheaper, and mostly on time."
        yield _question("flight", text, FLIGHTS, FLIGHTS[0], "flights")
        return
    if hotel is None:
        taken = _taken(flight.payload, FLIGHTS, "airline")
        if taken is None:
            yield "Supervisor: no flight, no trip. Tell me when you want to travel after all."
            return
        ctx.state.update(flights=FLIGHTS, itinerary={"flight": taken}, planning_step="hotels", active_agent="hotels")
        yield f"Flights agent: the {taken['airline']} flight for {taken['price']} is yours. "
        text = f"There are {len(HOTELS)} hotel options. I recommend Hotel Zoe: a fair price in the middle of the town."
        yield _question("hotel", text, HOTELS, HOTELS[2], "hotels")
        return
    taken = _taken(hotel.payload, HOTELS, "name")
    if taken is None:
        yield "Supervisor: then there is only the flight. I am sure that you know somebody to stay with."
        return
    ctx.state["itinerary"]["hotel"] = taken
    ctx.state.update(hotels=HOTELS, experiences=EXPERIENCES, planning_step="complete", active_agent="experiences")
    yield f"Hotels agent: {taken['name']} is booked. "
    yield "Experiences agent: I found two activities and two restaurants for you. The itinerary is ready."


def _question(key: str, text: str, options: Sequence[Option], best: Option, agent: str) -> Interrupt:
    value = {"message": text, "options": [*options], "recommendation": best, "agent": agent}
    return Interrupt(key, text, _ANSWER, metadata={"value": value})


def _taken(payload: Json, options: Sequence[Option], by: str) -> Option | None:
    """The option that an answer names: the option itself, its JSON, or the name alone."""
    if isinstance(payload, str):
        try:
            payload = orjson.loads(payload)
        except orjson.JSONDecodeError:
            payload = {by: payload}
    name = cast("JsonObject", payload).get(by) if isinstance(payload, dict) else None
    return next((option for option in options if option[by] == name), None)


subgraphs = Agent(
    "subgraphs",
    executor=plan_trip,
    description="Plans a trip with specialists who ask.",
    interrupt_style="legacy",
)
