"""The inbox of the store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from runtime.errors import AppendConflict, FenceLost
from runtime.events import Record
from runtime.journal import Started
from runtime.journal.changes import Standing, advance, is_repeat, may_start, place_in_line, started
from runtime.journal.drafts import Draft, drafts_of
from runtime.journal.inbox import Part, Starting
from runtime.run import QUEUED, RunRecord


class MemoryInbox(ABC):
    """The `Inbox` of a store that knows its runs and commits facts."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[str, RunRecord] = {}

    @abstractmethod
    def _require_open(self) -> None:
        """Raises StoreError if the store is closed."""

    @abstractmethod
    def _now(self) -> int:
        """The store's clock."""

    @abstractmethod
    def _runs_of(self, thread_id: str) -> list[RunRecord]:
        """The runs of a thread, in the order in which they were stored."""

    @abstractmethod
    def _commit(self, run: RunRecord, drafts: Sequence[Draft], occurred_at: int) -> list[Record]:
        """Keep the run and its new facts, the last of which is its last."""

    @abstractmethod
    def _require_unasked(self, drafts: Sequence[Draft]) -> None:
        """Raises Unstorable if one of the interrupts that these raise is there already."""

    @abstractmethod
    def _add_contents(self, contents: dict[str, bytes]) -> None:
        """Keep blobs."""

    async def queued_runs(self, thread_id: str) -> list[RunRecord]:
        """See the port."""
        self._require_open()
        return self._in_line(thread_id)

    async def next_queued(self, thread_id: str | None = None) -> list[RunRecord]:
        """See the port."""
        self._require_open()
        waiting = [run.thread_id for run in self._runs.values() if run.status == QUEUED]
        threads = [each for each in dict.fromkeys(waiting) if thread_id in (None, each)]
        return [self._in_line(each)[0] for each in threads if self._at_work(each) is None]

    async def start_queued(self, starting: Starting) -> Started | None:
        """See the port."""
        self._require_open()
        run, drafts = self._runs.get(starting.run_id), drafts_of(starting.events)
        if run is None or not may_start(run, starting, self._standing_of(run.thread_id)):
            return None
        self._require_unasked(drafts)
        self._add_contents(starting.contents)
        begun = started(run, starting, drafts, self._now())
        return Started(begun, self._commit(begun, drafts, starting.occurred_at))

    async def append_all(self, parts: Sequence[Part], occurred_at: int) -> list[list[Record]] | None:
        """See the port."""
        self._require_open()
        steps: list[tuple[RunRecord, list[Draft]]] = []
        for part in parts:
            run, drafts = self._runs.get(part.run_id), drafts_of(part.events)
            try:
                if run is None or is_repeat(run, run.last_seq, part.fence, part.expected_seq, len(part.events)):
                    return None
            except (FenceLost, AppendConflict):
                return None
            self._require_unasked(drafts)
            steps.append((advance(run, part.expected_seq + len(part.events), drafts, occurred_at), drafts))
        return [self._commit(run, drafts, occurred_at) for run, drafts in steps]

    def _standing_of(self, thread_id: str) -> Standing:
        """Who is at work on a thread and who waits for it, and where it stands."""
        line, runs = self._in_line(thread_id), self._runs_of(thread_id)
        return Standing(
            owner=None,
            session=None,
            same=None,
            named=None,
            active=self._at_work(thread_id),
            position=max((run.base + run.last_seq for run in runs), default=0),
            first_queued=line[0] if line else None,
            queued=len(line),
        )

    def _in_line(self, thread_id: str) -> list[RunRecord]:
        return sorted((run for run in self._runs_of(thread_id) if run.status == QUEUED), key=place_in_line)

    def _at_work(self, thread_id: str) -> RunRecord | None:
        return next((run for run in self._runs_of(thread_id) if not run.is_over and run.status != QUEUED), None)
