"""A thread is never lost to what went wrong before: a store that failed for a while, a reload, a damaged row."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from runtime import gate
from runtime.agent import Agent
from runtime.errors import ProviderError, StoreError
from runtime.events import Event
from runtime.journal.memory import MemoryJournal
from runtime.journal.sqlite import SqliteJournal
from runtime.samples import AssistantMessageDone, Completed, TextDelta
from runtime.supervisor import Supervisor
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.toolbox import tool
from tests.journals import FailingJournal
from tests.serving import ask, serving
from tests.wire.test_same_request import until


async def test_a_run_that_the_store_could_not_end_is_closed_when_its_thread_is_wanted_again():
    failing = True

    def fails(events: Sequence[Event]) -> Exception | None:
        return StoreError("no space") if failing else None

    journal = FailingJournal(MemoryJournal(), fails)
    model = ScriptedProvider(says("lost"), says("here again"))
    async with serving(Agent("a", model=model), store=journal) as served:
        with pytest.raises(Exception, match=r"peer closed|incomplete|disconnect"):
            await served.run(ask("hi"))
        failing = False
        shown = [{"id": "u1", "role": "user", "content": "hi"}, {"id": "u2", "role": "user", "content": "again"}]
        answer = await served.run(ask("", run="r2", messages=shown))
        assert answer.status == 200
        assert answer.types[-1] == "RUN_FINISHED"
        assert [run.status for run in await journal.active_runs()] == []


async def test_a_reload_that_says_nothing_new_follows_the_run_that_it_finds():
    gate_ = asyncio.Event()
    model = ScriptedProvider([TextDelta("one "), gate_, TextDelta("two"), AssistantMessageDone(), Completed("stop")])
    async with serving(Agent("a", model=model)) as served:
        async with served.streaming(ask("hi")) as first:
            seen = await until(first, "TEXT_MESSAGE_CONTENT")
        partial = {"id": seen[-1]["messageId"], "role": "assistant", "content": "one "}
        shown = [{"id": "u1", "role": "user", "content": "hi"}, partial]
        async with served.streaming(ask("", run="r2", messages=shown)) as again:
            assert (await until(again, "TEXT_MESSAGE_CONTENT"))[0]["runId"] == "r2"
            gate_.set()
            assert (await until(again, "RUN_FINISHED"))[-1]["outcome"] == {"type": "success"}
        assert len(model.requests) == 1


async def test_a_thread_that_cannot_be_read_keeps_no_server_from_starting(tmp_path: Path):
    path = tmp_path / "store.db"
    gate_ = asyncio.Event()
    model = ScriptedProvider([TextDelta("x"), gate_, AssistantMessageDone(), Completed("stop")])
    url = f"sqlite:///{path}"
    async with serving(Agent("a", model=model), store=url) as served, served.streaming(ask("hi")) as stream:
        await until(stream, "TEXT_MESSAGE_CONTENT")
        run_id = next(iter(served.bridge.supervisor.live.runs))
        with sqlite3.connect(path) as store:
            store.execute("UPDATE events SET payload = ? WHERE seq = 3", (b"no json",))
        store.close()
        served.bridge.supervisor.live.runs[run_id].engine.interrupt = lambda reason: None  # as if it were killed
    journal = SqliteJournal(path)
    supervisor = Supervisor(journal, {})
    await supervisor.start()
    run = await journal.find_run(run_id)
    await supervisor.stop()
    assert run is not None
    assert run.status == "interrupted"


async def test_a_call_that_a_check_of_the_gate_asks_about_is_not_executed(monkeypatch: pytest.MonkeyPatch):
    executed: list[str] = []

    @tool
    async def act() -> str:
        """Act."""
        executed.append("act")
        return "acted"

    monkeypatch.setitem(gate.CHECKS, "approval", lambda case: gate.Finding(gate.ASK, "somebody has to say yes"))
    model = ScriptedProvider(calls(("act", "{}")), says("well"))
    async with serving(Agent("a", model=model, tools=[act])) as served:
        answer = await served.run(ask("go"))
    assert executed == []
    assert "TOOL_CALL_RESULT" not in answer.types
    assert answer.events[-1]["outcome"]["type"] == "interrupt"


async def test_a_provider_that_asks_for_a_long_wait_is_not_waited_for():
    busy = ProviderError("Come back tomorrow.", code="rate_limited", retryable=True, retry_after_s=86_400)
    model = ScriptedProvider([busy], says("never asked"))
    async with serving(Agent("a", model=model)) as served:
        answer = await served.run(ask("hi"))
    assert (answer.types[-1], answer.events[-1]["code"]) == ("RUN_ERROR", "rate_limited")
    assert len(model.requests) == 1
