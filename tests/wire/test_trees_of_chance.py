"""What a page is told of a tree, whatever the tree: legal, complete, and the same whenever the page comes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from runtime import events as e
from tests.pure.agui_rules import Rules
from tests.pure.stock_page import Page
from tests.wire.trees import grown

JsonObject = dict[str, Any]

SEEDS = range(40)


def by_speaker(messages: list[JsonObject]) -> dict[str | None, list[JsonObject]]:
    """The messages of each run in their order: what runs say side by side has no order that matters."""
    found: defaultdict[str | None, list[JsonObject]] = defaultdict(list)
    for message in messages:
        if message["role"] != "user":
            found[message.get("subagentRunId")].append(message)
    return dict(found)


def page_of(events: list[JsonObject]) -> Page:
    rules = Rules()
    rules.check(events)
    assert rules.ended
    page = Page()
    page.apply(events)
    assert page.surprises == []
    return page


@pytest.mark.parametrize("seed", SEEDS)
async def test_of_any_tree_a_page_is_told_all_whenever_it_comes(seed: int) -> None:
    tree = await grown(seed)
    numbers = [record.root_seq for record in tree.records]
    assert numbers == list(range(1, len(numbers) + 1))
    told = [record.event for record in tree.records]
    begun = [event.run_id for event in told if isinstance(event, e.ChildStarted)]
    over = [event.run_id for event in told if type(event) in e.CHILD_OVER]  # type: ignore[union-attr]
    assert sorted(begun) == sorted(over)
    assert tree.records[-1].run_id == tree.root.run_id

    from_the_start = page_of(tree.projected())
    assert by_speaker(from_the_start.messages) == by_speaker(tree.shown())
    assert from_the_start.state == tree.thread.state
    first = next(r.root_seq for r in tree.records if isinstance(r.event, e.MessageStarted)) - 1
    for at in range(first, len(numbers)):
        page = page_of(tree.coming_back(at))
        assert by_speaker(page.messages) == by_speaker(from_the_start.messages), at
        assert page.state == from_the_start.state
