"""Words that can be looked for: written in a question so that it does not hold them as they will be said."""

from __future__ import annotations

from typing import Any

import orjson


def hidden(words: str) -> str:
    """The words as a JSON string that has none of their letters."""
    return '"' + "".join(f"\\u{ord(letter):04x}" for letter in words) + '"'


def script(*rounds: dict[str, Any]) -> str:
    """A `/script` question; texts and reasoning are hidden in it."""
    return '/script {"rounds": [' + ", ".join(_round(entry) for entry in rounds) + "]}"


def _round(entry: dict[str, Any]) -> str:
    members = (
        f'"{name}": {hidden(value) if name in ("text", "reasoning") else orjson.dumps(value).decode()}'
        for name, value in entry.items()
    )
    return "{" + ", ".join(members) + "}"
