"""Threads for synchronous tools: at most so many at once, and none that could hold up the process.

A thread cannot be stopped from outside. So every one is a daemon, its result is delivered only if somebody still
waits, and one that is abandoned gives its slot back at once and is remembered until it really ends: a run must not
claim that everything has stopped while something is still at work. Knows nothing of tools.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

_JOB: contextvars.ContextVar[asyncio.Future[Any]] = contextvars.ContextVar("job")
"""The future of the work that this thread does."""


class ThreadLimiter:
    """Starts work in daemon threads, `slots` at a time. Belongs to one event loop."""

    def __init__(self, slots: int = 32):
        self._free = asyncio.Semaphore(slots)
        self._holding: set[asyncio.Future[Any]] = set()
        self._abandoned: dict[asyncio.Future[Any], tuple[str, str]] = {}

    @property
    def abandoned(self) -> set[str]:
        """The ids of all calls that nobody waits for any more and that are still at work."""
        return {call_id for _, call_id in self._abandoned.values()}

    def abandoned_by(self, run_id: str) -> list[str]:
        """Those of one run, in the order in which they were abandoned (call ids are unique only in a thread)."""
        return [call_id for run, call_id in self._abandoned.values() if run == run_id]

    async def start(self, work: Callable[[], T], name: str) -> asyncio.Future[T]:
        """Wait for a slot, then run `work` in a thread with a copy of the caller's context variables.

        The future gets its result or its exception. The slot is free again when the future is done or abandoned.
        """
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._holding.add(future)
        future.add_done_callback(self._release)
        context = contextvars.copy_context()
        context.run(_JOB.set, future)
        run = context.run
        thread = threading.Thread(target=run, args=(_run, work, loop, future), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            future.set_exception(error)
        return future

    def lend(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Work for which a thread waits, in whose place others may run meanwhile: what it waits for may need a thread
        itself. Called in that thread, to be awaited on the event loop.
        """
        return self._lend(_JOB.get(None), work)

    async def _lend(self, job: asyncio.Future[Any] | None, work: Coroutine[Any, Any, T]) -> T:
        lent = job is not None and job in self._holding
        if job is not None and lent:
            self._release(job)
        try:
            return await work
        finally:
            if job is not None and lent and job not in self._abandoned:
                await self._free.acquire()
                self._hold_again(job)

    def _hold_again(self, job: asyncio.Future[Any]) -> None:
        if job.done() or job in self._abandoned:
            self._free.release()
        else:
            self._holding.add(job)

    def abandon(self, job: asyncio.Future[Any], run_id: str, tool_call_id: str) -> None:
        """Stop waiting for a thread's future, or for a task that will not end, and remember it until it does.

        Whatever comes of it is dropped.
        """
        self._release(job)
        self._abandoned[job] = (run_id, tool_call_id)
        job.add_done_callback(self._forget)

    async def let_go(self, job: asyncio.Future[Any], run_id: str, name: str, grace_s: float) -> None:
        """Stop a task, or wait for a thread, for so long; abandon under this name what is still at work then."""
        if isinstance(job, asyncio.Task):
            job.cancel()
        try:
            await asyncio.wait({job}, timeout=grace_s)
        finally:
            if not job.done():
                self.abandon(job, run_id, name)
            elif not job.cancelled():
                job.exception()

    def _release(self, job: asyncio.Future[Any]) -> None:
        if job in self._holding:
            self._holding.discard(job)
            self._free.release()

    def _forget(self, job: asyncio.Future[Any]) -> None:
        self._abandoned.pop(job, None)
        if not job.cancelled():
            job.exception()


def _run(work: Callable[[], T], loop: asyncio.AbstractEventLoop, future: asyncio.Future[T]) -> None:
    try:
        settle = partial(_succeed, future, work())
    except BaseException as error:  # noqa: BLE001 - the waiting side judges it; here it would end in nothing
        settle = partial(_fail, future, error)
    # RuntimeError: the loop is closed, so nobody waits.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(settle)


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if isinstance(error, StopIteration):  # futures refuse it
        error = RuntimeError(f"StopIteration: {error}")
    if not future.done():
        future.set_exception(error)
