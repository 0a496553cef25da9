"""Reading runs: the record, and the facts from every cursor, in both formats, replayed and live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agui_bridge import Agent
from agui_bridge.demo import demo_agent
from agui_bridge.encoders import Encoder, canonical_encoder
from agui_bridge.web import runs_api
from runtime.events import Record
from runtime.run import RunRecord
from runtime.samples import AssistantMessageDone, Completed, TextDelta
from runtime.testing import ScriptedProvider, says
from tests.serving import Answer, JsonObject, Served, ask, events_in, serving
from tests.wire.sockets import Wire, eventually, unchunked, wire

FIELDS = [
    "run_id",
    "client_run_id",
    "thread_id",
    "session_id",
    "owner_id",
    "agent_id",
    "status",
    "last_event_seq",
    "executor_instance_id",
    "lease_expires_at",
    "final_message_id",
    "error",
    "root_run_id",
    "parent_run_id",
    "agent_snapshot_checksum",
    "context_snapshot_checksum",
    "trace_id",
    "usage",
    "created_at",
    "started_at",
    "finished_at",
]

TODO = '/script {"rounds": [{"text": "So: ", "tool_calls": [{"name": "add_todo", "arguments": {"text": "x"}}]}]}'


def gated(*gates: asyncio.Event) -> Agent:
    """An agent that says a word before each gate and one behind the last."""
    said = [line for number, gate in enumerate(gates) for line in (TextDelta(f"w{number} "), gate)]
    return Agent("gated", model=ScriptedProvider([*said, TextDelta("end"), AssistantMessageDone(), Completed("stop")]))


def frames(body: bytes) -> list[bytes]:
    """The frames of an event stream, comments left out."""
    return [frame + b"\n\n" for frame in body.split(b"\n\n") if frame and not frame.startswith(b":")]


def id_of(frame: bytes) -> int | None:
    first = frame.split(b"\n")[0]
    return int(first[4:]) if first.startswith(b"id: ") else None


def is_invalid(answer: Answer) -> bool:
    return (answer.status, answer.document["code"]) == (422, "invalid_cursor")


# --- the record ---------------------------------------------------------------------------------------------------


async def test_a_run_shows_exactly_its_documented_fields():
    async with serving(demo_agent()) as served:
        answer = await served.run(ask("hello", thread="t7", run="r7"))
        run = (await served.get(answer.headers["location"])).document
        assert list(run) == FIELDS
        assert (run["run_id"], run["client_run_id"]) == (answer.headers["x-run-id"], "r7")
        assert (run["session_id"], run["owner_id"], run["agent_id"]) == ("t7", "anonymous", "demo")
        assert run["thread_id"].startswith("thr_")
        assert (run["root_run_id"], run["parent_run_id"]) == (run["run_id"], None)
        assert (run["status"], run["error"]) == ("succeeded", None)
        assert len(run["agent_snapshot_checksum"]) == len(run["context_snapshot_checksum"]) == 64
        shown = next(event["messageId"] for event in answer.events if event["type"] == "TEXT_MESSAGE_START")
        assert shown == f"{run['final_message_id']}-1"  # a page has a message for each round
        assert run["usage"][0]["model"] == "scripted"
        assert run["created_at"] <= run["started_at"] <= run["finished_at"]
        assert run["created_at"].endswith("Z")


async def test_the_record_names_the_message_of_the_journal_which_a_page_sees_round_by_round():
    async with serving(demo_agent()) as served:
        ran = await served.run(ask(TODO))
        final = (await served.get(ran.headers["location"])).document["final_message_id"]
        facts = (await served.get(ran.headers["location"] + "/events")).events
        assert {f["payload"]["message_id"] for f in facts if f["event_type"] == "message.delta"} == {final}
        shown = [event["messageId"] for event in ran.events if event["type"] == "TEXT_MESSAGE_START"]
        assert shown == [f"{final}-1", f"{final}-2"]


async def test_a_failed_run_shows_why_and_a_running_one_that_it_runs():
    gate = asyncio.Event()
    async with serving([gated(gate), demo_agent()]) as served:
        failed = await served.run(ask("/fail 2"), path="/agents/demo")
        run = (await served.get(failed.headers["location"])).document
        assert (run["status"], run["error"]["code"]) == ("failed", "provider_error")
        assert list(run["error"]) == ["code", "message", "retryable"]
        async with served.streaming(ask("go", thread="t2")) as events:
            async for event in events:
                if event["type"] == "TEXT_MESSAGE_CONTENT":
                    break
            (live,) = await served.bridge.supervisor.journal.active_runs()
            run = (await served.get(f"/api/agent-runs/{live.run_id}")).document
            assert (run["status"], run["finished_at"], run["final_message_id"]) == ("running", None, None)
            gate.set()


async def test_an_unknown_run_is_not_found():
    async with serving(demo_agent()) as served:
        for name in ("run_1", "%00", "run%2F1", "x" * 5_000, "%F0%9F%98%80", "%ED%A0%80", "'; --"):
            for path in (f"/api/agent-runs/{name}", f"/api/agent-runs/{name}/events"):
                answer = await served.get(path)
                assert (answer.status, answer.document["code"]) == (404, "not_found")


# --- cursors ------------------------------------------------------------------------------------------------------


async def test_the_facts_are_replayed_from_every_cursor():
    async with serving(demo_agent()) as served:
        ran = await served.run(ask(TODO))
        url = ran.headers["location"] + "/events"
        whole = frames((await served.get(url)).body)
        assert [id_of(frame) for frame in whole] == list(range(1, len(whole) + 1))
        for after in range(len(whole)):
            rest = b"".join(whole[after:])
            assert (await served.get(f"{url}?after_seq={after}")).body == rest
            assert (await served.get(url, last_event_id=str(after))).body == rest
        end = await served.get(f"{url}?after_seq={len(whole)}")
        assert (end.status, end.body) == (204, b"")
        assert (await served.get(url, last_event_id=str(len(whole)))).status == 204


async def test_of_two_cursors_the_larger_counts_and_an_empty_one_says_nothing():
    async with serving(demo_agent()) as served:
        url = (await served.run(ask("hello"))).headers["location"] + "/events"
        for header, query in (("3", "5"), ("5", "3"), ("0005", "0")):
            answer = await served.get(f"{url}?after_seq={query}", last_event_id=header)
            assert answer.events[0]["seq"] == 6
        assert (await served.get(url, last_event_id="")).events[0]["seq"] == 1


async def test_a_cursor_that_is_none_is_refused():
    async with serving(demo_agent()) as served:
        ran = await served.run(ask("hello"))
        url = ran.headers["location"] + "/events"
        last = (await served.get(ran.headers["location"])).document["last_event_seq"]
        for wrong in (
            "-1",
            "abc",
            "1.5",
            "1e3",
            "0x10",
            "+1",
            "",
            "%D9%A3",
            "9" * 40,
            str(last + 1),
            str(2**53),
            "%20",
        ):
            assert is_invalid(await served.get(f"{url}?after_seq={wrong}"))
        for wrong in ("-1", "abc", "1 2", "9" * 40, str(last + 1)):
            assert is_invalid(await served.get(url, last_event_id=wrong))
        future = await served.get(f"{url}?after_seq={last + 1}")
        assert future.document["details"] == {"last_event_seq": last}
        assert is_invalid(await served.get(f"{url}?after_seq={last + 1}&format=agui"))
        assert is_invalid(await served.get(f"{url}?after_seq=2", last_event_id="x"))


async def test_an_unknown_format_is_refused():
    async with serving(demo_agent()) as served:
        url = (await served.run(ask("hello"))).headers["location"] + "/events"
        for wrong in ("xml", "", "AGUI"):
            answer = await served.get(f"{url}?format={wrong}")
            assert (answer.status, answer.document["details"]) == (422, {"path": "format"})


@pytest.mark.requirement("R-011")
async def test_a_post_takes_no_cursor():
    async with serving(demo_agent()) as served:
        first = await served.run(ask("hello"), last_event_id="5")
        assert first.types[0] == "RUN_STARTED"
        repeated = await served.run(ask("hello"), last_event_id="5")
        assert repeated.body == first.body


# --- formats ------------------------------------------------------------------------------------------------------


async def test_the_canonical_format_is_slim_and_the_envelope_is_there_for_who_asks():
    async with serving(demo_agent()) as served:
        ran = await served.run(ask("hello"))
        url = ran.headers["location"] + "/events"
        slim, full = await served.get(url), await served.get(f"{url}?full=1")
        assert [list(fact) for fact in slim.events] == [["seq", "event_type", "occurred_at", "payload"]] * len(
            slim.events
        )
        first = frames(slim.body)[0].split(b"\n")
        assert first[:2] == [b"id: 1", b"event: run.started"]
        run = (await served.get(ran.headers["location"])).document
        for thin, fact in zip(slim.events, full.events, strict=True):
            assert {name: fact[name] for name in thin} == thin
            assert (fact["run_id"], fact["root_run_id"], fact["root_seq"]) == (
                run["run_id"],
                run["run_id"],
                fact["seq"],
            )
            assert (fact["agent_id"], fact["agent_snapshot_checksum"]) == ("demo", run["agent_snapshot_checksum"])
            assert bytes.fromhex(fact["payload_checksum"])
            assert fact["recorded_at"] >= fact["occurred_at"][:10]
            assert {"schema_version", "trace_id", "span_id"} <= set(fact)


@pytest.mark.requirement("R-018")
async def test_the_agui_format_is_the_stream_that_the_post_gave():
    async with serving(demo_agent()) as served:
        ran = await served.run(ask(TODO, thread="t3", run="r3"))
        answer = await served.get(ran.headers["location"] + "/events?format=agui")
        assert answer.body == ran.body
        assert (answer.events[0]["threadId"], answer.events[0]["runId"]) == ("t3", "r3")


async def test_the_agui_format_begins_with_the_state_as_it_was_then():
    async with serving(demo_agent()) as served:
        await served.run(ask(TODO))
        second = await served.run(ask(TODO, run="r2", message="u2"))
        await served.run(ask(TODO, run="r3", message="u3"))
        answer = await served.get(second.headers["location"] + "/events?format=agui")
        assert answer.types[:2] == ["RUN_STARTED", "STATE_SNAPSHOT"]
        assert answer.events[1]["snapshot"] == {"todos": [{"text": "x", "done": False}]}


@pytest.mark.requirement("R-007", "R-018")
async def test_in_the_agui_format_only_the_last_frame_of_a_fact_has_an_id_and_each_id_is_a_place_to_go_on_from():
    async with serving(demo_agent()) as served:
        await served.run(ask(TODO))
        url = (await served.run(ask(TODO, run="r2", message="u2"))).headers["location"] + "/events"
        whole = frames((await served.get(f"{url}?format=agui")).body)
        ids = [id_of(frame) for frame in whole]
        assert ids[:2] == [None, 1]  # RUN_STARTED and the snapshot behind it are one fact
        given = [each for each in ids if each is not None]
        assert given == sorted(set(given))
        for place, id_ in enumerate(ids):
            if id_ is not None and id_ != given[-1]:
                rest = await served.get(f"{url}?format=agui&after_seq={id_}")
                assert rest.body == b"".join(whole[place + 1 :])
        assert (await served.get(f"{url}?format=agui", last_event_id=str(given[-1]))).status == 204


# --- live ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def reading(served: Served, path: str, **headers: str) -> AsyncGenerator[Wire, None]:
    """A reader on a socket of its own."""
    async with wire(served.url) as reader:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        await reader.send(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{lines}\r\n".encode())
        yield reader


@asynccontextmanager
async def running(*gates: asyncio.Event, **settings: Any) -> AsyncGenerator[tuple[Served, str], None]:
    """A run that waits at its first gate, and where its events are."""
    async with serving(gated(*gates), **settings) as served, served.streaming(ask("go")) as events:
        async for event in events:
            if event["type"] == "TEXT_MESSAGE_CONTENT":
                break
        (run,) = await served.bridge.supervisor.journal.active_runs()
        try:
            yield served, f"/api/agent-runs/{run.run_id}/events"
        finally:
            for gate in gates:
                gate.set()


@pytest.mark.parametrize("wanted", ["canonical", "agui"])
async def test_a_reader_sees_what_was_and_then_what_comes(wanted: str):
    gates = asyncio.Event(), asyncio.Event()
    async with running(*gates) as (served, path), reading(served, f"{path}?format={wanted}") as reader:
        assert b"w1" not in await reader.until(b"w0 ")
        gates[0].set()
        assert b'"end"' not in await reader.until(b"w1 ")
        gates[1].set()
        body = unchunked(await reader.rest())  # the body ends right behind the terminal event
        last = events_in(body)[-1]
        assert last.get("event_type", last.get("type")) in ("run.completed", "RUN_FINISHED")
        assert body == (await served.get(f"{path}?format={wanted}")).body


async def test_a_reader_at_the_end_of_a_run_that_goes_on_waits_for_more():
    gate = asyncio.Event()
    async with running(gate) as (served, path):
        last = (await served.get(path.removesuffix("/events"))).document["last_event_seq"]
        async with reading(served, path, last_event_id=str(last)) as reader:
            await reader.until(b"\r\n\r\n")
            gate.set()
            facts = events_in(unchunked(await reader.rest()))
            assert facts[0]["seq"] == last + 1
            assert facts[-1]["event_type"] == "run.completed"


async def test_sixteen_readers_get_the_same_bytes_wherever_they_joined():
    gates = asyncio.Event(), asyncio.Event()
    async with running(*gates) as (served, path):
        early = [asyncio.create_task(served.get(path)) for _ in range(8)]
        run_id = path.split("/")[3]
        await eventually(lambda: served.bridge.supervisor.readers(run_id) == 9)
        gates[0].set()
        late = [asyncio.create_task(served.get(path)) for _ in range(8)]
        await eventually(lambda: served.bridge.supervisor.readers(run_id) == 17)
        gates[1].set()
        answers = await asyncio.gather(*early, *late)
        assert len({answer.body for answer in answers}) == 1
        assert answers[0].events[-1]["event_type"] == "run.completed"
        await eventually(lambda: served.bridge.supervisor.readers(run_id) <= 1)


async def test_sixteen_readers_cost_one_encoding(monkeypatch: pytest.MonkeyPatch):
    encoded: list[int] = []

    def counting(run: RunRecord, *, full: bool) -> Encoder:
        encode = canonical_encoder(run, full=full)

        def count(records: Sequence[Record]) -> bytes:
            encoded.extend(record.seq for record in records)
            return encode(records)

        return count

    monkeypatch.setattr(runs_api, "canonical_encoder", counting)
    gates = asyncio.Event(), asyncio.Event()
    async with running(*gates) as (served, path):
        supervisor, run_id = served.bridge.supervisor, path.split("/")[3]
        readers = [asyncio.create_task(served.get(f"{path}{query}")) for query in ["", "?full=1"] * 16]
        await eventually(lambda: supervisor.readers(run_id) == 33)
        for gate in gates:
            gate.set()
        answers = await asyncio.gather(*readers)
        places = [event["seq"] for event in answers[0].events]
        assert len({answer.body for answer in answers}) == 2
        # Who joins while the run speaks may be given other batches at first, once.
        assert len(encoded) <= 2 * 2 * len(places)


async def test_a_silent_stream_sends_comments_and_they_are_no_events():
    gate = asyncio.Event()
    async with running(gate, keep_alive_s=0.02) as (served, path):
        async with reading(served, path) as reader:
            await reader.until(b": keep-alive\n\n", times=3)
            gate.set()
            body = unchunked(await reader.rest())
        assert events_in(body) == (await served.get(path)).events
        assert b": keep-alive" not in (await served.get(path)).body


@pytest.mark.requirement("R-006")
async def test_a_post_that_is_silent_sends_comments_too():
    gate = asyncio.Event()
    model = ScriptedProvider([gate, *says("hello")])
    async with serving(Agent("quiet", model=model), keep_alive_s=0.02) as served:
        async with served.http.stream(
            "POST", "/", json=ask("go"), headers={"content-type": "application/json"}
        ) as response:
            body = b""
            async for piece in response.aiter_bytes():
                body += piece
                if b": keep-alive\n\n" in body:
                    gate.set()
        events: list[JsonObject] = events_in(body)
        assert events[-1]["type"] == "RUN_FINISHED"
