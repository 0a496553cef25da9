"""What is left out of an input is said in the server's log, with its path; what is malformed leaves no trace."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agui_bridge.demo import demo_agent
from tests.serving import ask, serving

PART = {"type": "hologram", "data": 1}

LOGGED: list[tuple[str, dict[str, Any]]] = [
    ("/xUnknown: unknown member", ask("hello", xUnknown=1)),
    ("/messages/0/xUnknown: unknown member", ask("", messages=[user := ask("hello")["messages"][0] | {"xUnknown": 1}])),
    ("/messages/0/role: unknown value 'oracle'", ask("", messages=[{"id": "o", "role": "oracle"}, user])),
    ("/messages/0/content/0/type: unknown value", ask("", messages=[{**user, "content": [PART]}])),
    ("/forwardedProps: null is read as absent", ask("hello", forwardedProps=None)),
    ("/state: null is read as absent", ask("hello", state=None)),
    ("/protocolVersion: 1.10 is newer than 1.0", ask("hello", protocolVersion="1.10")),
    ("/protocolVersion: 'banana' is no version", ask("hello", protocolVersion="banana")),
    ("/protocolVersion: 2.0 is another line", ask("hello", protocolVersion="2.0")),
]


@pytest.mark.requirement("R-053", "R-054", "R-056", "R-151", "R-153")
@pytest.mark.parametrize(("told", "body"), LOGGED, ids=[told for told, _ in LOGGED])
async def test_what_is_left_out_or_odd_is_said_in_the_log(
    told: str, body: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="agui_bridge")
    async with serving(demo_agent()) as served:
        answer = await served.run(body)
    assert answer.types[-1] == "RUN_FINISHED"
    assert any(told in record.getMessage() for record in caplog.records)


@pytest.mark.requirement("R-055", "R-056", "R-057")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/threadId", {"thread_id": "t1", "run_id": "r1", "messages": []}),
        ("/messages/0/toolCallId", ask("", messages=[{"id": "o", "role": "tool", "tool_call_id": "c", "content": ""}])),
        ("/parentRunId", ask("hello", parentRunId=None)),
        ("/messages/0/metadata", ask("", messages=[{**user, "metadata": None}])),
        ("/runId", ask("hello", run=5)),  # pyright: ignore[reportArgumentType]
        ("/context/0/value", ask("hello", context=[{"description": "n", "value": 5}])),
    ],
)
async def test_what_is_malformed_is_refused_as_it_stands_and_starts_nothing(path: str, body: dict[str, Any]) -> None:
    async with serving(demo_agent()) as served:
        answer = await served.run(body)
        listed = await served.get("/api/sessions")
    assert (answer.status, answer.document["details"]["path"]) == (422, path)
    assert listed.document["sessions"] == []
