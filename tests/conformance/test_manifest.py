"""The manifest is whole: each requirement has a test or a reason, and each marker names a requirement."""

from __future__ import annotations

import pytest

from agui_check.extensions import DEPARTURES
from agui_check.requirements import PAGES, REQUIREMENTS
from tests.conformance.requirements import GAPS, Entry, manifest, marked


@pytest.mark.parametrize("entry", manifest(), ids=lambda entry: entry.requirement.id)
def test_a_requirement_has_a_test_or_a_reason_and_never_both(entry: Entry) -> None:
    assert bool(entry.tests) is not bool(entry.gap)
    assert entry.requirement.text.endswith(".")
    assert set(entry.requirement.pages.split(", ")) <= set(PAGES)


def test_every_marker_gap_and_departure_names_a_requirement() -> None:
    assert set(marked()) | set(GAPS) | set(DEPARTURES) <= set(REQUIREMENTS)


def test_ids_are_in_order_and_alone() -> None:
    ids = [each.id for each in REQUIREMENTS.values()]
    assert list(REQUIREMENTS) == ids
    assert len(ids) == 181
