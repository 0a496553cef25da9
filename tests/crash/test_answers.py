"""Answers to what a run asks, from two processes at once and over a kill: the call runs once, or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.contract.workshop import until
from tests.crash.process import ServerProcess, server
from tests.crash.test_kill import types
from tests.crash.test_two_processes import pair, runs_on
from tests.serving import JsonObject, ask, events_in
from tests.words import script

MAIL = (
    '/script {"rounds": [{"tool_calls": [{"name": "send_email", "arguments": '
    '{"to": "ann@example.org", "subject": "Tea", "body": "Hi"}}]}]}'
)
YES = {"approved": True}


async def asked(process: ServerProcess, thread: str = "t1", words: str = MAIL) -> JsonObject:
    """Have a run ask whether it may send a mail, or do what is scripted else; what it asks."""
    events = await process.post(ask(words, thread=thread, protocolVersion="1.0"))
    [interrupt] = events[-1]["outcome"]["interrupts"]
    return interrupt


def answer(interrupt: JsonObject, run: str, thread: str = "t1", words: str = MAIL) -> JsonObject:
    entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": YES}
    return ask(words, thread=thread, run=run, resume=[entry], protocolVersion="1.0")


async def executions(process: ServerProcess) -> int:
    """How often any call was executed, in all runs."""
    facts = [await process.facts(run["run_id"]) for run in await runs_on(process)]
    return sum(types(each).count("tool.execution.started") for each in facts)


@pytest.mark.needs_postgres
@pytest.mark.timeout(180)
@pytest.mark.requirement("R-170")
async def test_the_same_answer_on_two_processes_at_the_same_moment_runs_the_call_once():
    async with pair() as (a, b):
        for number in range(8):
            thread = f"t{number}"
            interrupt = await asked(a, thread)
            sent = await asyncio.gather(
                a.http.post("/", json=answer(interrupt, "r2", thread)),
                b.http.post("/", json=answer(interrupt, "r3", thread)),
                b.http.post(f"/api/interrupts/{interrupt['id']}/answer", json={"status": "resolved", "payload": YES}),
            )
            assert {each.status_code for each in sent} <= {200, 202, 409}
            ends = [events_in(each.content)[-1] for each in sent[:2] if each.status_code == 200]
            assert all(end["outcome"] == {"type": "success"} for end in ends)
        for run in await runs_on(a):
            await a.facts(run["run_id"])  # to its end
        assert await executions(b) == 8
        assert (await b.get("/api/interrupts"))["interrupts"] == []


async def test_a_question_outlives_a_kill_and_its_answer_runs_the_call(tmp_path: Path):
    store = tmp_path / "store.db"
    async with server(store) as first:
        interrupt = await asked(first)
        await first.kill()
    async with server(store) as second:
        [listed] = (await second.get("/api/interrupts"))["interrupts"]
        assert listed["interrupt_id"] == interrupt["id"]
        events = await second.post(answer(interrupt, "r2"))
        assert events[-1]["outcome"] == {"type": "success"}
        assert await executions(second) == 1


async def test_a_kill_between_the_answer_and_its_end_leaves_a_call_that_ran_at_most_once(tmp_path: Path):
    store = tmp_path / "store.db"
    async with server(store) as first:
        interrupt = await asked(first)
        async with first.streaming(answer(interrupt, "r2")) as stream:
            await stream.until("RUN_STARTED")
            await first.kill()
            await stream.to_the_end()
    async with server(store) as second:
        events = await second.post(answer(interrupt, "r3"))
        assert events[-1]["type"] == "RUN_FINISHED"
        assert await executions(second) <= 1
        outputs = [fact for run in await runs_on(second) for fact in await second.facts(run["run_id"])]
        assert types(outputs).count("tool.call.completed") == 1


async def test_a_kill_in_the_midst_of_an_approved_call_is_told_and_the_same_answer_runs_it_no_more(tmp_path: Path):
    store, trace = tmp_path / "store.db", tmp_path / "trace"
    words = script({"tool_calls": [{"name": "publish", "arguments": {"text": "tea"}}]})
    noting: dict[str, Any] = {"agent": "tests.crash.agents:agent", "trace": trace}
    async with server(store, **noting) as first:
        interrupt = await asked(first, words=words)
        async with first.streaming(answer(interrupt, "r2", words=words)) as stream:
            await stream.until("RUN_STARTED")
            await until(lambda: trace.exists() and bool(trace.read_text()))
            await first.kill()
            await stream.to_the_end()
    async with server(store, **noting) as second:
        lost = [fact for run in await runs_on(second) for fact in await second.facts(run["run_id"])]
        [output] = [fact["payload"] for fact in lost if fact["event_type"] == "tool.call.completed"]
        assert output["kind"] == "indeterminate"
        events = await second.post(answer(interrupt, "r3", words=words))
        assert events[-1]["outcome"] == {"type": "success"}
        assert (await second.get("/api/interrupts"))["interrupts"] == []
        assert await executions(second) == 1
    assert len(trace.read_text().split()) == 1
