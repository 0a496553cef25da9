"""The journal in dicts: nothing survives the process, everything else is promised as by the others.

For tests, demonstrations and `--store memory:`. Nothing here waits, so that each call is one step of the event loop
and atomic; it belongs to one loop.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace

from runtime.errors import FenceLost, StoreError
from runtime.events import DELTAS, Event, Record
from runtime.journal import Begun, Opening, Session
from runtime.journal.changes import (
    Standing,
    Wait,
    admitted,
    advance,
    attempt_or_refusal,
    begun_of,
    confirm_repeat,
    is_repeat,
    lease_ran_out,
    leased,
    opens_tree,
)
from runtime.journal.drafts import Draft, Unstorable, count_of, decoded, drafts_of, records_of
from runtime.journal.leases import Lease
from runtime.journal.memory_aliases import MemoryAliases
from runtime.journal.memory_artifacts import MemoryArtifacts
from runtime.journal.memory_catalogue import MemoryCatalogue
from runtime.journal.memory_deliveries import MemoryDeliveries
from runtime.journal.memory_inbox import MemoryInbox
from runtime.journal.memory_interrupts import MemoryInterrupts
from runtime.journal.memory_media import MemoryMedia
from runtime.journal.memory_retention import MemoryRetention
from runtime.journal.memory_trees import MemoryTrees
from runtime.journal.wakes import End, Wake
from runtime.run import QUEUED, RunRecord


class MemoryJournal(
    MemoryCatalogue,
    MemoryAliases,
    MemoryArtifacts,
    MemoryRetention,
    MemoryMedia,
    MemoryTrees,
    MemoryInterrupts,
    MemoryDeliveries,
    MemoryInbox,
):
    """A `Journal` that keeps its facts until it is forgotten; closing and opening it again is a restart."""

    def __init__(self, *, clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000):
        super().__init__()
        self._clock = clock
        self._closed = False

    async def open(self) -> None:
        """Accept work (again)."""
        self._closed = False

    async def close(self) -> None:
        """Refuse every further call; the facts stay for the next `open`."""
        self._closed = True

    async def begin_run(self, opening: Opening) -> Begun:
        """See the port."""
        self._require_open()
        drafts = drafts_of(opening.events)
        answer = attempt_or_refusal(opening, self._standing(opening))
        if not isinstance(answer, int | Wait):
            return answer
        if opening.run.run_id in self._runs:
            raise Unstorable(f"There is a run {opening.run.run_id} already.")
        self._require_unasked(drafts)
        run, drafts = admitted(opening, answer, drafts, self._clock())
        self._owners.setdefault(run.thread_id, (run.tenant_id, run.owner_id))
        if opening.session is not None:
            self._sessions.setdefault(_key(opening.session), opening.session)
        self._give_default_title(run, opening.default_title)
        self._threads.setdefault(run.thread_id, []).append(run.run_id)
        if (key := opening.idempotency) is not None:
            told = (run.run_id, key.request_digest, key.message_id)
            self._keys[run.tenant_id, run.owner_id, key.key_digest] = told
        self._records[run.run_id] = []
        self._add_contents(opening.contents)
        if opening.delivers:
            self._add_delivery(run.run_id)
        return begun_of(run, answer, self._commit(run, drafts, opening.occurred_at))

    async def append(
        self, run_id: str, fence: int, expected_seq: int, events: Sequence[Event], occurred_at: int
    ) -> list[Record]:
        """See the port."""
        self._require_open()
        drafts = drafts_of(events)
        run = self._runs.get(run_id)
        if run is None:
            raise FenceLost(f"There is no run {run_id}.")
        end = expected_seq + len(events)
        if is_repeat(run, run.last_seq, fence, expected_seq, len(events)):
            stored = [record for record in self._records[run_id] if expected_seq < record.seq <= end]
            confirm_repeat(run, stored, drafts)
            return [_as_read(record) for record in stored]
        self._require_unasked(drafts)
        return self._commit(advance(run, end, drafts, occurred_at), drafts, occurred_at)

    async def put_contents(self, contents: dict[str, bytes]) -> None:
        """See the port."""
        self._require_open()
        self._add_contents(contents)

    async def content(self, digest: str) -> bytes | None:
        """See the port."""
        self._require_open()
        return self._contents.get(digest)

    async def find_run(self, run_id: str) -> RunRecord | None:
        """See the port."""
        self._require_open()
        return self._runs.get(run_id)

    async def find_session(self, tenant_id: str, owner_id: str, session_id: str) -> Session | None:
        """See the port."""
        self._require_open()
        return self._sessions.get((tenant_id, owner_id, session_id))

    async def active_runs(self) -> list[RunRecord]:
        """See the port."""
        self._require_open()
        return self._active()

    async def read(self, run_id: str, after: int, limit: int) -> list[Record]:
        """See the port."""
        self._require_open()
        return self._behind(run_id, after, limit)

    async def read_thread(
        self, thread_id: str, after: int, up_to: int | None = None
    ) -> list[tuple[RunRecord, list[Record]]]:
        """See the port."""
        self._require_open()
        end = sys.maxsize if up_to is None else up_to
        found: list[tuple[RunRecord, list[Record]]] = []
        for run in sorted(self._runs_of(thread_id), key=lambda run: run.base):
            if run.base + run.last_seq > after and run.base < end:
                behind = [record for record in self._records[run.run_id] if after < run.base + record.seq <= end]
                shown = [r for r in behind if not run.is_over or type(r.event) not in DELTAS]
                found.append((run, [_as_read(record) for record in shown]))
        return found

    async def healthy(self) -> None:
        """See the port."""
        self._require_open()

    # --- leases and wakes: nobody else is there -------------------------------------------------------------------

    @property
    def exclusive(self) -> bool:
        """See the port: no other process can have it open."""
        return True

    async def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
        """See the port."""
        self._require_open()
        now = self._clock()
        mine = [run for run in self._active() if run.executor_instance_id == executor_instance_id]
        held = [run for run in mine if run.run_id in run_ids]
        for run in held:
            self._runs[run.run_id] = leased(run, lease_s, now)
        return [Lease(run.run_id, run.fence, self._marks.get(run.run_id), None) for run in held]

    async def take_over(self, run_id: str, executor_instance_id: str, lease_s: float) -> RunRecord | None:
        """See the port."""
        self._require_open()
        run = self._runs.get(run_id)
        if run is None or run.is_over:
            return None
        taken = replace(run, fence=run.fence + 1, executor_instance_id=executor_instance_id)
        self._runs[run_id] = leased(taken, lease_s, self._clock())
        return self._runs[run_id]

    async def hand_over(self, run_id: str, fence: int, for_s: float = 0.0) -> bool:
        """See the port."""
        self._require_open()
        run = self._runs.get(run_id)
        if run is None or run.is_over or run.fence != fence:
            return False
        self._runs[run_id] = leased(replace(run, executor_instance_id=None), for_s, self._clock())
        return True

    async def handed_over(self) -> list[RunRecord]:
        """See the port."""
        self._require_open()
        left = [run for run in self._active() if run.status != QUEUED and run.executor_instance_id is None]
        return [run for run in left if not lease_ran_out(run, self._clock())]

    async def lost_runs(self) -> list[RunRecord]:
        """See the port."""
        self._require_open()
        return [run for run in self._active() if run.status != QUEUED and lease_ran_out(run, self._clock())]

    async def mark_cancel(self, run_id: str, reason: str) -> RunRecord | None:
        """See the port."""
        self._require_open()
        run = self._runs.get(run_id)
        if run is not None and not run.is_over:
            self._marks.setdefault(run_id, reason)
        return run

    async def mark_read(self, run_ids: Sequence[str]) -> None:
        """See the port."""
        self._require_open()

    async def clear_read(self, run_id: str) -> None:
        """See the port."""
        self._require_open()

    async def mark_unread(self, run_id: str, *, unread: bool) -> None:
        """See the port."""
        self._require_open()

    async def is_unread(self, run_id: str) -> bool:
        """See the port."""
        self._require_open()
        return False

    def subscribe(self, on_wake: Callable[[Wake | None], None]) -> None:
        """See the port: there is nobody who could wake anybody."""

    async def wake(self, wake: Wake) -> None:
        """See the port."""
        self._require_open()

    async def ends(self, run_ids: Sequence[str]) -> dict[str, End]:
        """See the port."""
        self._require_open()
        found = {run_id: self._runs[run_id] for run_id in run_ids if run_id in self._runs}
        return {run_id: End(run.last_seq, run.is_over) for run_id, run in found.items()}

    def _active(self) -> list[RunRecord]:
        return [run for run in self._runs.values() if not run.is_over]

    def _standing(self, opening: Opening) -> Standing:
        run, key = opening.run, opening.idempotency
        session = None if opening.session is None else self._sessions.get(_key(opening.session))
        named = [r for r in self._runs_of(run.thread_id) if r.client_run_id == run.client_run_id]
        continues = None if run.continues is None else (r for r in self._runs.values() if r.continues == run.continues)
        return replace(
            self._standing_of(run.thread_id if session is None else session.thread_id),
            owner=self._owners.get(run.thread_id),
            session=session,
            same=self._newest_same(run.thread_id, run.client_run_id, run.input_digest),
            named=named[-1] if named else None,
            hidden=run.thread_id in self._hidden or (session is not None and session.hidden_at is not None),
            keyed=None if key is None else self._keyed(run.tenant_id, run.owner_id, key.key_digest),
            followed=self._followed(run.thread_id, run.client_run_id),
            continued=None if continues is None else next(continues, None),
            asked=self._asked(opening),
        )

    def _commit(self, run: RunRecord, drafts: Sequence[Draft], occurred_at: int) -> list[Record]:
        count = count_of(drafts)
        root_after = self._grow(run, count, opens=opens_tree(run, drafts))
        before = run.last_seq - count
        records = records_of(run.run_id, before, drafts, occurred_at, self._clock(), root_after)
        self._records[run.run_id] += records
        self._runs[run.run_id] = run
        self._keep_interrupts(run, drafts, occurred_at)
        return records

    def _now(self) -> int:
        return self._clock()

    def _run(self, run_id: str) -> RunRecord | None:
        return self._runs.get(run_id)

    def _behind(self, run_id: str, after: int, limit: int) -> list[Record]:
        records = self._records.get(run_id, [])
        start = bisect_right(records, after, key=lambda record: record.seq)
        return [_as_read(record) for record in records[start : start + limit]]

    def _runs_of(self, thread_id: str) -> list[RunRecord]:
        return [self._runs[run_id] for run_id in self._threads.get(thread_id, [])]

    def _add_contents(self, contents: dict[str, bytes]) -> None:
        for digest, data in contents.items():
            self._contents.setdefault(digest, bytes(data))

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError("The journal is closed.", code="store_closed")


def _key(session: Session) -> tuple[str, str, str]:
    return session.tenant_id, session.owner_id, session.session_id


def _as_read(record: Record) -> Record:
    """The record with an event of its own, so that no reader can change what is stored."""
    return record._replace(event=decoded(record.run_id, record.seq, record.event_type, record.payload))
