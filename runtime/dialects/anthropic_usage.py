"""Token counts of Anthropic's API in our own accounting.

Pure. Anthropic counts what came from or went to the cache beside the input; here input and output are totals, and
those counts are parts of the input. Counts are cumulative: later ones replace earlier ones. A count that the provider
did not say is absent; nothing was ever read with zero tokens, so a zero of the input is none said.
"""

from __future__ import annotations

from typing import cast

from runtime.canonical import Json, JsonObject

_READ = "input_tokens"
_FROM_CACHE = "cache_read_input_tokens"
_TO_CACHE = "cache_creation_input_tokens"
_WROTE = "output_tokens"


class UsageCount:
    """The counts of one response, as its events correct them."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._reasoning: int | None = None

    def begin(self, usage: Json) -> None:
        """What the beginning of a message says: its output is a guess and does not count."""
        self._take(usage, (_READ, _FROM_CACHE, _TO_CACHE))

    def replace(self, usage: Json) -> None:
        """What a later event says. A zero never takes back what was counted."""
        self._take(usage, (_READ, _FROM_CACHE, _TO_CACHE, _WROTE))
        details = cast("JsonObject", usage).get("output_tokens_details") if isinstance(usage, dict) else None
        if isinstance(details, dict):
            thinking = _count(cast("JsonObject", details).get("thinking_tokens"))
            self._reasoning = self._reasoning if thinking is None else thinking

    def totals(self) -> JsonObject | None:
        """The counts among `samples.USAGE_COUNTS`; None if nothing is known."""
        counts = self._counts
        cached, written = counts.get(_FROM_CACHE), counts.get(_TO_CACHE)
        fresh, wrote = counts.get(_READ), counts.get(_WROTE)
        read = None if fresh is None else fresh + (cached or 0) + (written or 0) or None
        found = {
            "input_tokens": read,
            "output_tokens": wrote,
            "total_tokens": None if read is None or wrote is None else read + wrote,
            "reasoning_tokens": self._reasoning if (self._reasoning or 0) <= (wrote or 0) else None,
            "cached_input_tokens": cached if read else None,
            "cache_write_input_tokens": written if read else None,
        }
        return {name: count for name, count in found.items() if count is not None} or None

    def _take(self, usage: Json, names: tuple[str, ...]) -> None:
        if not isinstance(usage, dict):
            return
        for name in names:
            count = _count(cast("JsonObject", usage).get(name))
            if count or (count is not None and name not in self._counts):
                self._counts[name] = count


def _count(value: Json) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
        return value
    return None
