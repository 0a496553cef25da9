"""A page on the official client that comes back, at whatever point, is content and ends with what the server holds."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from agui_bridge.encoders import plain_frames, reopening_encoder
from agui_bridge.projection import Echo
from agui_bridge.reopening import Reopening, at_rest
from runtime import events as e
from runtime.agent import Agent
from runtime.journal.memory import MemoryJournal
from runtime.samples import ReasoningDelta, ReasoningDone
from runtime.testing import ScriptedProvider, calls, says
from tests.conformance.test_golden_streams_in_the_official_client import assert_same
from tests.journals import HeldJournal
from tests.official_client import OfficialClient
from tests.pure.conversation import Conversation
from tests.pure.histories import Performed, Seeded
from tests.pure.stock_page import Page
from tests.pure.test_reopening import before, first_facts, record
from tests.serving import Served, ask, serving
from tests.wire.scenes import lookup, shown, thread_of
from tests.wire.sockets import eventually

JsonObject = dict[str, Any]
ECHO = Echo("t1", "back")
BATCH = 4


def streams_from_every_point(runs: list[Performed], messages: list[JsonObject]) -> list[bytes]:
    """The streams of pages that come back to the last of these runs, one for each place where its journal may end."""
    *earlier, run = runs
    if not any(isinstance(each.event, e.MessageStarted) for each in run.records):
        return []
    bodies: list[bytes] = []
    for at in range(first_facts(run), len(run.records)):
        reopening = Reopening(ECHO, record(run, at), before(earlier), copy.deepcopy(messages))
        bodies.append(reopening_encoder(reopening)(run.records))
    return bodies


@pytest.mark.parametrize("seed", range(10))
async def test_from_every_point_of_a_run_of_chance(seed: int, official_client: OfficialClient) -> None:
    verdicts: list[Any] = []
    held: list[tuple[list[JsonObject], Any]] = []
    for number in range(BATCH):
        conversation = Conversation(Seeded(seed * BATCH + number))
        conversation.step()
        turn = conversation.step()
        page = Page(turn.messages, turn.state) if number % 2 else Page()
        asked = {"threadId": "t1", "runId": "back", "messages": page.messages, "state": page.state}
        for body in streams_from_every_point(conversation.theatre.runs, page.messages):
            verdicts.append(official_client.replay(body, asked))
            held.append((conversation.theatre.shown(), conversation.theatre.thread.state))
        rest = plain_frames(at_rest(conversation.theatre.thread, ECHO, page.messages))
        verdicts.append(official_client.replay(rest, asked))
        held.append((conversation.theatre.shown(), conversation.theatre.thread.state))
    for verdict, (messages, state) in zip(await asyncio.gather(*verdicts), held, strict=True):
        assert_same(verdict, messages, state)


def talker() -> Agent:
    thought = [ReasoningDelta("Weigh "), ReasoningDelta("it"), ReasoningDone("sig")]
    look = calls(("lookup", '{"key":"tea"}'), ("lookup", '{"key":"jam"}'), text="One moment")
    return Agent("a", model=ScriptedProvider([*thought, *look], says("Tea is 42, and jam as well")), tools=[lookup])


async def test_at_every_commit_of_a_live_run(official_client: OfficialClient) -> None:
    journal = HeldJournal(MemoryJournal())
    async with serving(talker(), store=journal) as served:
        asks = asyncio.create_task(served.run(ask("Tea?")))
        (await journal.next()).release()
        await eventually(lambda: len(served.bridge.supervisor.live.runs) == 1)
        (run_id,) = served.bridge.supervisor.live.runs
        backs: list[asyncio.Task[Any]] = []
        while True:
            commit = await journal.next()
            backs.append(asyncio.create_task(come_back(official_client, served, len(backs))))
            came = len(backs) + 1
            await eventually(lambda: served.bridge.supervisor.readers(run_id) == came)  # noqa: B023
            commit.release()
            if "run.completed" in commit.types:
                break
        verdicts = await asyncio.gather(*backs)
        assert (await asks).types[-1] == "RUN_FINISHED"
        thread = await thread_of(served.bridge)
        assert len(verdicts) > 8
        for verdict in verdicts:
            assert_same(verdict, shown(thread), thread.state)
            assert verdict.types[-1] == "RUN_FINISHED"
        journal.let_go()


async def come_back(client: OfficialClient, served: Served, number: int) -> Any:
    return await client.run(f"{served.url}/connect", thread_id="t1", run_id=f"back-{number}", messages=[])
