"""The example in docs/hooks.md is a test that passes."""

from __future__ import annotations

from typing import Any

from tests.docs.pages import blocks


async def test_the_example_of_a_hook_passes() -> None:
    (block,) = (one for one in blocks("python") if one.page == "docs/hooks.md")
    names: dict[str, Any] = {"__name__": "their_tests"}
    exec(compile(block.text, block.name, "exec", dont_inherit=True), names)
    await names["test_mail_stays_inside"]()
