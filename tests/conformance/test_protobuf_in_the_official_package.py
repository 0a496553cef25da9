"""What the official protobuf package reads of our bytes is what our server-sent events say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agui_bridge.encoders import Rendering, agui_encoder
from agui_bridge.wire import events as e
from agui_bridge.wire.proto_codec import PROTO, proto_frame
from tests.conformance.test_golden_streams_in_the_official_client import assert_same, by_id
from tests.contract.test_codec_parity import CASES
from tests.contract.test_proto_codec import EQUAL_WHEN_DECODED, VECTORS
from tests.official_client import OfficialClient
from tests.pure.conversation import Conversation
from tests.pure.histories import Seeded
from tests.serving import Answer, JsonObject, Served, events_in
from tests.wire.golden import golden
from tests.wire.scenes import SCENES, made, play, shown, staged, thread_of

NAMED = {"accept": PROTO.media_type}


# --- vectors ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-028")
async def test_every_vector_is_read_as_the_event_that_it_was(official_client: OfficialClient) -> None:
    for vector in VECTORS:
        (event,) = await official_client.decode(proto_frame(vector["event"]))
        (theirs,) = await official_client.decode(bytes.fromhex(vector["hex"]))
        wanted = vector.get("decoded", vector["event"])
        if vector["name"] in EQUAL_WHEN_DECODED:
            theirs = event if vector["name"] == "metadata_nested_null" else theirs
        assert event == theirs == wanted, vector["name"]


async def test_every_event_that_we_can_make_is_read_as_its_json_says(official_client: OfficialClient) -> None:
    events = [make(**envelope) for make, envelope in CASES]
    read = await official_client.decode(b"".join(map(proto_frame, events)))
    assert len(read) == len(events)
    for event, told in zip(events, read, strict=True):
        wanted = {name: value for name, value in event.items() if (name, value) != ("usage", [])}  # has no place
        assert in_doubles(told) == in_doubles(wanted)


def in_doubles(value: Any) -> Any:
    """The value with numbers as JavaScript has them."""
    if isinstance(value, dict):
        return {key: in_doubles(item) for key, item in value.items()}
    if isinstance(value, list):
        return [in_doubles(item) for item in value]
    return float(value) if type(value) is int else value


async def test_a_state_that_is_deep_is_read(official_client: OfficialClient) -> None:
    state: Any = 1
    for _ in range(50):
        state = {"a": [state]}
    (read,) = await official_client.decode(proto_frame(e.state_snapshot(state)))
    assert read == {"type": "STATE_SNAPSHOT", "snapshot": state}


# --- streams ----------------------------------------------------------------------------------------------------------


def in_key_order(value: Any) -> Any:
    """The value with the members of every object in one order; maps have none over the wire."""
    if isinstance(value, dict):
        return {key: in_key_order(value[key]) for key in sorted(value)}
    return [in_key_order(item) for item in value] if isinstance(value, list) else value


@asynccontextmanager
async def played(
    name: str, official_client: OfficialClient
) -> AsyncGenerator[tuple[Served, list[tuple[JsonObject, Answer]]], None]:
    """A scene, asked for in protobuf from its first request to its last."""
    async with staged(name) as served:
        answers: list[tuple[JsonObject, Answer]] = []
        last: JsonObject | None = None
        for request in SCENES[name].asked:
            asked = made(request, await thread_of(served.bridge), last)
            answers.append((asked, await served.run(asked, **NAMED)))
            last = (await official_client.decode(answers[-1][1].body))[-1]
        yield served, answers


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.requirement("R-026", "R-028")
async def test_a_golden_stream_is_its_twin_in_server_sent_events(name: str, official_client: OfficialClient) -> None:
    async with played(name, official_client) as (served, answers):
        streams = [await official_client.decode(answer.body) for _, answer in answers]
        twins = [each.answer.events for each in await play(name)]
        assert golden(*map(in_key_order, streams)) == golden(*map(in_key_order, twins))
        for (asked, _), stream in zip(answers, streams, strict=True):
            if "resume" in asked and stream[-1]["type"] == "RUN_ERROR":
                continue  # the same answer again begins another run
            again = await served.run(asked)  # the same run, told again in the other form, with the same ids
            assert stream == again.events


@pytest.mark.parametrize("name", SCENES)
async def test_the_official_client_builds_of_it_what_the_server_holds(
    name: str, official_client: OfficialClient
) -> None:
    async with played(name, official_client) as (served, answers):
        asked, answer = answers[-1]
        verdict = await official_client.replay(answer.body, asked, content_type=answer.headers["content-type"])
        thread = await thread_of(served.bridge)
        if name == "answer put elsewhere":  # and stays where the page has put it
            verdict.assert_clean()
            assert by_id(verdict.messages) == by_id(shown(thread))
        else:
            assert_same(verdict, shown(thread), thread.state)


@pytest.mark.parametrize("seed", range(5))
async def test_what_chance_makes_of_a_conversation_is_the_same_in_both_forms(
    seed: int, official_client: OfficialClient
) -> None:
    for number in range(4):
        conversation = Conversation(Seeded(1_000 + seed * 4 + number))
        for _ in range(3):
            run = conversation.step().performed
            said = events_in(agui_encoder(run.projector())(run.records))
            body = agui_encoder(run.projector(), rendering=Rendering(PROTO))(run.records)
            assert await official_client.decode(body) == said


async def test_a_frame_of_nine_mebibytes_reaches_the_client(official_client: OfficialClient) -> None:
    ids = {"threadId": "t1", "runId": "r1"}
    text = "x" * (9 * 2**20)
    events = [{"type": "RUN_STARTED", **ids}, e.state_snapshot({"text": text}), {"type": "RUN_FINISHED", **ids}]
    body = b"".join(map(proto_frame, events))
    verdict = await asyncio.wait_for(official_client.replay(body, ids, content_type=PROTO.media_type), 30)
    assert verdict.ok, verdict.error
    assert verdict.state == {"text": text}
