"""Usage: how token counts add up. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from runtime.canonical import JsonObject
from runtime.samples import USAGE_COUNTS


def add_usage(totals: list[JsonObject], usage: JsonObject) -> None:
    """Add one round's usage to the entry of its provider and model; counts that are unknown stay absent."""
    for entry in totals:
        if entry["provider"] == usage["provider"] and entry["model"] == usage["model"]:
            for name in USAGE_COUNTS:
                if name in usage:
                    entry[name] = entry.get(name, 0) + usage[name]
            return
    totals.append(dict(usage))


def tokens_of(usage: Sequence[JsonObject]) -> int:
    """All tokens of some usage entries: the provider's total, or what is known of input and output."""
    return sum(
        entry.get("total_tokens") or entry.get("input_tokens", 0) + entry.get("output_tokens", 0) for entry in usage
    )


class Spending(Protocol):
    """Where a run's use of tokens and money is counted, and limited, further up its tree."""

    def spent_below(self, usage: JsonObject) -> None:
        """A run below has used this."""
        ...

    def tree_used_up(self) -> str | None:
        """Why nothing below may go on, as `Budget.used_up` says it."""
        ...
