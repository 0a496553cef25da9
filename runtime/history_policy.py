"""How much of the history a model is shown: pure policies, applied when a request is made.

The stored history is never changed by them. A policy gets all items and answers with those to send. The ones here cut
only before a user message, so that no call loses its output and no output its call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from runtime.canonical import canonical
from runtime.items import REJECTION, FunctionCall, FunctionCallOutput, Item, Message, Reasoning

HistoryPolicy: TypeAlias = Callable[[list[Item]], Sequence[Item]]

CHARACTERS_PER_TOKEN = 4
"""A rough rule for text of most languages; give `token_budget` a counter of your own where it matters."""


def keep_last_turns(turns: int) -> HistoryPolicy:
    """The last so many turns (at least one); what stands before the first user message stays."""

    def policy(items: list[Item]) -> list[Item]:
        starts = _turns(items)
        if len(starts) <= max(turns, 1):
            return items
        return [*items[: starts[0]], *items[starts[-max(turns, 1)] :]]

    return policy


def token_budget(tokens: int, count: Callable[[Item], int] | None = None) -> HistoryPolicy:
    """As many of the last turns as fit in so many tokens, but always the last one."""
    size = count or estimate

    def policy(items: list[Item]) -> list[Item]:
        starts = _turns(items)
        if not starts:
            return items
        head = items[: starts[0]]
        left = tokens - sum(size(item) for item in head)
        keep = len(items)
        for start, end in zip(reversed(starts), reversed([*starts[1:], len(items)]), strict=True):
            left -= sum(size(item) for item in items[start:end])
            if left < 0 and keep < len(items):
                break
            keep = start
        return [*head, *items[keep:]]

    return policy


def estimate(item: Item) -> int:
    """Tokens of an item, by its characters."""
    match item:
        case Message(content=content) | FunctionCallOutput(output=content):
            size = len(content) if isinstance(content, str) else len(canonical(content))
        case FunctionCall(name=name, arguments_json=arguments):
            size = len(name) + len(arguments)
        case Reasoning(text=text):
            size = len(text)
    return size // CHARACTERS_PER_TOKEN + 1


def _turns(items: list[Item]) -> list[int]:
    """Where a user message begins a turn: one behind another user message belongs to the same turn."""
    return [
        index for index, item in enumerate(items) if _is_user(item) and (index == 0 or not _is_user(items[index - 1]))
    ]


def _is_user(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user" and item.runtime_role != REJECTION
