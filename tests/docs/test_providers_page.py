"""The examples of tests in docs/providers.md are tests that pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs.pages import blocks


@pytest.mark.parametrize("test", ["test_the_weather_is_looked_up", "test_the_weather_is_a_value"])
async def test_the_example_of_a_test_passes(test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    block = next(one for one in blocks("python") if one.page == "docs/providers.md" and test in one.text)
    names: dict[str, Any] = {"__name__": "their_tests"}
    exec(compile(block.text, block.name, "exec", dont_inherit=True), names)
    await names[test](monkeypatch)
