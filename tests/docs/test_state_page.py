"""The example in docs/state.md is one that runs, and the page is told what it says."""

from __future__ import annotations

from typing import Any

from tests.docs.pages import blocks
from tests.serving import ask, serving


async def test_the_example_of_the_state_runs() -> None:
    (block,) = (one for one in blocks("python") if one.page == "docs/state.md")
    names: dict[str, Any] = {"__name__": "their_state"}
    exec(compile(block.text, block.name, "exec", dont_inherit=True), names)
    state = {"todos": [{"text": "tea"}, {"text": "jam"}], "scrolled": "x" * 100}
    async with serving(names["secretary"]) as served:
        events = (await served.run(ask("Is it done?", state=state, protocolVersion="1.0"))).events
    assert [event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"] == ["1 of 2 done.", "Written."]
    assert [event["value"] for event in events if event.get("name") == "PredictState"] == [
        [{"state_key": "letter", "tool": "write", "tool_argument": "text"}]
    ]
    assert [event["delta"] for event in events if event["type"] == "STATE_DELTA"] == [
        [{"op": "add", "path": "/todos/0/done", "value": True}],
        [{"op": "add", "path": "/letter", "value": "Dear Ann, tea is here."}],
    ]
    assert "STATE_SNAPSHOT" not in [event["type"] for event in events]
