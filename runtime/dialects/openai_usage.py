"""Token counts of OpenAI-style APIs in our own accounting.

Pure. Input and output are totals; reasoning is a part of output, what came from or went to a cache a part of input. A
count that the provider did not say, or that contradicts the others, is absent.
"""

from __future__ import annotations

from typing import cast

from runtime.canonical import JsonObject


def usage_of(usage: JsonObject) -> JsonObject:
    """The counts of a `usage` object among `samples.USAGE_COUNTS`; what was not said is absent.

    Input and output are totals. A server that counts reasoning beside the output (its total shows it) gets it added.
    """
    read = _first(usage, "prompt_tokens", "input_tokens")
    wrote = _first(usage, "completion_tokens", "output_tokens")
    total = _first(usage, "total_tokens")
    inputs, outputs = _details_of(usage, "prompt"), _details_of(usage, "completion")
    reasoning = _first(outputs, "reasoning_tokens")
    cached = _first(inputs, "cached_tokens")
    if cached is None:
        cached = _first(usage, "prompt_cache_hit_tokens", "cached_tokens")
    if read is not None and wrote is not None and reasoning and total == read + wrote + reasoning:
        wrote += reasoning
    counts = {
        "input_tokens": read,
        "output_tokens": wrote,
        "total_tokens": total if read is not None and wrote is not None and total == read + wrote else None,
        "reasoning_tokens": reasoning if reasoning is not None and reasoning <= (wrote or 0) else None,
        "cached_input_tokens": cached if cached is not None and cached <= (read or 0) else None,
        "cache_write_input_tokens": _first(inputs, "cache_write_tokens", "cache_creation_tokens"),
    }
    return {name: count for name, count in counts.items() if count is not None}


def _details_of(usage: JsonObject, side: str) -> JsonObject:
    other = "input" if side == "prompt" else "output"
    for name in (f"{side}_tokens_details", f"{other}_tokens_details"):
        if isinstance(details := usage.get(name), dict):
            return cast("JsonObject", details)
    return {}


def _first(fields: JsonObject, *names: str) -> int | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            return value
    return None
