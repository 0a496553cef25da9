"""Fixtures that every test may use."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Everything here runs on asyncio, as the server does."""
    return "asyncio"
