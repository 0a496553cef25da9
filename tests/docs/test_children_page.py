"""The example in docs/children.md is one that runs, and what the page says of it is so."""

from __future__ import annotations

from typing import Any

from tests.docs.pages import blocks
from tests.serving import ask, serving


async def test_the_example_of_agents_that_ask_agents_runs() -> None:
    (block,) = (one for one in blocks("python") if one.page == "docs/children.md")
    names: dict[str, Any] = {"__name__": "their_agents"}
    exec(compile(block.text, block.name, "exec", dont_inherit=True), names)
    async with serving(names["author"]) as served:
        answer = await served.run(ask("Where is tea?", protocolVersion="1.0"))
    told = [event for event in answer.events if event["type"].startswith("SUBAGENT")]
    assert [event["type"] for event in told] == ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]
    assert (told[0]["name"], told[0]["description"]) == ("librarian", "Finds things in books.")
    (output,) = [event for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]
    assert output["content"] == "Page 42."
