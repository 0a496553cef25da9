"""The judge says of recorded streams what the official client is known to say of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.official_client import OfficialClient

STREAMS = Path(__file__).parent / "streams"
MANIFEST: list[dict[str, Any]] = json.loads((STREAMS / "manifest.json").read_text(encoding="utf-8"))["streams"]
ACCEPTED = [row for row in MANIFEST if row["accepted"]]
REFUSED = [row for row in MANIFEST if not row["accepted"]]
RUN_INPUT = {"threadId": "t1", "runId": "r1"}


def body_of(row: dict[str, Any]) -> bytes:
    lines = (STREAMS / row["file"]).read_text(encoding="utf-8").splitlines()
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def with_minted_ids(expected: list[dict[str, Any]], got: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`expected`, where an id of null stands for one that the client itself has made up."""
    return [{**want, "id": want["id"] or have["id"]} for want, have in zip(expected, got, strict=True)]


STARTED = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"}


def test_the_manifest_names_every_recorded_stream() -> None:
    recorded = {path.relative_to(STREAMS).as_posix() for path in STREAMS.glob("*/*.jsonl")}
    assert {row["file"] for row in MANIFEST} == recorded


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["file"])
async def test_an_accepted_stream_builds_what_was_recorded(
    row: dict[str, Any], official_client: OfficialClient
) -> None:
    verdict = await official_client.replay(body_of(row), RUN_INPUT)
    assert verdict.ok, verdict.error
    assert verdict.types == row["delivered"]
    assert verdict.messages == with_minted_ids(row["messages"], verdict.messages)
    assert verdict.state == row["state"]
    assert bool(verdict.warnings) == row.get("warns", False)


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["file"])
async def test_a_refused_stream_fails_the_run(row: dict[str, Any], official_client: OfficialClient) -> None:
    verdict = await official_client.replay(body_of(row), RUN_INPUT)
    assert not verdict.ok
    assert verdict.error
    # How far the client got before the refusal depends on how the bytes were cut into packets.
    assert verdict.types == row["delivered"][: len(verdict.types)]
    with pytest.raises(pytest.fail.Exception, match="it refused: "):
        verdict.assert_clean()


async def test_a_warning_alone_is_not_clean(official_client: OfficialClient) -> None:
    verdict = await official_client.replay(sse(STARTED, {"type": "FROM_THE_FUTURE"}, FINISHED), RUN_INPUT)
    assert verdict.ok
    with pytest.raises(pytest.fail.Exception, match=r"it warned: .*FROM_THE_FUTURE"):
        verdict.assert_clean()


async def test_a_broken_connection_is_not_taken_for_an_end(official_client: OfficialClient) -> None:
    ended = await official_client.replay(sse(STARTED), RUN_INPUT)
    broken = await official_client.replay(sse(STARTED), RUN_INPUT, cut=True)
    assert (ended.ok, ended.terminal) == (True, None)
    assert not broken.ok


async def test_verdicts_asked_for_at_once_keep_their_warnings_apart() -> None:
    async with OfficialClient() as client:
        loud, quiet = await asyncio.gather(
            client.replay(sse(STARTED, {"type": "FROM_THE_FUTURE"}, FINISHED), RUN_INPUT),
            client.replay(sse(STARTED, FINISHED), RUN_INPUT),
        )
    assert len(loud.warnings) == 1
    quiet.assert_clean()
