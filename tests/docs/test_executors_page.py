"""The example in docs/executors.md is one that runs, and its words are those that there are."""

from __future__ import annotations

import re
from typing import Any, get_args

from runtime.executors.words import Word
from tests.docs.pages import blocks, text_of
from tests.serving import ask, serving


async def test_the_example_of_an_executor_runs() -> None:
    block, _ = (one for one in blocks("python") if one.page == "docs/executors.md")
    names: dict[str, Any] = {"__name__": "their_agent"}
    exec(compile(block.text, block.name, "exec", dont_inherit=True), names)
    async with serving(names["agent"]) as served:
        asked = (await served.run(ask("Book", protocolVersion="1.0"))).events
        [interrupt] = asked[-1]["outcome"]["interrupts"]
        resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"time": "nine"}}]
        booked = (await served.run(ask("", run="r2", messages=[], resume=resume, protocolVersion="1.0"))).events
    said = [event["delta"] for event in [*asked, *booked] if event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert said == ["Which time suits you? ", "Booked for nine."]
    assert [event["snapshot"] for event in booked if event["type"] == "STATE_SNAPSHOT"][-1] == {"booked": "nine"}


async def test_the_example_of_a_graph_runs() -> None:
    _, block = (one for one in blocks("python") if one.page == "docs/executors.md")
    names: dict[str, Any] = {"__name__": "their_graph"}
    exec(compile(block.text, block.name, "exec", dont_inherit=True), names)
    async with serving(names["agent"]) as served:
        events = (await served.run(ask("hello", protocolVersion="1.0"))).events
    assert [event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"] == ["You said: hello"]


def test_the_page_has_every_word() -> None:
    table = text_of("docs/executors.md").partition("| word |")[2].partition("\n\n")[0]
    told = {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    assert told == {word.__name__ for word in get_args(Word)}
