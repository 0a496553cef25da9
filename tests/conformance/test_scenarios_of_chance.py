"""Scenarios of chance, before everybody who judges streams: linter, verifier, the official client, its protobuf.

What a model says, which tools it calls, what is asked, how it is answered, and when a run is cancelled, lost or come
back to, is all made up; see `tests.wire.scenario`. A scenario that fails is played again by its seed.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agui_bridge.encoders import Rendering, plain_frames
from agui_bridge.wire.proto_codec import PROTO
from runtime.journal.sqlite import SqliteJournal
from runtime.journal.store import Store
from tests.examples import count
from tests.official_client import OfficialClient, Verdict
from tests.wire.scenario import TURNS, Scenario, Stream, scenario
from tests.wire.scenario_rules import by_speaker, judge_facts, judge_prompts, judge_stream

JsonObject = dict[str, Any]

BATCH = 10
BATCHES = count(by_day=30, at_night=2_000)


async def played(seed: int, store: Store | None = None) -> Scenario:
    """A scenario from its first request to its last, held to the rules."""
    async with asyncio.timeout(50), scenario(seed, store) as made:
        for _ in range(TURNS):
            await made.step()
        for stream in made.streams:
            judge_stream(stream)
        judge_facts(await made.facts(), made.company)
        judge_prompts(made.company)
    return made


@pytest.mark.hypothesis
@pytest.mark.timeout(240)
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.requirement("R-026", "R-081", "R-086", "R-126", "R-160", "R-161", "R-168", "R-169", "R-170", "R-174")
async def test_whatever_happens_everybody_agrees_on_what_a_page_is_told(
    batch: int, official_client: OfficialClient
) -> None:
    scenarios = [await played(seed) for seed in range(batch * BATCH, (batch + 1) * BATCH)]
    await asyncio.gather(*(agreed(each, official_client) for each in scenarios))


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_happens_the_rules_hold_on_a_store_on_disk(seed: int, tmp_path: Path) -> None:
    await played(seed, SqliteJournal(tmp_path / "store.db", synchronous="normal"))


async def agreed(each: Scenario, client: OfficialClient) -> None:
    """The official client, which stays open from stream to stream, and the protobuf twin say the same."""
    page = Visitor(client, each.seed)
    for number, stream in enumerate(each.streams, 1):
        try:
            await page.is_told(stream)
            twin = plain_frames(stream.events, Rendering(PROTO))
            assert in_doubles(await client.decode(twin)) == in_doubles(stream.events)
        except (AssertionError, pytest.fail.Exception) as error:
            raise AssertionError(f"scenario {each.seed}, stream {number}") from error


class Visitor:
    """An official client on which what is asked stays open, as long as its requests are ones that it would send."""

    def __init__(self, client: OfficialClient, seed: int) -> None:
        self._client = client
        self._name = f"scenario-{seed % BATCH}"
        self._is_new = True
        self._pending: list[JsonObject] = []

    async def is_told(self, stream: Stream) -> None:
        """Replay a stream; afterwards the client holds what the page does."""
        anew = self._is_new or not self._would_send(stream.asked)
        asked = {**stream.asked, "agent": self._name, "anew": anew}
        verdict = await self._client.replay(stream.body, asked, cut=not stream.whole)
        self._is_new, self._pending = False, verdict.pending_interrupts
        if stream.whole:
            verdict.assert_clean()
            assert by_speaker(verdict.messages) == by_speaker(stream.page.messages)
            assert verdict.state == stream.page.state
            if stream.newest:
                self._judge_pending(verdict, stream)

    def _would_send(self, asked: JsonObject) -> bool:
        """Whether the client lets this pass: all that it holds for open is answered, and nothing too late."""
        answered = {entry["interruptId"] for entry in asked.get("resume", ())}
        return all(each["id"] in answered and "expiresAt" not in each for each in self._pending)

    def _judge_pending(self, verdict: Verdict, stream: Stream) -> None:
        held = {interrupt["id"] for interrupt in verdict.pending_interrupts}
        if stream.events[-1]["type"] == "RUN_FINISHED":
            assert held == set(stream.open_ids)
        elif not stream.open_ids:
            assert held == set(), "a page that holds what nobody asks any more refuses every message"


def in_doubles(value: Any) -> Any:
    """The value with numbers as JavaScript has them, and the members of objects in any order."""
    if isinstance(value, dict):
        return {key: in_doubles(item) for key, item in value.items() if (key, item) != ("usage", [])}
    if isinstance(value, list):
        return [in_doubles(item) for item in value]
    return float(value) if type(value) is int else value
