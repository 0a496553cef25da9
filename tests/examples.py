"""How many examples a property gets: a number for every run of the tests, and another one at night."""

from __future__ import annotations

import os

from hypothesis import settings

NIGHTLY = "nightly"
_MORE_AT_NIGHT = 20


def profile() -> str:
    """The profile of this run, from `HYPOTHESIS_PROFILE`."""
    return os.environ.get("HYPOTHESIS_PROFILE", "default")


def examples(count: int) -> settings:
    """Settings for a property with a number of its own; the profile's does not hold where a test names one."""
    return settings(max_examples=count * (_MORE_AT_NIGHT if profile() == NIGHTLY else 1))


def count(by_day: int, at_night: int) -> int:
    """How many of something chance makes, for tests without hypothesis."""
    return at_night if profile() == NIGHTLY else by_day
