"""docs/http.md against a server: every refusal that a client can provoke has the code and the status of the page."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import orjson
import pytest

from agui_bridge.demo import demo_agent
from tests.docs.pages import text_of
from tests.serving import Answer, Served, ask, serving

Provoke: TypeAlias = Callable[[Served], Awaitable[Answer]]


def told() -> dict[str, int]:
    """The statuses of the page's table of refusals, by code."""
    section = text_of("docs/http.md").split("## Refusals")[1].split("\n## ")[0]
    return {code: int(status) for status, code in re.findall(r"^\| (\d+) \| `(\w+)` \|", section, re.MULTILINE)}


async def not_json(served: Served) -> Answer:
    return await served.run(b"{")


async def foreign_origin(served: Served) -> Answer:
    return await served.run(ask("hello"), origin="http://app.example")


async def not_found(served: Served) -> Answer:
    return await served.run(ask("hello"), path="/agents/nobody")


async def method_not_allowed(served: Served) -> Answer:
    return await served.get("/")


async def run_conflict(served: Served) -> Answer:
    await served.run(ask("hello"))
    return await served.run(ask("/tokens 1", message="u2"))


async def body_too_large(served: Served) -> Answer:
    return await served.run(ask("x" * 2000))


async def unsupported_media_type(served: Served) -> Answer:
    return await served.run(ask("hello"), content_type="text/plain")


async def invalid_input(served: Served) -> Answer:
    return await served.run({"threadId": "t1"})


async def too_deep(served: Served) -> Answer:
    return await served.run(
        b'{"threadId": "t1", "runId": "r1", "messages": [], "state": %b}' % (b"[" * 200 + b"]" * 200)
    )


async def invalid_cursor(served: Served) -> Answer:
    first = await served.run(ask("hello"))
    return await served.get(f"{first.headers['location']}/events?after_seq=-1")


PROVOKED: list[Provoke] = [
    not_json,
    foreign_origin,
    not_found,
    method_not_allowed,
    run_conflict,
    body_too_large,
    unsupported_media_type,
    invalid_input,
    too_deep,
    invalid_cursor,
]


@pytest.mark.parametrize("provoke", PROVOKED, ids=lambda provoke: provoke.__name__)
async def test_a_refusal_has_the_code_and_the_status_of_the_page(provoke: Provoke) -> None:
    async with serving(demo_agent(), max_body_mib=0.001) as served:
        answer = await provoke(served)
    code = provoke.__name__
    assert (answer.document["code"], answer.status) == (code, told()[code])
    assert answer.document.keys() == {"code", "message", "details"}
    assert answer.headers["content-type"] == "application/json"


async def test_a_run_is_answered_with_the_headers_of_the_page() -> None:
    section = text_of("docs/http.md").split("## A run")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", section, re.MULTILINE)
    fixed = {name: value.split("`")[1] for name, value in rows if value.startswith("`")}
    named = {name for name, value in rows if not value.startswith("`")}
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("hello"))
        named_form = dict(rows)["content-type"].split("`")[3]
        in_the_other_form = await served.run(ask("hello"), accept=named_form)
        record = await served.get(answer.headers["location"])
    assert fixed.keys() == {"content-type", "cache-control", "x-accel-buffering"}
    assert {name: answer.headers[name] for name in fixed} == fixed
    assert {name: in_the_other_form.headers[name] for name in fixed} == {**fixed, "content-type": named_form}
    assert named == {"x-run-id", "location"}
    assert record.document["run_id"] == answer.headers["x-run-id"]


async def test_the_cursor_contract_of_the_page_holds() -> None:
    async with serving(demo_agent()) as served:
        first = await served.run(ask("hello"))
        record = await served.get(first.headers["location"])
        events = f"{first.headers['location']}/events"
        last = record.document["last_event_seq"]
        whole = await served.get(events)
        larger = await served.get(f"{events}?after_seq=1", last_event_id=str(last - 1))
        end = await served.get(f"{events}?after_seq={last}")
        beyond = await served.get(f"{events}?after_seq={last + 1}")
        envelope = await served.get(f"{events}?full=1&after_seq={last - 1}")
    assert [event["seq"] for event in whole.events] == list(range(1, last + 1))
    assert [event["seq"] for event in larger.events] == [last]
    assert (end.status, end.body) == (204, b"")
    assert (beyond.status, beyond.document["details"]) == (422, {"last_event_seq": last})
    assert whole.events[0].keys() == {"seq", "event_type", "occurred_at", "payload"}
    assert envelope.events[0].keys() > whole.events[0].keys()


async def test_a_request_with_nothing_to_run_leaves_nothing_behind() -> None:
    async with serving(demo_agent()) as served:
        answer = await served.run({"threadId": "t1", "runId": "r1", "messages": []})
    assert answer.types == ["RUN_STARTED", "RUN_FINISHED"]
    assert "x-run-id" not in answer.headers


async def test_frames_are_as_the_page_says() -> None:
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("What is the weather in Oslo?"))
    assert b"\r" not in answer.body
    *frames, rest = answer.body.split(b"\n\n")
    assert rest == b""
    for frame in frames:
        assert re.fullmatch(rb"(id: \d+\n)?data: [^\n]+", frame)
        orjson.loads(frame.split(b"data: ", 1)[1])
    assert answer.types[-1] == "RUN_FINISHED"
