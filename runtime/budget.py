"""Budgets: what one run may use of rounds, tool calls, tokens, seconds and money. Pure.

A budget that is used up ends the run on purpose: it is asked before each model call and before each tool call, never
in the middle of one, so a run may go over by what one of them takes. Money is counted only for models that the price
table knows; an unknown price costs nothing and is never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

from runtime.canonical import JsonObject
from runtime.usage import tokens_of

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in any currency, per million tokens. Cached input is a part of the input (see `samples`)."""

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None

    def of(self, usage: JsonObject) -> float:
        """The cost of one usage entry; unknown counts cost nothing."""
        read, written = usage.get("cached_input_tokens", 0), usage.get("cache_write_input_tokens", 0)
        plain = usage.get("input_tokens", 0) - read - written
        cached = self.input if self.cached_input is None else self.cached_input
        write = self.input if self.cache_write is None else self.cache_write
        return (
            plain * self.input + read * cached + written * write + usage.get("output_tokens", 0) * self.output
        ) / 1_000_000


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one run; None is no limit. `seconds` count from its start, `cost` is in the currency of `prices`.

    `prices` are by model name, as the provider calls it.
    """

    rounds: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])

    def used_up(self, *, rounds: int, tool_calls: int, usage: Sequence[JsonObject], seconds: float) -> str | None:
        """The first limit that leaves nothing for another round, as a reason such as `max_tokens`; None if all do.

        `tool_calls` are those that the model asked for: as many as the limit are executed, one more is refused.
        """
        exceeded = (
            ("max_rounds", self.rounds is not None and rounds >= self.rounds),
            ("max_tool_calls", self.tool_calls is not None and tool_calls > self.tool_calls),
            ("max_tokens", self.tokens is not None and tokens_of(usage) >= self.tokens),
            ("max_seconds", self.seconds is not None and seconds >= self.seconds),
            ("max_cost", self.cost is not None and cost_of(usage, self.prices) >= self.cost),
        )
        return next((reason for reason, is_so in exceeded if is_so), None)

    def tool_calls_left(self, asked: int) -> int | None:
        """How many more tool calls may be executed after so many were asked for; None: any number."""
        return None if self.tool_calls is None else max(0, self.tool_calls - asked)

    def within(self, other: Budget | None) -> Budget:
        """The stricter of both in everything; where both know a price of a model, this one's counts."""
        if other is None:
            return self
        return Budget(
            rounds=_least(self.rounds, other.rounds),
            tool_calls=_least(self.tool_calls, other.tool_calls),
            tokens=_least(self.tokens, other.tokens),
            seconds=_least(self.seconds, other.seconds),
            cost=_least(self.cost, other.cost),
            prices={**other.prices, **self.prices},
        )

    def as_payload(self) -> JsonObject:
        """What is limited, and the prices, as JSON."""
        limits = {name: value for name, value in asdict(self).items() if value is not None}
        return {name: value for name, value in limits.items() if value != {}}

    def with_rounds(self, most: int) -> Budget:
        """The same, with at most so many rounds if it says nothing of them."""
        return self if self.rounds is not None else replace(self, rounds=most)


def _least(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def cost_of(usage: Sequence[JsonObject], prices: Mapping[str, Price]) -> float:
    """What some usage entries cost."""
    return sum(prices[entry["model"]].of(entry) for entry in usage if entry.get("model") in prices)
