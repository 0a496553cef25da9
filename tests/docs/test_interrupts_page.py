"""The examples in docs/interrupts.md are ones that run, and what the page says of them is so."""

from __future__ import annotations

from typing import Any

from tests.docs.pages import blocks
from tests.serving import ask, serving


def _names() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "their_tools"}
    for block in blocks("python"):
        if block.page == "docs/interrupts.md":
            exec(compile(block.text, block.name, "exec", dont_inherit=True), names)
    return names


async def test_the_example_of_runs_that_stop_to_ask_runs() -> None:
    names = _names()
    async with serving(names["clerk"]) as served:
        first = await served.run(ask("Write to Ann", protocolVersion="1.0"))
        (asked,) = first.events[-1]["outcome"]["interrupts"]
        assert names["sent"] == []
        path = f"/api/interrupts/{asked['id']}/answer"
        taken = await served.http.post(path, json={"status": "resolved", "payload": {"approved": True}})
        assert taken.status_code == 202
        facts = (await served.get(taken.json()["events_url"])).events
        assert facts[-1]["event_type"] == "run.completed"
        assert names["sent"] == ["ann@example.org"]
    assert names["deploy"].approvers(type("Somebody", (), {"id": "bob"}), "ann")
