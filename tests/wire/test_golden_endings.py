# ruff: noqa: E501  an event is a line, however long
"""Streams that need a clock, or a reader that goes away, written down."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from inline_snapshot import snapshot

from agui_bridge.desk import Accepted, Desk
from agui_bridge.encoders import made
from agui_bridge.intake import IntakePolicy
from agui_bridge.run_input import parse
from runtime import samples as s
from runtime.agent import Agent
from runtime.authority import ANONYMOUS
from runtime.errors import ProviderError
from runtime.journal.memory import MemoryJournal
from runtime.supervisor import Performer, Supervisor
from runtime.testing import Line, ScriptedProvider, says
from tests.serving import Served, ask, events_in, serving
from tests.wire.golden import golden, golden_facts
from tests.wire.scenes import actor, more, shown, thread_of


class HurriedClock:
    """A clock for which every wait is over at once; it remembers how long each would have been."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def now(self) -> int:
        return 1_700_000_000_000

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


class Retried:
    """A supervisor with a clock of ours, behind a desk."""

    def __init__(self, *rounds: Iterable[Line]) -> None:
        self.clock = HurriedClock()
        self.model = ScriptedProvider(*rounds)
        performer = Performer(Agent("assistant", model=self.model), self.model)
        self.supervisor = Supervisor(MemoryJournal(), {"assistant": performer}, clock=self.clock)

    async def stream(self) -> str:
        desk = Desk(self.supervisor, IntakePolicy(), cancel_when_unread=False)
        await self.supervisor.start()
        accepted = await desk.accept(parse(ask("Hi")), "assistant", ANONYMOUS)
        assert isinstance(accepted, Accepted)
        body = b""
        encode = await made(accepted.encode)
        while records := await accepted.cursor.next():
            body += encode(records)
        accepted.cursor.close()
        await self.supervisor.drain(5)
        await self.supervisor.stop()
        return golden(events_in(body))


AWAY = ProviderError("The provider is away.", code="provider_unavailable", retryable=True)


async def test_a_passing_failure_is_tried_twice_more_and_then_told() -> None:
    stage = Retried([AWAY], [AWAY], [AWAY])
    assert await stage.stream() == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
CUSTOM agui-bridge.model_retry {"round":1,"attempt":1,"code":"provider_unavailable","message":"The provider is away.","wait_ms":500}
CUSTOM agui-bridge.model_retry {"round":1,"attempt":2,"code":"provider_unavailable","message":"The provider is away.","wait_ms":1000}
STEP_FINISHED round-1
RUN_ERROR provider_unavailable "The provider is away."\
""")
    assert len(stage.model.requests) == 3
    assert stage.clock.waits == [0.5, 1.0]


async def test_a_third_attempt_that_succeeds_looks_like_a_first_but_for_the_notes_of_the_others() -> None:
    stage = Retried([AWAY], [AWAY], says("Here again"))
    assert await stage.stream() == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
CUSTOM agui-bridge.model_retry {"round":1,"attempt":1,"code":"provider_unavailable","message":"The provider is away.","wait_ms":500}
CUSTOM agui-bridge.model_retry {"round":1,"attempt":2,"code":"provider_unavailable","message":"The provider is away.","wait_ms":1000}
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Here "
TEXT_MESSAGE_CONTENT m1 "again"
TEXT_MESSAGE_END m1 final_response/1
CUSTOM agui-bridge:round 1 final_response m1
STEP_FINISHED round-1
RUN_FINISHED t1 r1 success\
""")


async def test_a_passing_failure_behind_a_delta_is_not_tried_again() -> None:
    stage = Retried([s.TextDelta("Half "), AWAY], says("never said"))
    assert await stage.stream() == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Half "
TEXT_MESSAGE_END m1
STEP_FINISHED round-1
RUN_ERROR provider_unavailable "The provider is away."\
""")
    assert len(stage.model.requests) == 1


async def over(served: Served, run_id: str) -> None:
    """Return when the run has ended, without reading it."""
    live = served.bridge.supervisor.live.runs.get(run_id)
    if live is not None:
        async with asyncio.timeout(10):
            await live.over.wait()


async def test_a_page_that_goes_away_ends_its_run_as_cancelled_and_finds_the_thread_usable() -> None:
    agent = actor([s.TextDelta("Half "), asyncio.Event()], says("Whole again"))
    async with serving(agent(), disconnect_grace_s=0) as served:
        async with served.streaming(ask("Hi", protocolVersion="1.0")) as events:
            async for event in events:
                if event["type"] == "TEXT_MESSAGE_CONTENT":
                    break
            (run,) = await served.bridge.supervisor.journal.active_runs()
        await over(served, run.run_id)
        place = f"/api/agent-runs/{run.run_id}/events"
        assert golden_facts((await served.get(place)).events) == snapshot("""\
1 run.started {"client_run_id":"r1","agent_id":"assistant","snapshots":[]}
2 message.completed {"message_id":"u1","role":"user","content":"Hi"}
3 message.started {"message_id":"m1","role":"assistant"}
4 round.started {"round":1,"model":"scripted-provider","provider":"testing"}
5 message.delta {"message_id":"m1","part_id":"p0","content_index":0,"delta":"Half "}
6 run.cancelling {"reason":"client_disconnected"}
7 message.completed {"message_id":"m1","role":"assistant","content":[{"part_id":"p0","kind":"text","round":1,"committed":false,"text":"Half "}]}
8 run.cancelled {"reason":"client_disconnected","external_stop_confirmed":true}\
""")
        assert golden((await served.get(place + "?format=agui")).events) == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Half "
TEXT_MESSAGE_END m1
STEP_FINISHED round-1
RUN_FINISHED t1 r1 cancelled\
""")
        again = more({"id": "u2", "role": "user", "content": "Once more"})(shown(await thread_of(served.bridge)))
        assert golden((await served.run(again)).events) == snapshot("""\
RUN_STARTED t1 r2 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Whole "
TEXT_MESSAGE_CONTENT m1 "again"
TEXT_MESSAGE_END m1 final_response/1
CUSTOM agui-bridge:round 1 final_response m1
STEP_FINISHED round-1
RUN_FINISHED t1 r2 success\
""")
