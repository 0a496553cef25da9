"""Probes of the run input: what must be taken, what must be refused, and versions."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from agui_check.findings import JsonObject
from agui_check.inquiry import Inquiry, Probe, new, probe, tool, user

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_IMAGE = {"type": "image", "source": {"type": "data", "value": _PIXEL, "mimeType": "image/png"}}


def _text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


async def _runs(i: Inquiry, requirement: str, what: str, body: JsonObject) -> None:
    """The input must be taken, and its run must not fail for it."""
    exchange = await i.run(body)
    fine = exchange.streams and exchange.outcome not in ("error", "nothing")
    i.expect(requirement, fine, f"{what} is answered with {exchange.answer}.")


async def _refused(i: Inquiry, requirement: str, what: str, body: JsonObject) -> None:
    exchange = await i.run(body)
    i.expect(requirement, exchange.refused, f"{what} is answered with {exchange.answer}.")


@probe("R-040")
async def thread_run_and_messages_are_required(i: Inquiry) -> None:
    for name in ("threadId", "runId", "messages"):
        body = {member: value for member, value in i.body().items() if member != name}
        await _refused(i, "R-040", f"An input without {name}", body)
    empty = await i.run(i.body(None))
    i.expect("R-040", empty.streams, f"An input with no messages in its list is answered with {empty.answer}.")


@probe("R-042")
async def histories_of_any_shape_are_taken(i: Inquiry) -> None:
    asked = {"id": new("a"), "role": "assistant", "toolCalls": [_call("c1")]}
    answer = {"id": new("o"), "role": "tool", "toolCallId": "c1", "content": "4"}
    shapes = {
        "A history that ends in a tool message": [user("2+2?"), asked, answer],
        "A history without a user message": [{"id": new("a"), "role": "assistant", "content": "Welcome"}],
        "A history with three new user messages": [user("One"), user("Two"), user("Three")],
    }
    for what, messages in shapes.items():
        exchange = await i.run(i.body(None, messages=messages, tools=[tool("add")]))
        i.expect("R-042", exchange.status < 500, f"{what} is answered with {exchange.answer}.")
    resume = [{"interruptId": new("interrupt"), "status": "resolved", "payload": True}]
    exchange = await i.run(i.body(None, resume=resume))
    i.expect("R-042", exchange.status < 500, f"An input with only a resume is answered with {exchange.answer}.")


def _call(id_: str) -> JsonObject:
    return {"id": id_, "type": "function", "function": {"name": "add", "arguments": '{"a":2,"b":2}'}}


@probe("R-043", "R-059")
async def parts_that_cannot_be_used_fail_no_run(i: Inquiry) -> None:
    audio = {"type": "audio", "source": {"type": "data", "value": "AAAA", "mimeType": "audio/x-none"}}
    handle = {"type": "document", "source": {"type": "file", "value": "file-gone", "provider": "nobody"}}
    for what, part in (("An image", _IMAGE), ("An odd audio part", audio), ("A foreign file handle", handle)):
        await _runs(i, "R-043", f"{what} beside text", i.body(None, messages=[user([_text("Hello"), part])]))
    binary = {"type": "binary", "mimeType": "image/png", "data": _PIXEL}
    await _runs(i, "R-059", "A retired binary part", i.body(None, messages=[user([_text("Hello"), binary])]))


@probe("R-044", "R-204")
async def no_source_is_fetched(i: Inquiry) -> None:
    if not i.target.is_local:
        i.skip("the server could not reach a listener on this machine", "R-044", "R-204")
        return
    hits: list[bytes] = []

    async def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hits.append(await reader.readline())
        writer.close()

    listener = await asyncio.start_server(heard, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with listener:
        for requirement, kind in (("R-044", "file"), ("R-204", "url")):
            hits.clear()
            source = {"type": kind, "value": f"http://127.0.0.1:{port}/x.png", "mimeType": "image/png"}
            exchange = await i.run(i.body(None, messages=[user([_text("Hello"), {"type": "image", "source": source}])]))
            if hits or exchange.streams:
                i.expect(requirement, not hits, f"The server fetches the value of a {kind} source.")


@probe("R-048")
async def state_may_be_anything(i: Inquiry) -> None:
    for state in ([1, 2], 5, "x", {"a": {"b": None}}):
        await _runs(i, "R-048", f"The state {state!r}", i.body(state=state))


@probe("R-053", "R-052", "R-058")
async def unknown_material_is_left_out(i: Inquiry) -> None:
    unknown: dict[str, JsonObject] = {
        "An unknown member": i.body(xUnknown={"a": 1}),
        "An unknown member of a message": i.body(None, messages=[user("Hello", xUnknown=1)]),
        "A message of an unknown role": i.body(
            None, messages=[{"id": new("m"), "role": "oracle", "content": "?"}, user("Hello")]
        ),
        "A part of an unknown type": i.body(None, messages=[user([_text("Hello"), {"type": "hologram", "data": "x"}])]),
    }
    for what, body in unknown.items():
        await _runs(i, "R-053", what, body)
    plan: JsonObject = {"id": new("activity"), "role": "activity", "activityType": "PLAN", "content": {"steps": []}}
    await _runs(i, "R-058", "An activity message in the history", i.body(None, messages=[plan, user("Hello")]))


@probe("R-054")
async def an_unknown_kind_of_source_costs_its_part_at_most(i: Inquiry) -> None:
    part = {"type": "image", "source": {"type": "cloud", "value": "x"}}
    exchange = await i.run(i.body(None, messages=[user([_text("Hello"), part])]))
    fine = exchange.refused or (exchange.streams and exchange.outcome != "error")
    i.expect("R-054", fine, f"An unknown kind of source is answered with {exchange.answer}.")


@probe("R-055", "R-056", "R-057")
async def malformed_input_is_refused_and_not_coerced(i: Inquiry) -> None:
    malformed: dict[str, JsonObject] = {
        "threadId as a number": i.body(threadId=5),
        "A message without an id": i.body(None, messages=[{"role": "user", "content": "Hello"}]),
        "A resume status that is none": i.body(resume=[{"interruptId": "x", "status": "maybe"}]),
        "protocolVersion as a number": i.body(protocolVersion=1.0),
        "tools as an object": i.body(tools={}),
        "messages as text": i.body(messages="Hello"),
        "context with a number": i.body(context=[{"description": "d", "value": 5}]),
    }
    for what, body in malformed.items():
        await _refused(i, "R-055", what, body)
    for name in ("parentRunId", "tools", "resume"):
        await _refused(i, "R-056", f"{name} of null", i.body() | {name: None})
    await _refused(i, "R-056", "A message with metadata of null", i.body(None, messages=[user("Hello", metadata=None)]))
    for name in ("forwardedProps", "state"):
        exchange = await i.run(i.body() | {name: None})
        fine = exchange.refused or exchange.streams
        i.expect("R-056", fine, f"{name} of null is answered with {exchange.answer}.")
    snake = {"thread_id": new("thread"), "run_id": new("run"), "messages": [user("Hello")]}
    await _refused(i, "R-057", "An input in snake_case", snake)


@probe("R-061")
async def a_run_id_stands_for_one_run(i: Inquiry) -> None:
    body = i.body()
    first = await i.run(body)
    again = await i.run(body)
    if not first.streams:
        return
    same = not again.streams or _ids(again) == _ids(first)
    if again.streams and first.text and not again.text:
        i.fault("R-061", "The same request again is answered with an empty run.", remark=True)
    elif not same:
        i.fault("R-061", "The same request again makes another run under the same id.", remark=True)
    i.passed("R-061")


def _ids(exchange: Any) -> list[str]:
    return [str(event.get("messageId")) for event in exchange.of("TEXT_MESSAGE_START", "TEXT_MESSAGE_CHUNK")]


@probe("R-062")
async def a_parent_run_is_echoed_as_it_came(i: Inquiry) -> None:
    await i.run(i.body(parentRunId=new("parent")))


@probe("R-150", "R-151", "R-153", "R-154", "R-156")
async def every_version_is_served_and_told_ours(i: Inquiry) -> None:
    versions = (("1.7", "R-151"), ("1.1", "R-151"), ("1.10", "R-156"), ("banana", "R-153"), ("1", "R-153"))
    for version, requirement in (*versions, ("1.0.0", "R-153"), (None, "R-154")):
        body = i.body(protocolVersion=version)
        if version is None:
            del body["protocolVersion"]
        exchange = await i.run(body)
        what = "no protocolVersion" if version is None else f"protocolVersion {version!r}"
        fine = exchange.streams and exchange.outcome not in ("error", "nothing")
        i.expect(requirement, fine, f"An input with {what} is answered with {exchange.answer}.")
        told = [event.get("protocolVersion") for event in exchange.of("RUN_STARTED")]
        if told and version in ("1.7", "1.10", "banana"):
            i.expect("R-150", version not in told, f"The version {version!r} of the client is echoed.")


@probe("R-152")
async def another_major_version_is_refused_in_time_or_served(i: Inquiry) -> None:
    exchange = await i.run(i.body(protocolVersion="2.0"))
    fine = exchange.refused or (exchange.streams and exchange.outcome != "nothing")
    i.expect("R-152", fine, f"protocolVersion '2.0' is answered with {exchange.answer}.")


PROBES: Final[tuple[Probe, ...]] = (
    thread_run_and_messages_are_required,
    histories_of_any_shape_are_taken,
    parts_that_cannot_be_used_fail_no_run,
    no_source_is_fetched,
    state_may_be_anything,
    unknown_material_is_left_out,
    an_unknown_kind_of_source_costs_its_part_at_most,
    malformed_input_is_refused_and_not_coerced,
    a_run_id_stands_for_one_run,
    a_parent_run_is_echoed_as_it_came,
    every_version_is_served_and_told_ours,
    another_major_version_is_refused_in_time_or_served,
)
