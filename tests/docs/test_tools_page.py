"""The example in docs/tools.md is one that runs, and streams as the page says."""

from __future__ import annotations

from typing import Any

from tests.docs.pages import blocks
from tests.serving import ask, serving


async def test_the_example_of_tools_runs() -> None:
    (block,) = (one for one in blocks("python") if one.page == "docs/tools.md")
    names: dict[str, Any] = {"__name__": "their_tools"}
    exec(compile(block.text, block.name, "exec", dont_inherit=True), names)
    assert [each.streams for each in (names["price_of"], names["order"], names["search"])] == [False, False, True]
    async with serving(names["shop"]) as served:
        events = (await served.run(ask("Is there tea?", protocolVersion="1.0"))).events
    told = [event["content"] for event in events if event["type"] == "ACTIVITY_SNAPSHOT"]
    assert told[0] == {"toolCallId": "call_0", "toolName": "search", "value": {"shelf": "north", "found": 0}}
    assert told[-1] == {"toolCallId": "call_0", "toolName": "search", "value": None, "settled": True}
    (result,) = [event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"]
    assert result == '["tea on the north shelf","tea on the south shelf"]'
