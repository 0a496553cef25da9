"""What is no request for a run is refused with a status, a code and a path, and leaves no trace."""

from __future__ import annotations

from typing import Any

import orjson

from agui_bridge.demo import demo_agent
from runtime.agent import Agent
from runtime.journal.memory import MemoryJournal
from runtime.testing import ScriptedProvider
from runtime.testing import says as saying
from tests.serving import Answer, Served, ask, serving
from tests.wire.sockets import eventually, post, unchunked, wire

DEEP = 100_000


def traces(served: Served) -> dict[str, int]:
    """How much the store holds."""
    journal = served.bridge.supervisor.journal
    assert isinstance(journal, MemoryJournal)
    kept = {"sessions": journal._sessions, "threads": journal._threads, "runs": journal._runs}
    return {name: len(rows) for name, rows in {**kept, "contents": journal._contents}.items() if rows}


def refusal(answer: Answer) -> tuple[int, str, dict[str, Any]]:
    """Status, code and details of an answer that has the documented shape."""
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.document) == ["code", "message", "details"]
    assert answer.document["message"]
    return answer.status, answer.document["code"], answer.document["details"]


async def still_serves(served: Served) -> bool:
    """Whether a good request is served now."""
    return (await served.run(ask("hello", thread="afterwards"))).types[-1] == "RUN_FINISHED"


NOT_JSON = {
    "nothing": b"",
    "white space": b" \n",
    "words": b"hello",
    "half a document": b'{"threadId": "t1"',
    "two documents": b"{}{}",
    "a trailing comma": b'{"threadId": "t1",}',
    "single quotes": b"{'threadId': 't1'}",
    "NaN": b'{"threadId": "t1", "runId": "r1", "messages": [], "state": NaN}',
    "an infinity": b'{"threadId": "t1", "runId": "r1", "messages": [], "state": -Infinity}',
    "UTF-16": orjson.dumps(ask("hello")).decode().encode("utf-16"),
    "UTF-16 without a mark": orjson.dumps(ask("hello")).decode().encode("utf-16-le"),
    "Latin-1": '{"threadId": "é", "runId": "r1", "messages": []}'.encode("latin-1"),
    "a surrogate in UTF-8": b'{"threadId": "\xed\xa0\x80", "runId": "r1", "messages": []}',
    "a control character": b'{"threadId": "a\x01", "runId": "r1", "messages": []}',
    "a NUL behind it": orjson.dumps(ask("hello")) + b"\0",
    "gzip": b"\x1f\x8b\x08\x00\x00",
}


async def test_a_body_that_is_no_json_is_refused_with_400():
    async with serving(demo_agent()) as served:
        refusals = {name: refusal(await served.run(body)) for name, body in NOT_JSON.items()}
        assert refusals == dict.fromkeys(NOT_JSON, (400, "not_json", {}))
        assert traces(served) == {}
        assert await still_serves(served)


def said(**members: Any) -> dict[str, Any]:
    """A run whose one message has these members."""
    return ask("", messages=[{"id": "u1", "role": "user", "content": "hello", **members}])


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in ask("hello").items() if key != name}


MALFORMED: dict[str, tuple[Any, str]] = {
    "a list": ([], ""),
    "a string": ("hello", ""),
    "null": (None, ""),
    "no threadId": (without("threadId"), "/threadId"),
    "no runId": (without("runId"), "/runId"),
    "no messages": (without("messages"), "/messages"),
    "a number as threadId": (ask("hello", threadId=5), "/threadId"),
    "an empty threadId": (ask("hello", thread=""), "/threadId"),
    "a null runId": (ask("hello", runId=None), "/runId"),
    "a huge threadId": (ask("hello", thread="t" * 257), "/threadId"),
    "a huge runId": (ask("hello", run="r" * 100_000), "/runId"),
    "a huge message id": (said(id="u" * 257), "/messages/0/id"),
    "a control character in an id": (ask("hello", thread="a\nb"), "/threadId"),
    "a NUL in an id": (ask("hello", run="a\0"), "/runId"),
    "messages as an object": (ask("hello", messages={}), "/messages"),
    "a message that is text": (ask("", messages=["hello"]), "/messages/0"),
    "a message without a role": (ask("", messages=[{"id": "u1", "content": "x"}]), "/messages/0/role"),
    "a role that is a number": (said(role=1), "/messages/0/role"),
    "content that is a number": (said(content=5), "/messages/0/content"),
    "content that is null": (said(content=None), "/messages/0/content"),
    "a part that is text": (said(content=["x"]), "/messages/0/content/0"),
    "a text part without text": (said(content=[{"type": "text"}]), "/messages/0/content/0/text"),
    "an image without a source": (said(content=[{"type": "image"}]), "/messages/0/content/0/source"),
    "tools as an object": (ask("hello", tools={}), "/tools"),
    "a tool without a name": (ask("hello", tools=[{"description": "d", "parameters": {}}]), "/tools/0/name"),
    "context as text": (ask("hello", context="x"), "/context"),
    "a resume status that is unknown": (
        ask("hello", resume=[{"interruptId": "i1", "status": "maybe"}]),
        "/resume/0/status",
    ),
    "arguments that are an object": (
        ask(
            "",
            messages=[
                {
                    "id": "a1",
                    "role": "assistant",
                    "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": {}}}],
                }
            ],
        ),
        "/messages/0/toolCalls/0/function/arguments",
    ),
}


async def test_a_malformed_member_is_refused_with_its_path():
    async with serving(demo_agent()) as served:
        refusals = {name: refusal(await served.run(body)) for name, (body, _) in MALFORMED.items()}
        assert {name: details["path"] for name, (_, _, details) in refusals.items()} == {
            name: path for name, (_, path) in MALFORMED.items()
        }
        assert {(status, code) for status, code, _ in refusals.values()} == {(422, "invalid_input")}
        assert traces(served) == {}
        assert await still_serves(served)


async def test_a_lone_surrogate_in_an_id_is_refused():
    body = orjson.dumps(ask("hello", thread="T", run="R", message="M"))
    async with serving(demo_agent()) as served:
        for given, path in ((b'"T"', "/threadId"), (b'"R"', "/runId"), (b'"M"', "/messages/0/id")):
            status, code, details = refusal(await served.run(body.replace(given, b'"a\\ud800"')))
            assert (status, code, details["path"]) == (422, "invalid_input", path)
        assert traces(served) == {}


async def test_a_lone_surrogate_in_a_text_becomes_a_replacement_character():
    body = orjson.dumps(ask("half")).replace(b"half", b"half \\ud83d of a pair")
    async with serving(demo_agent()) as served:
        answer = await served.run(body)
        spoken = "".join(event["delta"] for event in answer.events if event["type"] == "TEXT_MESSAGE_CONTENT")
        assert spoken == "You said: half � of a pair"


async def test_a_lone_surrogate_in_the_name_of_a_wrong_member_does_not_break_the_refusal():
    body = b'{"threadId": "t1", "runId": "r1", "messages": [], "\\udfff": ' + b"[" * 200 + b"]" * 200 + b"}"
    async with serving(demo_agent()) as served:
        assert refusal(await served.run(body))[:2] == (422, "too_deep")


async def test_deep_nesting_is_refused_however_deep():
    async with serving(demo_agent()) as served:
        for member in (b"state", b"forwardedProps", b"unheardOf"):
            for depth in (101, 2_000, DEEP):
                body = b'{"threadId": "t1", "runId": "r1", "messages": [], "%b": ' % member
                body += b"[" * depth + b"]" * depth + b"}"
                assert refusal(await served.run(body))[:2] == (422, "too_deep")
        assert traces(served) == {}
        assert await still_serves(served)


async def test_brackets_that_are_never_closed_are_refused():
    async with serving(demo_agent()) as served:
        assert (await served.run(b"[" * DEEP)).status in (400, 422)
        assert (await served.run(b'{"a":' * DEEP)).status in (400, 422)
        assert await still_serves(served)


async def test_a_request_without_messages_is_legal_and_leaves_no_trace():
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("", messages=[]))
        assert answer.types == ["RUN_STARTED", "RUN_FINISHED"]
        assert "location" not in answer.headers
        assert traces(served) == {}


async def test_unknown_roles_and_parts_are_left_out_and_the_rest_is_run():
    parts = [{"type": "hologram", "data": 1}, {"type": "text", "text": "hello"}]
    messages = [
        {"id": "x1", "role": "oracle", "content": "I know"},
        {"id": "u1", "role": "user", "content": parts, "mood": "good"},
    ]
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("", messages=messages, unheardOf={"a": 1}))
        assert answer.types[-1] == "RUN_FINISHED"
        assert "Hello!" in answer.body.decode().replace('"}\n\ndata', "")


async def test_of_a_key_that_is_given_twice_the_last_counts():
    body = b'{"threadId": "first", "threadId": "last", "runId": "r1", "messages": []}'
    async with serving(demo_agent()) as served:
        answer = await served.run(body)
        assert answer.events[0]["threadId"] == "last"


async def test_a_byte_order_mark_is_no_harm():
    async with serving(demo_agent()) as served:
        answer = await served.run(b"\xef\xbb\xbf" + orjson.dumps(ask("hello")))
        assert answer.types[-1] == "RUN_FINISHED"


async def test_numbers_beyond_every_type_are_kept_as_what_can_be_stored():
    body = orjson.dumps(ask("hello", state={"n": 0})).replace(b'"n":0', b'"n":1e999, "m":' + b"9" * 400)
    async with serving(demo_agent()) as served:
        answer = await served.run(body)
        assert answer.types[-1] == "RUN_FINISHED"
        facts = await served.get(answer.headers["location"] + "/events")
        (state,) = [fact["payload"] for fact in facts.events if fact["event_type"] == "state.snapshot"]
        assert state["snapshot"] == {"n": None, "m": "9" * 400}


async def test_an_unknown_agent_is_not_found():
    async with serving(demo_agent()) as served:
        assert refusal(await served.run(ask("hello"), path="/agents/nobody")) == (404, "not_found", {})
        assert refusal(await served.run(ask("hello"), path="/agents/"))[:2] == (404, "not_found")
        assert refusal(await served.run(ask("hello"), path="/agents/%F0%9F%98%80%00"))[:2] == (404, "not_found")
        assert traces(served) == {}


async def test_another_request_under_a_used_run_id_is_a_conflict():
    async with serving(demo_agent()) as served:
        first = await served.run(ask("hello"))
        status, code, details = refusal(await served.run(ask("good bye", message="u2")))
        assert (status, code, details) == (409, "run_conflict", {"run_id": first.headers["x-run-id"]})
        assert traces(served)["runs"] == 1


async def test_a_client_that_goes_away_within_its_body_leaves_no_trace():
    async with serving(demo_agent()) as served:
        whole = post(ask("hello"))
        async with wire(served.url) as gone:
            await gone.send(whole[:-20])
            gone.reset()
        async with wire(served.url) as gone:
            await gone.send(post(b"", content_length="5000") + b'{"threadId"')
            gone.reset()
        assert await still_serves(served)
        assert traces(served)["runs"] == 1


async def test_a_client_of_http_1_0_is_served_and_its_connection_closed():
    async with serving(demo_agent()) as served, wire(served.url) as old:
        await old.send(post(ask("hello"), version="1.0"))
        answer = await old.rest()
        assert answer.split(b"\r\n", 1)[0].endswith(b" 200 OK")
        assert b"connection: close" in answer.partition(b"\r\n\r\n")[0]
        assert b'"type":"RUN_FINISHED"' in unchunked(answer)


async def test_a_body_that_trickles_in_is_waited_for():
    async with serving(demo_agent()) as served, wire(served.url) as slow:
        whole = post(ask("hello"))
        await slow.send(*(whole[at : at + 7] for at in range(0, len(whole), 7)))
        assert b'"type":"RUN_FINISHED"' in unchunked(await slow.rest())


async def test_nobody_is_asked_before_the_input_is_good():
    model = ScriptedProvider(saying("hello"))
    async with serving(Agent("careful", model=model)) as served:
        for body in (*NOT_JSON.values(), *(body for body, _ in MALFORMED.values())):
            await served.run(body)
        assert model.requests == []
        await served.run(ask("hello"))
        await eventually(lambda: len(model.requests) == 1)
