"""What a tool hands over becomes the nearest JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from runtime.canonical import canonical, clean, clean_text, digest


class Model(BaseModel):
    """A model of a tool's author."""

    name: str


@dataclass
class Plain:
    """A dataclass of a tool's author."""

    name: str


@pytest.mark.parametrize(
    ("given", "cleaned"),
    [
        ({"a": float("nan"), "b": float("inf")}, {"a": None, "b": None}),
        ({1: "x", None: "y"}, {"1": "x", "null": "y"}),
        ("half \ud83d", "half �"),
        ({"half \ud83d": ["\ude00"]}, {"half �": ["�"]}),
        (2**70, str(2**70)),
        (b"bytes", "bytes"),
        ({"set": {2, 1}}, {"set": [1, 2]}),
        ((1, (2,)), [1, [2]]),
        (Model(name="x"), {"name": "x"}),
        (Plain("x"), {"name": "x"}),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
    ],
)
def test_a_value_becomes_the_nearest_json(given: Any, cleaned: Any):
    assert clean(given) == cleaned


def test_a_value_within_itself_is_refused():
    circle: dict[str, Any] = {"name": "round"}
    circle["me"] = circle
    with pytest.raises(RecursionError):
        clean(circle)


def test_equal_values_have_one_text_and_one_digest():
    assert canonical({"b": 1, "a": [True, None]}) == b'{"a":[true,null],"b":1}'
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    assert digest(1) != digest(1.0) != digest(True)


def test_text_keeps_every_whole_character():
    assert clean_text("plain") == "plain"
    assert clean_text("smile 😀 \ud83d") == "smile 😀 �"
