"""Steering: what a user says while a run is at work is taken into that run at its next round boundary.

A message to steer with is a queued run with a mark. One commit puts its messages into the run at work and ends it, so
that whatever happens a message is said once: here, or by its own run when that has its turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from runtime import events as e
from runtime.beginning import unsaid_messages
from runtime.journal.inbox import STEER, Part
from runtime.journal.store import Store
from runtime.request import RunRequest
from runtime.run import RunRecord
from runtime.run_log import RunLog
from runtime.system import Clock
from runtime.thread import Thread


class Waiting(Protocol):
    """The line, as far as steering has to know it."""

    def may_wait(self, thread_id: str) -> bool:
        """Whether anybody may wait for the thread: False is certain."""
        ...

    async def request_of(self, run: RunRecord) -> RunRequest:
        """What a run of the store was asked. Raises StoreError."""
        ...

    async def told(self, run_id: str, last_seq: int) -> None:
        """A queued run has facts, without ever having been at work."""
        ...


class Steering:
    """Takes messages into the runs of one process. `line` is set once there is one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.line: Waiting | None = None

    async def take(self, run: RunRecord, thread: Thread, log: RunLog, is_wanted: Callable[[], bool]) -> bool:
        """Take in what waits to steer this run, whose facts are all handed over; False if there was nothing.

        Raises StoreError.
        """
        if self.line is None or not self.line.may_wait(thread.thread_id):
            return False
        steering = [each for each in await self._store.queued_runs(thread.thread_id) if each.when_busy == STEER]
        if not steering:
            return False
        said: dict[str, e.Event] = {}
        parts: list[Part] = []
        for each in steering:
            request = await self.line.request_of(each)
            for fact in unsaid_messages(request, thread):
                assert isinstance(fact, e.MessageCompleted), "only messages wait"
                said.setdefault(fact.message_id, fact)
            parts.append(Part(each.run_id, each.fence, 0, self._absorbed(each, run)))
        if not is_wanted() or not await log.append_with(list(said.values()), parts):
            return False
        for part in parts:
            await self.line.told(part.run_id, len(part.events))
        return bool(said)

    def _absorbed(self, steering: RunRecord, run: RunRecord) -> list[e.Event]:
        """All that a run does whose messages another one takes in."""
        started = e.RunStarted(self._clock.now(), steering.client_run_id, steering.agent_id, "", [])
        return [started, e.RunCompleted(absorbed_by=run.run_id)]
