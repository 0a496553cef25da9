"""Journals that do what a test says: hold a commit until it is let go, or fail one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.events import Event, Record
from runtime.journal import Begun, Journal, Opening, Session
from runtime.run import RunRecord


class Double:
    """A journal that hands everything on to another."""

    def __init__(self, inner: Journal) -> None:
        self.inner = inner

    async def open(self) -> None:
        await self.inner.open()

    async def close(self) -> None:
        await self.inner.close()

    async def begin_run(self, opening: Opening) -> Begun:
        return await self.inner.begin_run(opening)

    async def append(
        self, run_id: str, fence: int, expected_seq: int, events: Sequence[Event], occurred_at: int
    ) -> list[Record]:
        return await self.inner.append(run_id, fence, expected_seq, events, occurred_at)

    async def put_contents(self, contents: dict[str, bytes]) -> None:
        await self.inner.put_contents(contents)

    async def content(self, digest: str) -> bytes | None:
        return await self.inner.content(digest)

    async def take_over(self, run_id: str, executor_instance_id: str) -> RunRecord | None:
        return await self.inner.take_over(run_id, executor_instance_id)

    async def find_run(self, run_id: str) -> RunRecord | None:
        return await self.inner.find_run(run_id)

    async def find_session(self, tenant_id: str, owner_id: str, session_id: str) -> Session | None:
        return await self.inner.find_session(tenant_id, owner_id, session_id)

    async def active_runs(self) -> list[RunRecord]:
        return await self.inner.active_runs()

    async def read(self, run_id: str, after: int, limit: int) -> list[Record]:
        return await self.inner.read(run_id, after, limit)

    async def read_thread(self, thread_id: str, after: int) -> list[tuple[RunRecord, list[Record]]]:
        return await self.inner.read_thread(thread_id, after)

    async def healthy(self) -> None:
        await self.inner.healthy()


@dataclass(frozen=True)
class Held:
    """A commit that waits for the test."""

    events: list[Event]
    go: asyncio.Future[None]

    @property
    def types(self) -> list[str]:
        """The types of its events, in order."""
        return [event.event_type for event in self.events]

    def release(self) -> None:
        """Let it through."""
        if not self.go.done():
            self.go.set_result(None)


class HeldJournal(Double):
    """Holds every commit (from the first, or from `hold()` on) until the test lets it go."""

    def __init__(self, inner: Journal, *, holding: bool = True) -> None:
        super().__init__(inner)
        self._holding = holding
        self._arrivals: asyncio.Queue[Held] = asyncio.Queue()

    def hold(self) -> None:
        """From now on commits wait."""
        self._holding = True

    def let_go(self) -> None:
        """Let everything through, now and later."""
        self._holding = False
        while not self._arrivals.empty():
            self._arrivals.get_nowait().release()

    async def next(self) -> Held:
        """The next commit that waits."""
        return await self._arrivals.get()

    async def begin_run(self, opening: Opening) -> Begun:
        await self._pass(opening.events)
        return await super().begin_run(opening)

    async def append(
        self, run_id: str, fence: int, expected_seq: int, events: Sequence[Event], occurred_at: int
    ) -> list[Record]:
        await self._pass(events)
        return await super().append(run_id, fence, expected_seq, events, occurred_at)

    async def _pass(self, events: Sequence[Event]) -> None:
        if self._holding:
            held = Held(list(events), asyncio.get_running_loop().create_future())
            self._arrivals.put_nowait(held)
            await held.go


class FailingJournal(Double):
    """Raises what `fails` answers for an append's events, if it answers with something."""

    def __init__(self, inner: Journal, fails: Callable[[Sequence[Event]], Exception | None]) -> None:
        super().__init__(inner)
        self.fails = fails

    async def append(
        self, run_id: str, fence: int, expected_seq: int, events: Sequence[Event], occurred_at: int
    ) -> list[Record]:
        if (error := self.fails(events)) is not None:
            raise error
        return await super().append(run_id, fence, expected_seq, events, occurred_at)


def fails_once(event_type: str, error: Exception) -> Callable[[Sequence[Event]], Exception | None]:
    """Fail the first append that has an event of this type."""
    left = [error]

    def fails(events: Sequence[Event]) -> Exception | None:
        if left and any(event.event_type == event_type for event in events):
            return left.pop()
        return None

    return fails
