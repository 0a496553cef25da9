"""Stores that do what a test says: hold a commit until it is let go, or fail one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from runtime.events import Event, Record
from runtime.journal import Begun, KeyedRun, Opening, Session, Started
from runtime.journal.aliases import Alias
from runtime.journal.artifacts import Artifact
from runtime.journal.catalogue import Owner, Place, RunFilter, SessionChange, SessionFilter, UsedSession
from runtime.journal.inbox import Part, Starting
from runtime.journal.interrupts import StoredInterrupt
from runtime.journal.leases import Lease
from runtime.journal.media import Medium
from runtime.journal.retention import Removed
from runtime.journal.store import Store
from runtime.journal.wakes import End, Wake
from runtime.run import RunRecord


class Double:
    """A journal that hands everything on to another."""

    def __init__(self, inner: Store) -> None:
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

    async def due_deliveries(self, limit: int) -> list[str]:
        return await self.inner.due_deliveries(limit)

    async def claim_delivery(self, run_id: str, for_s: float) -> int | None:
        return await self.inner.claim_delivery(run_id, for_s)

    async def put_off_delivery(self, run_id: str, for_s: float) -> None:
        await self.inner.put_off_delivery(run_id, for_s)

    async def end_delivery(self, run_id: str) -> None:
        await self.inner.end_delivery(run_id)

    async def put_contents(self, contents: dict[str, bytes]) -> None:
        await self.inner.put_contents(contents)

    async def content(self, digest: str) -> bytes | None:
        return await self.inner.content(digest)

    async def find_run(self, run_id: str) -> RunRecord | None:
        return await self.inner.find_run(run_id)

    async def find_session(self, tenant_id: str, owner_id: str, session_id: str) -> Session | None:
        return await self.inner.find_session(tenant_id, owner_id, session_id)

    async def active_runs(self) -> list[RunRecord]:
        return await self.inner.active_runs()

    async def read(self, run_id: str, after: int, limit: int) -> list[Record]:
        return await self.inner.read(run_id, after, limit)

    async def read_thread(
        self, thread_id: str, after: int, up_to: int | None = None
    ) -> list[tuple[RunRecord, list[Record]]]:
        return await self.inner.read_thread(thread_id, after, up_to)

    async def add_alias(self, alias: Alias) -> RunRecord:
        return await self.inner.add_alias(alias)

    async def find_named_run(self, thread_id: str, client_run_id: str) -> RunRecord | None:
        return await self.inner.find_named_run(thread_id, client_run_id)

    async def healthy(self) -> None:
        await self.inner.healthy()

    @property
    def exclusive(self) -> bool:
        return self.inner.exclusive

    async def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
        return await self.inner.renew(executor_instance_id, run_ids, lease_s)

    async def take_over(self, run_id: str, executor_instance_id: str, lease_s: float) -> RunRecord | None:
        return await self.inner.take_over(run_id, executor_instance_id, lease_s)

    async def hand_over(self, run_id: str, fence: int, for_s: float = 0.0) -> bool:
        return await self.inner.hand_over(run_id, fence, for_s)

    async def handed_over(self) -> list[RunRecord]:
        return await self.inner.handed_over()

    async def mark_unread(self, run_id: str, *, unread: bool) -> None:
        await self.inner.mark_unread(run_id, unread=unread)

    async def is_unread(self, run_id: str) -> bool:
        return await self.inner.is_unread(run_id)

    async def queued_runs(self, thread_id: str) -> list[RunRecord]:
        return await self.inner.queued_runs(thread_id)

    async def next_queued(self, thread_id: str | None = None) -> list[RunRecord]:
        return await self.inner.next_queued(thread_id)

    async def start_queued(self, starting: Starting) -> Started | None:
        return await self.inner.start_queued(starting)

    async def append_all(self, parts: Sequence[Part], occurred_at: int) -> list[list[Record]] | None:
        return await self.inner.append_all(parts, occurred_at)

    async def lost_runs(self) -> list[RunRecord]:
        return await self.inner.lost_runs()

    async def mark_cancel(self, run_id: str, reason: str) -> RunRecord | None:
        return await self.inner.mark_cancel(run_id, reason)

    async def mark_read(self, run_ids: Sequence[str]) -> None:
        await self.inner.mark_read(run_ids)

    async def clear_read(self, run_id: str) -> None:
        await self.inner.clear_read(run_id)

    def subscribe(self, on_wake: Callable[[Wake | None], None]) -> None:
        self.inner.subscribe(on_wake)

    async def wake(self, wake: Wake) -> None:
        await self.inner.wake(wake)

    async def ends(self, run_ids: Sequence[str]) -> dict[str, End]:
        return await self.inner.ends(run_ids)

    async def add_session(self, session: Session) -> None:
        await self.inner.add_session(session)

    async def change_session(self, owner: Owner, session_id: str, change: SessionChange) -> Session | None:
        return await self.inner.change_session(owner, session_id, change)

    async def hide_session(self, owner: Owner, session_id: str, at: int) -> list[RunRecord] | None:
        return await self.inner.hide_session(owner, session_id, at)

    async def list_sessions(self, owner: Owner, before: Place | None, limit: int) -> list[Session]:
        return await self.inner.list_sessions(owner, before, limit)

    async def list_used_sessions(
        self, owner: Owner, wanted: SessionFilter, before: Place | None, limit: int
    ) -> list[UsedSession]:
        return await self.inner.list_used_sessions(owner, wanted, before, limit)

    async def list_runs(self, owner: Owner, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        return await self.inner.list_runs(owner, wanted, before, limit)

    async def list_every_run(self, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        return await self.inner.list_every_run(wanted, before, limit)

    async def find_visible_run(self, run_id: str) -> RunRecord | None:
        return await self.inner.find_visible_run(run_id)

    async def runs_of_tree(self, root_run_id: str) -> list[RunRecord]:
        return await self.inner.runs_of_tree(root_run_id)

    async def read_tree(self, places: Mapping[str, int], limit: int) -> list[Record]:
        return await self.inner.read_tree(places, limit)

    async def tree_end(self, root_run_id: str) -> int:
        return await self.inner.tree_end(root_run_id)

    async def find_keyed(self, owner: Owner, key_digest: str) -> KeyedRun | None:
        return await self.inner.find_keyed(owner, key_digest)

    async def find_interrupt(self, interrupt_id: str) -> StoredInterrupt | None:
        return await self.inner.find_interrupt(interrupt_id)

    async def open_interrupts(
        self, tenant_id: str, owner_id: str | None, before: Place | None, limit: int
    ) -> list[StoredInterrupt]:
        return await self.inner.open_interrupts(tenant_id, owner_id, before, limit)

    async def add_artifact(self, artifact: Artifact) -> None:
        await self.inner.add_artifact(artifact)

    async def find_artifact(self, artifact_id: str) -> Artifact | None:
        return await self.inner.find_artifact(artifact_id)

    async def artifacts_of(self, thread_id: str) -> list[Artifact]:
        return await self.inner.artifacts_of(thread_id)

    async def is_named(self, digest: str) -> bool:
        return await self.inner.is_named(digest)

    async def content_slice(self, digest: str, start: int, length: int) -> bytes | None:
        return await self.inner.content_slice(digest, start, length)

    async def add_medium(self, medium: Medium) -> None:
        await self.inner.add_medium(medium)

    async def find_medium(self, media_id: str) -> Medium | None:
        return await self.inner.find_medium(media_id)

    async def medium_of(self, owner: Owner, given_id: str) -> Medium | None:
        return await self.inner.medium_of(owner, given_id)

    async def media_of_thread(self, thread_id: str) -> list[Medium]:
        return await self.inner.media_of_thread(thread_id)

    async def uploads_of(self, owner: Owner) -> list[Medium]:
        return await self.inner.uploads_of(owner)

    async def remove_unused_media(self, since: int, before: int, limit: int, owner: Owner | None = None) -> Removed:
        return await self.inner.remove_unused_media(since, before, limit, owner)

    async def keep_secret(self, name: str, made: bytes) -> bytes:
        return await self.inner.keep_secret(name, made)

    async def uncompacted_runs(self, ended_before: int, limit: int, without: Collection[str] = ()) -> list[str]:
        return await self.inner.uncompacted_runs(ended_before, limit, without)

    async def compact(self, run_id: str, at: int) -> int:
        return await self.inner.compact(run_id, at)

    async def expire(self, idle_before: int, at: int, limit: int, without: Collection[str] = ()) -> Removed:
        return await self.inner.expire(idle_before, at, limit, without)

    async def sweep(self, at: int) -> Removed:
        return await self.inner.sweep(at)

    async def threads_of_session(self, owner: Owner, session_id: str) -> list[str]:
        return await self.inner.threads_of_session(owner, session_id)

    async def threads_of_owner(self, owner: Owner) -> list[str]:
        return await self.inner.threads_of_owner(owner)

    async def sessions_of_owner(self, owner: Owner) -> list[Session]:
        return await self.inner.sessions_of_owner(owner)

    async def erase(self, thread_ids: Sequence[str]) -> Removed:
        return await self.inner.erase(thread_ids)


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

    def __init__(self, inner: Store, *, holding: bool = True) -> None:
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

    def __init__(self, inner: Store, fails: Callable[[Sequence[Event]], Exception | None]) -> None:
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
