"""What the demo says to plain words: pure, a table of patterns, each with what it does in each round.

A phrase that needs a tool which the request does not have is not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from agui_bridge.demo.tools import get_time, get_weather, is_known
from runtime.canonical import JsonObject
from runtime.script import Phrases


def _weather(found: re.Match[str], round_: int) -> JsonObject:
    city = found[1].strip(" ?!.").title()
    if round_ == 1:
        calls = [
            {"name": "get_weather", "arguments": {"city": city}},
            {"name": "get_time", "arguments": {"tz": city if is_known(city) else "+0"}},
        ]
        return {"text": f"Let me look at {city}. ", "tool_calls": calls}
    weather, time = get_weather(city), get_time(city if is_known(city) else "+0")
    degrees = f"{weather['temperature']} {weather['unit']}"
    return {"text": f"In {city} it is {weather['conditions']} at {degrees}, and the demo's clock says {time['time']}."}


def _todo(found: re.Match[str], round_: int) -> JsonObject:
    if round_ == 1:
        return {"tool_calls": [{"name": "add_todo", "arguments": {"text": found[1].strip(" .!")}}]}
    return {"text": "Done, it is on your list."}


def _mail(found: re.Match[str], round_: int) -> JsonObject:
    to, about = found[1].strip(), (found[2] or "the demo").strip(" .!")
    if round_ == 1:
        mail = {"to": to, "subject": about.capitalize(), "body": f"Hello {to},\n\nthis is about {about}.\n"}
        return {"text": "Here is a draft. ", "tool_calls": [{"name": "send_email", "arguments": mail}]}
    return {"text": "That is what became of the e-mail."}


def _ask(found: re.Match[str], round_: int) -> JsonObject:
    if round_ == 1:
        return {"tool_calls": [{"name": "ask_user", "arguments": {"question": "Which colour do you like best?"}}]}
    return {"text": "Thank you, I will remember that."}


def _fails(found: re.Match[str], round_: int) -> JsonObject:
    if round_ == 1:
        return {"tool_calls": [{"name": "failing_tool", "arguments": {}}]}
    return {"text": "As expected, that tool failed. The run goes on all the same."}


def _slow(found: re.Match[str], round_: int) -> JsonObject:
    if round_ == 1:
        return {"tool_calls": [{"name": "slow_tool", "arguments": {"seconds": 3}}]}
    return {"text": "There it is, after three seconds."}


def _think(found: re.Match[str], round_: int) -> JsonObject:
    return {
        "reasoning": "The user wants me to think. I weigh the words, then I answer.",
        "text": "I have thought about it, and the answer is yes.",
    }


def _research(found: re.Match[str], round_: int) -> JsonObject:
    topic = found[1].strip(" ?!.")
    if round_ == 1:
        return {
            "text": "I will have that looked into. ",
            "tool_calls": [{"name": "research", "arguments": {"topic": topic}}],
        }
    return {"text": f"That is what the researcher found about {topic}."}


def _researcher(found: re.Match[str], round_: int) -> JsonObject:
    topic = found[1].strip()
    if round_ == 1:
        return {"text": f"Looking up {topic}. ", "tool_calls": [{"name": "look_up", "arguments": {"topic": topic}}]}
    return {"text": f"The library knows of {topic}, and says that it is well worth reading about."}


def _hello(found: re.Match[str], round_: int) -> JsonObject:
    return {
        "text": "Hello! I am the demo agent: offline, deterministic, and every word of mine is on disk before you see "
        "it. Ask me for the weather in a city, tell me to add something to your list, or try /tokens 50 20."
    }


_TABLE: Final[tuple[tuple[re.Pattern[str], frozenset[str], Callable[[re.Match[str], int], JsonObject]], ...]] = (
    (
        re.compile(r"\bweather\b.*?\b(?:in|at|for)\s+([\w .'-]+)", re.I),
        frozenset({"get_weather", "get_time"}),
        _weather,
    ),
    (
        re.compile(r"\b(?:add|remind me to|remember to)\s+(.+?)(?:\s+to (?:my|the) (?:list|todos?))?$", re.I),
        frozenset({"add_todo"}),
        _todo,
    ),
    (re.compile(r"^Research: (.+)$", re.S), frozenset({"look_up"}), _researcher),
    (re.compile(r"\bresearch\s+(.+)", re.I), frozenset({"research"}), _research),
    (
        re.compile(r"\b(?:e-?mail|mail|write to)\s+(?:to\s+)?([\w.+@-]+)(?:\s+about\s+(.+))?", re.I),
        frozenset({"send_email"}),
        _mail,
    ),
    (re.compile(r"\bask me\b", re.I), frozenset({"ask_user"}), _ask),
    (re.compile(r"\bfail", re.I), frozenset({"failing_tool"}), _fails),
    (re.compile(r"\b(?:slow|wait)\b", re.I), frozenset({"slow_tool"}), _slow),
    (re.compile(r"\bthink\b", re.I), frozenset(), _think),
    (re.compile(r"^(?:hi|hello|hey|hei)\b", re.I), frozenset(), _hello),
)


def answer(words: str, round_: int, tools: frozenset[str]) -> JsonObject | None:
    """The entry of a script for these words in this round, or None if they are nothing to the demo."""
    for pattern, needed, entry in _TABLE:
        if needed <= tools and (found := pattern.search(words)) is not None:
            return entry(found, round_)
    return None


phrases: Phrases = answer
