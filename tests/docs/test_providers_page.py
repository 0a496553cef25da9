"""The example of a test in docs/providers.md is a test that passes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs.pages import blocks


async def test_the_example_of_a_test_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    block = next(one for one in blocks("python") if one.page == "docs/providers.md" and "MockProvider" in one.text)
    names: dict[str, Any] = {"__name__": "their_tests"}
    exec(compile(block.text, block.name, "exec", dont_inherit=True), names)
    await names["test_the_weather_is_looked_up"](monkeypatch)
