"""Scenarios of chance: a page and a server that talk while runs ask, are answered, cancelled, lost and come back to.

Everything behind the bytes is real: desk, intake, supervisor, engine, tools, journal. A scenario is one thread and
one page on it, played step by step; each exchange is kept as a `Stream`, for others to judge.
"""

from __future__ import annotations

import copy
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from agui_bridge.desk import Accepted, Desk, Told
from agui_bridge.encoders import made
from agui_bridge.intake import IntakePolicy
from agui_bridge.run_input import parse
from agui_bridge.transcript import transcript
from runtime.authority import ANONYMOUS
from runtime.events import Record
from runtime.journal.memory import MemoryJournal
from runtime.journal.store import Store
from runtime.limits import Limits
from runtime.supervisor import Leasing, Performer, Supervisor
from runtime.testing import CountingIds, ManualClock
from runtime.thread import Thread
from tests.pure.stock_page import Page
from tests.serving import events_in
from tests.wire.cast import MINUTE, Company

JsonObject = dict[str, Any]

PICK: JsonObject = {"name": "pick", "description": "The page's own", "parameters": {"type": "object"}}
TURNS = 6
SECONDS = 30
"""How long a reader waits for a run before something is wrong."""


@dataclass
class Stream:
    """One exchange: what was asked, what was told, and how both sides stood afterwards.

    `whole` says that the stream has its end: the page did not go away, nor did the server. `fresh`: it tells of a run
    that began with the request. `newest`: that run is the last one of the thread. `intact`: the page has never missed
    the end of a stream.
    """

    asked: JsonObject
    body: bytes
    whole: bool
    fresh: bool
    newest: bool
    intact: bool
    page: Page
    messages: list[JsonObject]
    state: Any
    open_ids: list[str]
    stored_ids: list[str]

    @property
    def events(self) -> list[JsonObject]:
        """What the page was told."""
        return events_in(self.body)


@dataclass
class Disturbance:
    """What happens when so many facts of a run were read."""

    what: str
    behind: int


NONE = Disturbance("", 0)


@dataclass
class Scenario:
    """One thread, the page on it, and who is behind it. Without a `store` it is kept in memory."""

    seed: int
    store: Store | None = None
    streams: list[Stream] = field(default_factory=list[Stream], init=False)
    run_ids: list[str] = field(default_factory=list[str], init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.company = Company(str(self.seed))
        self.page = Page()
        self.pending: list[JsonObject] = []
        """What the page knows to be asked."""
        self._clock = ManualClock()
        self._store = self.store or MemoryJournal(clock=self._clock.now)
        self._mint = CountingIds()
        self._said = 0
        self._resume: list[JsonObject] = []
        self._away = False
        self._intact = True
        self._begin_process()

    def _begin_process(self) -> None:
        agent = self.company.root
        assert agent.model is not None
        assert not isinstance(agent.model, str)
        self.supervisor = Supervisor(
            self._store,
            {"assistant": Performer(agent, agent.model)},
            clock=self._clock,
            mint=self._mint,
            limits=Limits(max_rounds=4, model_retries=0, stop_grace_s=5, progress_interval_s=0),
            leasing=Leasing(1e6, 1e6),
        )
        self._desk = Desk(self.supervisor, IntakePolicy(), cancel_when_unread=False)

    # --- what a person may do -------------------------------------------------------------------------------------

    async def step(self) -> None:
        """Somebody does something, and the server answers."""
        if self._away:
            await self._come_back()
            return
        act = self.chance.choice([act for may, weight, act in self._acts() if may for _ in range(weight)])
        more = act()
        tools = [PICK] if self.chance.random() < 0.6 else []
        await self._post(**{"tools": tools, **more})

    def _acts(self) -> list[tuple[bool, int, Callable[[], JsonObject]]]:
        users = any(message["role"] == "user" for message in self.page.messages)
        return [
            (True, 3, self._speak),
            (bool(self.page.messages), 1, self._speak_on_an_empty_page),
            (users, 1, self._ask_for_another_answer),
            (users, 1, self._edit_the_last_message),
            (bool(self._owed()), 4, self._reply),
            (bool(self.pending), 12, self._answer),
            (bool(self.pending), 1, self._answer_in_vain),
            (bool(self.pending), 1, self._answer_and_speak),
            (bool(self.pending), 1, self._wait_and_speak),
            (bool(self._resume), 2, self._answer_the_same_again),
            (bool(self.streams), 1, self._ask_the_same_again),
        ]

    def _speak(self) -> JsonObject:
        self._said += 1
        words = self.chance.choice(("tea", "jam", ""))
        self.page.messages.append({"id": f"u{self._said}", "role": "user", "content": words})
        return {}

    def _speak_on_an_empty_page(self) -> JsonObject:
        self._open_an_empty_page()
        return self._speak()

    def _open_an_empty_page(self) -> None:
        self.page, self.pending, self._intact = Page(), [], True

    def _ask_for_another_answer(self) -> JsonObject:
        while self.page.messages[-1]["role"] != "user":
            self.page.messages.pop()
        return {}

    def _edit_the_last_message(self) -> JsonObject:
        while self.page.messages.pop()["role"] != "user":
            pass
        return self._speak()

    def _owed(self) -> list[str]:
        """The calls of the page's tools that it shows without an answer."""
        answered = {message.get("toolCallId") for message in self.page.messages}
        calls = [call for message in self.page.messages for call in message.get("toolCalls", ())]
        return [c["id"] for c in calls if c["function"]["name"] == "pick" and c["id"] not in answered]

    def _reply(self) -> JsonObject:
        for call_id in self._owed()[: self.chance.choice((1, 9))]:
            self._said += 1
            self.page.put_result({"id": f"a{self._said}", "role": "tool", "toolCallId": call_id, "content": "blue"})
        return self._answer() if self.pending and self.chance.random() < 0.5 else {}

    def _answer(self) -> JsonObject:
        """Answer what is asked, mostly all of it."""
        some = self.pending if self.chance.random() < 0.6 else self.chance.sample(self.pending, 1)
        self._resume = [self._entry(interrupt) for interrupt in some]
        return {"resume": self._resume}

    def _answer_in_vain(self) -> JsonObject:
        unknown: JsonObject = {"interruptId": "int_nowhere", "status": "cancelled"}
        misfit: JsonObject = {"interruptId": self.pending[0]["id"], "status": "resolved", "payload": [7]}
        return {"resume": [self.chance.choice((unknown, misfit))]}

    def _answer_and_speak(self) -> JsonObject:
        twice = [self._entry(interrupt) for interrupt in self.pending for _ in range(2)]
        return {**self._speak(), "resume": twice}

    def _wait_and_speak(self) -> JsonObject:
        self._clock.advance(2 * MINUTE)
        return self._speak() if self.chance.random() < 0.5 else self._answer()

    def _answer_the_same_again(self) -> JsonObject:
        return {"resume": self._resume}

    def _entry(self, interrupt: JsonObject) -> JsonObject:
        entry: JsonObject = {"interruptId": interrupt["id"], "status": "resolved"}
        if self.chance.random() < 0.15:
            return {**entry, "status": "cancelled"}
        if interrupt["reason"] != "tool_call":
            return {**entry, "payload": "S"}
        parameters = interrupt["responseSchema"]["properties"]["editedArgs"]["properties"]
        edited = dict.fromkeys(parameters, "open")
        yes: JsonObject = {"approved": True}
        return {**entry, "payload": self.chance.choice((yes, yes, {**yes, "editedArgs": edited}, {"approved": False}))}

    def _ask_the_same_again(self) -> JsonObject:
        """The very request of before, whatever has come of it."""
        before = self.streams[-1].asked
        self.page = Page(before["messages"], before["state"])
        return before

    # --- what comes of it -----------------------------------------------------------------------------------------

    async def _post(self, **more: Any) -> None:
        asked: JsonObject = {
            "threadId": "t1",
            "runId": f"r{len(self.streams) + 1}",
            "messages": self.page.messages,
            "state": self.page.state,
            "tools": [],
            "protocolVersion": "1.0",
            **more,
        }
        asked = copy.deepcopy(asked)
        accepted = await self._desk.accept(parse(asked), "assistant", ANONYMOUS)
        what = self.chance.choice((*[""] * 8, "cancel", "cancel", "crash", "leave"))
        await self._take(asked, accepted, Disturbance(what, self.chance.randrange(1, 25)))

    async def _come_back(self) -> None:
        """The page is there again, showing what it had, or nothing."""
        self._away = False
        if self.chance.random() < 0.5:
            self._open_an_empty_page()
        self.pending = []
        asked: JsonObject = {"threadId": "t1", "runId": f"r{len(self.streams) + 1}", "protocolVersion": "1.0"}
        asked = copy.deepcopy({**asked, "messages": self.page.messages, "state": self.page.state, "tools": []})
        await self._take(asked, await self._desk.connect(parse(asked), "assistant", ANONYMOUS), NONE)

    async def _take(self, asked: JsonObject, accepted: Accepted | Told, disturbance: Disturbance) -> None:
        run_id, fresh = None, False
        if isinstance(accepted, Told):
            body, whole = accepted.frames, True
        else:
            run_id = accepted.run.run_id
            if fresh := run_id not in self.run_ids:
                self.run_ids.append(run_id)
            body, whole = await self._read(accepted, disturbance)
        self._intact = self._intact and whole
        events = events_in(body)
        self.page.apply(events)
        self._learn(events)
        thread = await self.thread()
        stored = await self._store.open_interrupts(ANONYMOUS.tenant_id, None, None, 100)
        self.streams.append(
            Stream(
                asked,
                body,
                whole,
                fresh,
                run_id is None or (thread.last_run is not None and thread.last_run.run_id == run_id),
                self._intact,
                copy.deepcopy(self.page),
                [line.message for line in transcript(thread)],
                copy.deepcopy(thread.state),
                [interrupt.id for interrupt in thread.open_interrupts()],
                [interrupt.interrupt_id for interrupt in stored],
            )
        )

    def _learn(self, events: list[JsonObject]) -> None:
        for event in events:
            if event["type"] == "RUN_FINISHED":
                outcome = event.get("outcome") or {}
                self.pending = outcome.get("interrupts", [])

    async def _read(self, accepted: Accepted, disturbance: Disturbance) -> tuple[bytes, bool]:
        body, seen = b"", 0
        encode = await made(accepted.encode)
        try:
            while records := await accepted.cursor.next():
                body += encode(records)
                seen += len(records)
                if disturbance.what and seen >= disturbance.behind:
                    what, disturbance = disturbance.what, NONE
                    if await self._disturb(what, accepted.run.run_id):
                        return body, False
        finally:
            accepted.cursor.close()
        return body, True

    async def _disturb(self, what: str, run_id: str) -> bool:
        """Returns whether the stream is cut."""
        if (await self.supervisor.run(ANONYMOUS, run_id)).is_over:
            return False
        if what == "cancel":
            await self.supervisor.cancel(run_id, "user", 10)
            return False
        if what == "crash":
            await self.supervisor.stop()
            self._begin_process()
            await self.supervisor.start()
        self._away = what == "leave" or self.chance.random() < 0.5
        return True

    # --- looking at it --------------------------------------------------------------------------------------------

    async def thread(self) -> Thread:
        """The thread as the store has it."""
        session = await self.supervisor.session(ANONYMOUS, "t1")
        assert session is not None
        return await self.supervisor.committed_thread(session.thread_id)

    async def facts(self) -> list[list[Record]]:
        """All facts of each tree, in order, once nothing is at work."""
        trees: list[list[Record]] = []
        for run_id in self.run_ids:
            cursor = self.supervisor.follow_tree(run_id)
            records: list[Record] = []
            while page := await cursor.next():
                records += page
            cursor.close()
            trees.append(records)
        return trees


@asynccontextmanager
async def scenario(seed: int, store: Store | None = None) -> AsyncGenerator[Scenario, None]:
    """A scenario whose server has started."""
    played = Scenario(seed, store)
    await played.supervisor.start()
    try:
        yield played
    finally:
        await played.supervisor.drain(0)
        await played.supervisor.stop()
