"""Executing tools: what becomes of results, failures, time limits and cancellation, in tasks and in threads."""

from __future__ import annotations

import asyncio
import contextvars
import enum
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any, NoReturn

import pytest
from pydantic import BaseModel

from runtime.events import OUTPUT_KINDS
from runtime.run import RUNNING, RunRecord
from runtime.tools import Output, ThreadLimiter, Tool, ToolContext, ToolError, execute, tool

REQUEST = contextvars.ContextVar("REQUEST", default="nobody")

RUN = RunRecord(
    run_id="run_1",
    tenant_id="-",
    owner_id="ann",
    thread_id="thread_1",
    session_id=None,
    agent_id="assistant",
    client_run_id="r1",
    input_digest="0" * 64,
    attempt=1,
    status=RUNNING,
    base=0,
    last_seq=0,
    fence=1,
    root_run_id="run_1",
    created_at=0,
)


def _context(call_id: str = "call_1") -> ToolContext:
    return ToolContext(
        run=RUN, tool_call_id=call_id, idempotency_key="key_1", cancelled=threading.Event(), state={"n": 1}, deps="deps"
    )


async def _run(function: Any, **arguments: object) -> Output:
    declared = function if isinstance(function, Tool) else tool(function)
    return await execute(declared, declared.validate(arguments), _context(), ThreadLimiter(), grace_s=5)


def _returning(value: object) -> Callable[[], object]:
    def give() -> object:
        return value

    return give


async def _until(reached: Callable[[], bool]) -> None:
    """Let the loop turn until something is so (the test's own time limit ends a wait in vain)."""
    while not reached():
        await asyncio.to_thread(lambda: None)


class Place(BaseModel):
    city: str


@dataclass
class Point:
    x: int


class Colour(enum.Enum):
    RED = "red"


# --- results ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("lone \ud800", "lone \ufffd"),
        (None, ""),
        (True, "true"),
        (3, "3"),
        (2.5, "2.5"),
        (float("nan"), "null"),
        ([], "[]"),
        ({"b": 1, "a": [None, "ö"]}, '{"b":1,"a":[null,"ö"]}'),
        ((1, 2), "[1,2]"),
        ({3}, "[3]"),
        (date(2026, 2, 3), "2026-02-03"),
        (Colour.RED, "red"),
        (Place(city="Oslo"), '{"city":"Oslo"}'),
        ([Point(1)], '[{"x":1}]'),
        (b"bytes", "bytes"),
        ({"big": 2**80}, '{"big":"1208925819614629174706176"}'),
    ],
)
async def test_a_result_becomes_text(value: object, text: str):
    assert await _run(_returning(value)) == Output(text, False, "result")


PARTS = [
    {"type": "text", "text": "Look:", "id": "p1", "metadata": {"k": 1}},
    {"type": "image", "source": {"type": "data", "value": "aGk=", "mime_type": "image/png"}},
    {"type": "document", "source": {"type": "url", "value": "https://example.org/a.pdf"}},
    {"type": "audio", "source": {"type": "file", "value": "file_1", "provider": "openai"}},
]


async def test_content_parts_stay_parts():
    assert (await _run(_returning(PARTS))).result == PARTS


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text"},
        {"type": "text", "text": 3},
        {"type": "text", "text": "a", "id": 3},
        {"type": "text", "text": "a", "colour": "red"},
        {"type": "row", "text": "a"},
        {"type": "image"},
        {"type": "image", "source": "https://example.org/a.png"},
        {"type": "image", "source": {"type": "data", "value": "aGk="}},
        {"type": "image", "source": {"type": "url", "value": "a", "size": "b"}},
        {"type": "image", "source": {"type": "cloud", "value": "a"}},
        {"type": "image", "source": {"type": ["url"], "value": "a"}},
        "text",
    ],
)
async def test_a_list_that_only_resembles_content_parts_is_json_text(part: object):
    assert isinstance((await _run(_returning([PARTS[0], part]))).result, str)


async def test_async_and_sync_tools_get_their_arguments_and_the_context():
    async def ask(x: int, ctx: ToolContext) -> list[object]:
        return [x, ctx.tool_call_id, ctx.idempotency_key, ctx.state, ctx.deps, ctx.run.run_id, ctx.cancelled]

    def tell(ctx: ToolContext, x: int) -> list[object]:
        return [x, ctx.tool_call_id, ctx.idempotency_key, ctx.state, ctx.deps, ctx.run.run_id, ctx.cancelled]

    expected = '[7,"call_1","key_1",{"n":1},"deps","run_1",false]'
    assert (await _run(ask, x=7)).result == expected
    assert (await _run(tell, x=7)).result == expected


async def test_a_sync_tool_runs_in_a_daemon_thread_with_the_callers_context_variables():
    def look() -> list[object]:
        thread = threading.current_thread()
        seen = REQUEST.get()
        REQUEST.set("changed")
        return [seen, thread.daemon, thread is threading.main_thread()]

    REQUEST.set("ann")

    assert (await _run(look)).result == '["ann",true,false]'
    assert REQUEST.get() == "ann"


# --- failures -----------------------------------------------------------------------------------------------------


def _raising(error: BaseException) -> list[Callable[[], object]]:
    def sync() -> NoReturn:
        raise error

    async def later() -> NoReturn:
        raise error

    return [sync, later]


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no")


async def test_an_exception_is_told_to_the_model_and_logged_with_its_traceback(caplog: pytest.LogCaptureFixture):
    for function in _raising(ValueError("no such city")):
        caplog.clear()
        assert await _run(function) == Output("ValueError: no such city", True, "error")
        (entry,) = caplog.records
        assert (entry.name, entry.levelno) == ("agui_bridge.tools", logging.WARNING)
        assert "Traceback" in caplog.text


async def test_a_long_failure_is_cut():
    for function in _raising(ValueError("x" * 100_000)):
        result = (await _run(function)).result
        assert isinstance(result, str)
        assert 1000 < len(result) <= 2000


async def test_a_tool_error_is_told_word_for_word_and_not_logged(caplog: pytest.LogCaptureFixture):
    for function in _raising(ToolError("Ask for a city in Norway.")):
        assert await _run(function) == Output("Ask for a city in Norway.", True, "error")
    assert not caplog.records


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StopIteration("end"), "StopIteration"),
        (SystemExit(3), "SystemExit|end the process"),
        (asyncio.CancelledError("mine"), "cancel|CancelledError"),
        (TimeoutError("the database"), "TimeoutError: the database"),
        (Unprintable(), "Unprintable"),
        (ExceptionGroup("many", [ValueError("a")]), "ExceptionGroup: many"),
    ],
)
async def test_whatever_a_tool_raises_is_an_error_output(error: BaseException, said: str):
    for function in _raising(error):
        output = await _run(function)
        assert (output.is_error, output.kind) == (True, "error")
        assert any(word in str(output.result) for word in said.split("|"))


async def test_a_result_that_cannot_be_told_is_an_error_output():
    loop: list[object] = []
    loop.append(loop)

    assert (await _run(_returning(loop))).is_error
    assert (await _run(_returning(Place))).is_error


async def test_a_sync_tool_that_returns_a_coroutine_is_told_to_be_async():
    async def work() -> None: ...

    assert "async def" in str((await _run(_returning(work()))).result)


# --- time limits --------------------------------------------------------------------------------------------------


async def test_an_async_tool_is_cancelled_when_its_time_is_over():
    ended: list[bool] = []

    @tool(timeout_s=0.01)
    async def wait(ctx: ToolContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(ctx.cancelled)

    assert await _run(wait) == Output("timed out after 0.01 s", True, "error")
    assert ended == [True]


async def test_a_tools_own_failure_while_it_is_cancelled_is_still_a_timeout():
    @tool(timeout_s=0.01)
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("while cleaning up") from None

    assert (await _run(wait)).result == "timed out after 0.01 s"


async def test_a_sync_tool_that_outlives_its_time_is_abandoned_until_it_ends():
    release = threading.Event()
    threads = ThreadLimiter()

    @tool(timeout_s=0.01)
    def block() -> str:
        release.wait()
        return "too late"

    output = await execute(block, {}, _context("call_7"), threads, grace_s=0)

    assert output == Output("timed out after 0.01 s; it may still be at work", True, "error")
    assert threads.abandoned == {"call_7"}
    assert threads.abandoned_by("run_1") == ["call_7"]
    assert threads.abandoned_by("run_2") == []
    release.set()
    await _until(lambda: not threads.abandoned)


async def test_a_sync_tool_that_looks_at_cancelled_is_not_abandoned():
    threads = ThreadLimiter()

    @tool(timeout_s=0.01)
    def poll(ctx: ToolContext) -> None:
        while not ctx.cancelled:
            threading.Event().wait(0.001)

    assert (await execute(poll, {}, _context(), threads, grace_s=5)).result == "timed out after 0.01 s"
    assert not threads.abandoned


async def test_waiting_for_a_thread_does_not_count_as_the_tools_time():
    threads = ThreadLimiter(slots=1)
    release = threading.Event()
    quick = tool(timeout_s=0.2)(_returning("done"))
    holder = await threads.start(release.wait, "holder")
    second = asyncio.create_task(execute(quick, {}, _context(), threads))
    await asyncio.wait({second}, timeout=0.3)
    release.set()

    assert (await second).result == "done"
    assert await holder


# --- cancellation -------------------------------------------------------------------------------------------------


async def _cancelled(task: asyncio.Task[Output]) -> bool:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return task.cancelled()


async def test_cancelling_the_caller_cancels_an_async_tool_and_propagates():
    begun = asyncio.Event()
    ended: list[bool] = []
    threads = ThreadLimiter()

    @tool
    async def wait(ctx: ToolContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(ctx.cancelled)

    task = asyncio.create_task(execute(wait, {}, _context(), threads))
    await begun.wait()

    assert await _cancelled(task)
    assert ended == [True]
    assert not threads.abandoned


async def test_cancelling_the_caller_abandons_a_thread_and_frees_its_slot_at_once():
    threads = ThreadLimiter(slots=1)
    begun, release = threading.Event(), threading.Event()

    @tool
    def block() -> None:
        begun.set()
        release.wait()
        raise ValueError("nobody hears this")

    task = asyncio.create_task(execute(block, {}, _context("call_9"), threads, grace_s=0))
    await _until(begun.is_set)

    assert await _cancelled(task)
    assert threads.abandoned == {"call_9"}
    assert (await execute(tool(_returning("next")), {}, _context(), threads)).result == "next"
    release.set()
    await _until(lambda: not threads.abandoned)


async def test_an_async_tool_that_will_not_stop_is_abandoned_too():
    threads = ThreadLimiter()
    begun, release = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> None:
        begun.set()
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    task = asyncio.create_task(execute(stubborn, {}, _context("call_3"), threads, grace_s=0))
    await begun.wait()

    assert await _cancelled(task)
    assert threads.abandoned == {"call_3"}
    release.set()
    await _until(lambda: not threads.abandoned)


async def test_a_run_that_is_stopped_is_seen_by_tools_in_threads():
    stop = threading.Event()
    context = ToolContext(run=RUN, tool_call_id="c", idempotency_key="k", cancelled=stop)

    @tool
    def poll(ctx: ToolContext) -> str:
        stop.set()
        return str(ctx.cancelled)

    assert (await execute(poll, {}, context, ThreadLimiter())).result == "True"


async def test_a_caller_cancelled_while_waiting_for_a_thread_starts_nothing():
    threads = ThreadLimiter(slots=1)
    release = threading.Event()
    ran: list[int] = []
    holder = await threads.start(release.wait, "holder")
    task = asyncio.create_task(execute(tool(name="never")(lambda: ran.append(1)), {}, _context(), threads))
    await asyncio.wait({task}, timeout=0.01)

    assert await _cancelled(task)
    release.set()
    await holder
    assert (await execute(tool(_returning("next")), {}, _context(), threads)).result == "next"
    assert ran == []
    assert not threads.abandoned


# --- threads ------------------------------------------------------------------------------------------------------


async def test_no_more_tools_run_than_there_are_slots():
    threads = ThreadLimiter(slots=3)
    lock = threading.Lock()
    gate = threading.Barrier(3)
    running: list[int] = [0, 0]

    @tool
    def work() -> None:
        with lock:
            running[0] += 1
            running[1] = max(running)
        gate.wait(timeout=5)
        with lock:
            running[0] -= 1

    outputs = await asyncio.gather(*(execute(work, {}, _context(f"c{n}"), threads) for n in range(9)))

    assert [output.kind for output in outputs] == ["result"] * 9
    assert running == [0, 3]


async def test_a_thread_that_cannot_be_started_is_an_error_output(monkeypatch: pytest.MonkeyPatch):
    threads = ThreadLimiter(slots=1)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        output = await execute(tool(_returning("x")), {}, _context(), threads)

    assert (output.is_error, output.result) == (True, "RuntimeError: can't start new thread")
    assert (await execute(tool(_returning("x")), {}, _context(), threads)).result == "x"


def test_a_thread_that_ends_after_its_loop_is_closed_disturbs_nobody():
    release = threading.Event()
    ended: list[threading.Thread] = []

    @tool(timeout_s=0.01)
    def block() -> None:
        ended.append(threading.current_thread())
        release.wait()

    async def main() -> Output:
        return await execute(block, {}, _context(), ThreadLimiter(), grace_s=0)

    assert asyncio.run(main()).is_error
    release.set()
    ended[0].join(timeout=5)
    assert not ended[0].is_alive()


EXIT = """
import asyncio, threading
from runtime.tools.threads import ThreadLimiter

async def main():
    begun = threading.Event()
    await ThreadLimiter().start(lambda: (begun.set(), threading.Event().wait()), "stuck")
    begun.wait()

asyncio.run(main())
print("over")
"""


def test_a_thread_that_never_ends_does_not_hold_up_the_process():
    done = subprocess.run([sys.executable, "-c", EXIT], capture_output=True, text=True, timeout=30, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")


def test_the_kinds_of_outputs_are_known_to_the_journal():
    assert {"result", "error"} <= OUTPUT_KINDS.keys()
