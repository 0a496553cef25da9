"""Every stream that is written down, before the checker's verifier and without what a client may not know."""

from __future__ import annotations

from typing import Any

import pytest

from agui_check import read_stream, verify
from agui_check.extensions import DEPARTURES
from tests.pure.stock_page import Page
from tests.wire.scenes import SCENES, Played, play

JsonObject = dict[str, Any]

DEPARTING = {"malformed frontend call": {"R-104"}, "child whose call was cut": {"R-107"}}
"""The scenes that show a stated departure."""


def page_after(each: Played, events: list[JsonObject]) -> tuple[list[JsonObject], Any, JsonObject]:
    page = Page(each.asked["messages"], each.asked.get("state"))
    page.apply(events)
    return page.messages, page.state, events[-1]


@pytest.mark.requirement("R-081", "R-114", "R-137", "R-140", "R-142", "R-144", "R-145", "R-147", "R-149")
@pytest.mark.parametrize("name", SCENES)
async def test_a_golden_stream_offends_no_requirement(name: str) -> None:
    for each in await play(name):
        verdict = verify(each.answer.events, each.asked)
        offended = {finding.requirement for finding in verdict.findings if not finding.departure}
        departed = {finding.requirement for finding in verdict.findings if finding.departure}
        assert offended == set()
        assert departed <= DEPARTING.get(name, set()) <= set(DEPARTURES)
        assert read_stream(each.answer.body).findings == []


@pytest.mark.requirement("R-158", "R-185", "R-189")
@pytest.mark.parametrize("name", SCENES)
async def test_who_drops_custom_and_raw_events_has_the_same_messages_state_and_outcome(name: str) -> None:
    for each in await play(name):
        described = [event for event in each.answer.events if event["type"] not in ("CUSTOM", "RAW")]
        assert page_after(each, described) == page_after(each, each.answer.events)


@pytest.mark.requirement("R-091", "R-092", "R-093", "R-094", "R-095", "R-188")
@pytest.mark.parametrize("name", SCENES)
async def test_no_stream_has_chunks_or_timestamps(name: str) -> None:
    for each in await play(name):
        assert not any(type_.endswith("_CHUNK") for type_ in each.answer.types)
        assert not any("timestamp" in event for event in each.answer.events)
