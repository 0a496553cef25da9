"""The linter and the model of a stock page agree with the official client on its recorded streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pure.agui_rules import Illegal, Rules
from tests.pure.stock_page import Page

STREAMS = Path(__file__).parents[1] / "conformance" / "streams"
MANIFEST: list[dict[str, Any]] = json.loads((STREAMS / "manifest.json").read_text(encoding="utf-8"))["streams"]

# Chunks, activities, subagents' messages and the shapes of old releases are nothing that this server streams; what a
# schema refuses is the schema's business.
NOT_APPLIED = ("10-", "13-", "14-", "16-", "22-", "24-")
ORDER = [row for row in MANIFEST if not row["accepted"] and (int(row["file"][8:10]) < 32) and "24-" not in row["file"]]
ACCEPTED = [row for row in MANIFEST if row["accepted"]]
APPLIED = [row for row in ACCEPTED if not any(f"/{number}" in row["file"] for number in NOT_APPLIED)]


def events_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (STREAMS / row["file"]).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["file"])
def test_the_linter_lets_pass_what_the_client_accepts(row: dict[str, Any]) -> None:
    Rules().check(events_of(row))


@pytest.mark.parametrize("row", ORDER, ids=lambda row: row["file"])
def test_the_linter_refuses_the_orders_that_the_client_refuses(row: dict[str, Any]) -> None:
    with pytest.raises(Illegal):
        Rules().check(events_of(row))


@pytest.mark.parametrize("row", APPLIED, ids=lambda row: row["file"])
def test_the_model_of_a_page_holds_what_the_client_holds(row: dict[str, Any]) -> None:
    page = Page()
    page.apply(events_of(row))
    assert page.messages == row["messages"]
    assert page.state == row["state"]
    assert bool(page.surprises) == row.get("warns", False)
