"""Group commit: one thread does all the writing, and everything that is ready shares one commit.

Callers on an event loop hand in jobs; the thread takes all that wait (up to a bound), has them committed together by
the function it was given, and tells each loop once a group. While one group is being synced to disk the next one
gathers, so that the groups grow with the load. This module knows nothing of SQL or of what a job does.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from runtime.errors import AguiBridgeError, StoreError

R = TypeVar("R")

GROUP_LIMIT = 512
"""The most events that one commit takes; a larger job is taken alone."""


class Job(Generic[R]):
    """A piece of work, the future that waits for it, and after the commit its result or its error."""

    __slots__ = ("error", "future", "result", "size", "work")

    def __init__(self, work: Callable[[], R], size: int, future: asyncio.Future[R]):
        self.work = work
        self.size = size
        self.future = future
        self.result: R | None = None
        self.error: AguiBridgeError | None = None


class CommitThread:
    """A daemon thread that owns the write side of a store.

    `commit` gets a group of jobs, runs each `work` and commits; when it returns, every job has its `result` or its
    `error`. It must not raise: if it does, the thread ends and every job fails with StoreError.
    """

    def __init__(self, commit: Callable[[Sequence[Job[Any]]], None], name: str):
        self._commit = commit
        self._queue: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._accepting = True
        self._last = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread takes jobs."""
        return self._accepting and self._thread.is_alive()

    def submit(self, work: Callable[[], R], size: int = 1) -> asyncio.Future[R]:
        """Hand in a job of `size` events; cancelling the future withdraws nothing. Raises StoreError when closed."""
        if not self._accepting:
            raise StoreError("The journal is closed.", code="store_closed")
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._queue.put(Job(work, size, future))
        if not self._accepting:
            self._refuse_waiting()
        return future

    def stop(self) -> None:
        """Accept nothing more, commit what was handed in, and return when the thread has ended. Blocks."""
        self._accepting = False
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        group: list[Job[Any]] = []
        try:
            while group := self._take():
                self._commit(group)
                _deliver(group)
        finally:
            self._accepting = False
            _fail_and_deliver(group)
            self._refuse_waiting()

    def _take(self) -> list[Job[Any]]:
        """All jobs that wait, at least one; none when the thread shall end."""
        if self._last:
            return []
        job = self._queue.get()
        group: list[Job[Any]] = []
        size = 0
        while job is not None:
            group.append(job)
            size += max(job.size, 1)
            if size >= GROUP_LIMIT:
                return group
            try:
                job = self._queue.get_nowait()
            except Empty:
                return group
        self._last = True
        return group

    def _refuse_waiting(self) -> None:
        waiting: list[Job[Any]] = []
        while not self._queue.empty():
            try:
                job = self._queue.get_nowait()
            except Empty:
                break
            if job is not None:
                waiting.append(job)
        _fail_and_deliver(waiting)


def _fail_and_deliver(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        job.error = StoreError("The journal is closed.", code="store_closed")
    _deliver(jobs)


def _deliver(jobs: Sequence[Job[Any]]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
    for job in jobs:
        by_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, done in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, done)
        except RuntimeError:
            # The loop is closed: nobody is left to be told, and the facts are in the store.
            continue


def _settle(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
