"""Fixtures that every test may use."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import NIGHTLY, profile

pytest_plugins = [
    "tests.plugin_missing",
    "tests.official_client",
    "tests.copilotkit_page",
    "tests.pooler",
    "tests.stores",
]

settings.register_profile("default", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(NIGHTLY, settings.get_profile("default"), max_examples=10_000)
settings.load_profile(profile())


@pytest.fixture
def anyio_backend() -> str:
    """Everything here runs on asyncio, as the server does."""
    return "asyncio"
