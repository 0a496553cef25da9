"""Ids: unique, and in the order in which they were made."""

from __future__ import annotations

import uuid

import pytest

from runtime import system
from runtime.system import mint_uuid7


def test_an_id_is_a_uuid_of_version_7_behind_its_prefix():
    prefix, _, digits = mint_uuid7("run").partition("_")
    assert (prefix, uuid.UUID(digits).version, uuid.UUID(digits).variant) == ("run", 7, uuid.RFC_4122)


@pytest.mark.parametrize("later", [1_000, 400_000, 999_000, 1_000_000])
def test_ids_sort_as_they_were_made_within_a_millisecond_too(monkeypatch: pytest.MonkeyPatch, later: int):
    now = 1_800_000_000_123_000_000
    times = iter([now, now + later])
    monkeypatch.setattr(system.time, "time_ns", lambda: next(times))
    assert mint_uuid7("ses") < mint_uuid7("ses")


def test_ids_of_the_same_instant_differ(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(system.time, "time_ns", lambda: 1_800_000_000_123_000_000)
    assert len({mint_uuid7("ses") for _ in range(1000)}) == 1000
