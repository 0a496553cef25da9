"""A supervisor with a scripted model, a clock that is set by hand and ids that count: runs without any front."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from runtime import events as e
from runtime.agent import Agent
from runtime.authority import ANONYMOUS
from runtime.canonical import digest
from runtime.folds import Folds
from runtime.items import Item
from runtime.journal import Begun, Started
from runtime.journal.memory import MemoryJournal
from runtime.journal.store import Store
from runtime.limits import Limits
from runtime.models import Model
from runtime.request import RunRequest
from runtime.run import RunRecord
from runtime.supervisor import Leasing, Performer, Supervisor
from runtime.system import Mint
from runtime.testing import CountingIds, Line, ManualClock, ScriptedProvider
from runtime.thread import Thread


async def until(reached: Callable[[], bool], seconds: float = 10) -> None:
    """Let the loop turn until something is so, that no event tells of."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "it never came to be so"
        await asyncio.sleep(0.001)


def said(text: str, message_id: str = "u1") -> e.MessageCompleted:
    """What a user said, as a first fact of a run."""
    return e.MessageCompleted(message_id, "user", text, digest(text))


def asking(thread: Thread, text: str, session: str, client_run_id: str, **more: Any) -> RunRequest:
    """A request that one user message be answered; `facts` may stand before it."""
    return RunRequest(
        principal=ANONYMOUS,
        agent_id="assistant",
        session_id=session,
        client_run_id=client_run_id,
        input_digest=digest([text, client_run_id]),
        base=thread.position,
        facts=[*more.pop("facts", []), said(text, f"u-{client_run_id}")],
        call_model=more.pop("call_model", True),
        **more,
    )


class Workshop:
    """One supervisor and what it is made of; `of_agent` are further members of its agent."""

    def __init__(
        self,
        *rounds: Iterable[Line],
        tools: Sequence[Any] = (),
        model: Model | None = None,
        journal: Store | None = None,
        limits: Limits | None = None,
        leasing: Leasing | None = None,
        grace_s: float = 10.0,
        mint: Mint | None = None,
        recovers: bool = False,
        **of_agent: Any,
    ) -> None:
        self.clock = ManualClock()
        self.script = ScriptedProvider(*rounds)
        self.model = model or self.script
        self.journal = journal or MemoryJournal(clock=self.clock.now)
        self.agent = Agent("assistant", model=self.model, tools=tools, **of_agent)
        self.supervisor = Supervisor(
            self.journal,
            {"assistant": Performer(self.agent, self.model)},
            clock=self.clock,
            mint=mint or CountingIds(),
            limits=limits or Limits(stop_grace_s=0.2),
            leasing=leasing,
            disconnect_grace_s=grace_s,
            recovers=recovers,
        )
        self._client_runs = count(1)

    async def try_begin(self, text: str = "Hello", session: str = "s1", **more: Any) -> Begun:
        """Ask for a run, as a front does."""
        found, thread = await self.supervisor.open(ANONYMOUS, session)
        request = asking(thread, text, session, f"r{next(self._client_runs)}", **more)
        return await self.supervisor.begin(request, found, thread)

    async def begin(self, text: str = "Hello", session: str = "s1", **more: Any) -> RunRecord:
        """A run that has begun."""
        begun = await self.try_begin(text, session, **more)
        assert isinstance(begun, Started)
        return begun.run

    async def follow(self, run: RunRecord) -> list[e.Event]:
        """Everything that a reader of the run is given, to its end."""
        cursor = self.supervisor.follow(run.run_id)
        given: list[e.Event] = []
        try:
            async with asyncio.timeout(10):
                while records := await cursor.next():
                    given += [record.event for record in records if record.event is not None]
        finally:
            cursor.close()
        return given

    async def run(self, text: str = "Hello", session: str = "s1", **more: Any) -> list[e.Event]:
        """Begin a run and read it to its end."""
        return await self.follow(await self.begin(text, session, **more))

    async def seen(self, run: RunRecord, event_type: str) -> e.Event:
        """Wait until a reader of the run is given an event of this type."""
        cursor = self.supervisor.follow(run.run_id)
        try:
            async with asyncio.timeout(10):
                while records := await cursor.next():
                    for record in records:
                        if record.event is not None and record.event_type == event_type:
                            return record.event
        finally:
            cursor.close()
        raise AssertionError(f"the run ended without {event_type}")

    async def settled(self, run: RunRecord) -> RunRecord:
        """The run's record once nothing is at work for it here."""
        await until(lambda: run.run_id not in self.supervisor.live.runs)
        found = await self.journal.find_run(run.run_id)
        assert found is not None
        return found

    async def items(self, session: str = "s1") -> list[Item]:
        """The model's history of a session, read anew from the journal."""
        found = await self.supervisor.session(ANONYMOUS, session)
        assert found is not None
        return (await Folds(self.journal).committed(found.thread_id)).items()


@asynccontextmanager
async def workshop(*rounds: Iterable[Line], **given: Any) -> AsyncGenerator[Workshop, None]:
    """A workshop that is open; see `Workshop` for what can be given."""
    shop = Workshop(*rounds, **given)
    await shop.supervisor.start()
    try:
        yield shop
    finally:
        await shop.supervisor.drain(0)
        await shop.supervisor.stop()


def types(events: Iterable[e.Event]) -> list[str]:
    """The types of events, in order."""
    return [event.event_type for event in events]


def only(events: Iterable[e.Event], kind: type[Any]) -> list[Any]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def message_of(events: Iterable[e.Event]) -> e.MessageCompleted:
    """The whole assistant message with which a run ends."""
    return only(events, e.MessageCompleted)[-1]
