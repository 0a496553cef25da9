"""How facts get fewer and go in the store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from runtime.errors import ThreadBusy
from runtime.events import Record
from runtime.journal import Session
from runtime.journal.artifacts import Artifact
from runtime.journal.catalogue import Owner
from runtime.journal.compaction import compacted
from runtime.journal.interrupts import StoredInterrupt
from runtime.journal.media import Medium
from runtime.journal.retention import NOTHING, SWEEP_RUNS, Removed
from runtime.run import RunRecord

K = TypeVar("K")
V = TypeVar("V")


class MemoryRetention(ABC):
    """The `Retention` of a store that keeps everything in dicts, which its other parts name."""

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[str, list[Record]] = {}
        self._compacted: set[str] = set()
        self._swept: set[str] = set()
        self._marks: dict[str, str] = {}
        self._sessions: dict[tuple[str, str, str], Session]
        self._owners: dict[str, tuple[str, str]]
        self._threads: dict[str, list[str]]
        self._runs: dict[str, RunRecord]
        self._hidden: set[str]
        self._keys: dict[tuple[str, str, str], tuple[str, str, str]]
        self._aliases: dict[tuple[str, str], dict[str, str]]
        self._contents: dict[str, bytes]
        self._artifacts: dict[str, Artifact]
        self._media: dict[str, Medium]
        self._trees: dict[str, int]
        self._interrupts: dict[str, tuple[StoredInterrupt, bytes]]

    @abstractmethod
    def _require_open(self) -> None:
        """Raises StoreError if the store is closed."""

    @abstractmethod
    def _named_blobs(self) -> set[str]:
        """The digests that artifacts and media name."""

    async def uncompacted_runs(self, ended_before: int, limit: int, without: Collection[str] = ()) -> list[str]:
        """See the port."""
        self._require_open()
        ended = [
            (run.finished_at, run.run_id)
            for run in self._runs.values()
            if run.finished_at is not None
            and run.finished_at < ended_before
            and run.expired_at is None
            and run.run_id not in self._compacted
            and run.run_id not in without
        ]
        return [run_id for _, run_id in sorted(ended)[:limit]]

    async def compact(self, run_id: str, at: int) -> int:
        """See the port."""
        self._require_open()
        run = self._runs.get(run_id)
        if run is None or not run.is_over or run.expired_at is not None or run_id in self._compacted:
            return 0
        before = self._records[run_id]
        self._records[run_id] = compacted(before)
        self._compacted.add(run_id)
        return len(before) - len(self._records[run_id])

    async def expire(self, idle_before: int, at: int, limit: int, without: Collection[str] = ()) -> Removed:
        """See the port."""
        self._require_open()
        roots = [thread_id for thread_id, ids in self._threads.items() if any(self._is_root(run) for run in ids)]
        idle = [thread_id for thread_id in roots if self._is_idle(thread_id, idle_before, without)][:limit]
        if not idle:
            return NOTHING
        threads = self._with_below(idle)
        runs = self._runs_in(threads)
        removed = self._forget_names(threads, runs)
        for run_id in runs:
            self._runs[run_id] = replace(self._runs[run_id], expired_at=at)
        return Removed({"threads": len(threads), "runs": len(runs)}) + removed + self._remove_contents(runs, removed)

    async def sweep(self, at: int) -> Removed:
        """See the port."""
        self._require_open()
        due = [run.run_id for run in self._runs.values() if run.expired_at and run.run_id not in self._swept]
        events = 0
        for run_id in due[:SWEEP_RUNS]:
            events += len(self._records[run_id])
            self._records[run_id] = []
            self._swept.add(run_id)
        return Removed({"swept_runs": min(len(due), SWEEP_RUNS), "events": events})

    async def threads_of_session(self, owner: Owner, session_id: str) -> list[str]:
        """See the port."""
        self._require_open()
        session = self._sessions.get((owner.tenant_id, owner.owner_id, session_id))
        return [] if session is None else self._with_below([session.thread_id])

    async def threads_of_owner(self, owner: Owner) -> list[str]:
        """See the port."""
        self._require_open()
        return [id_ for id_, of in self._owners.items() if of == (owner.tenant_id, owner.owner_id)]

    async def sessions_of_owner(self, owner: Owner) -> list[Session]:
        """See the port."""
        self._require_open()
        mine = [each for key, each in self._sessions.items() if key[:2] == (owner.tenant_id, owner.owner_id)]
        return sorted(mine, key=lambda session: (session.created_at, session.session_id))

    async def erase(self, thread_ids: Sequence[str]) -> Removed:
        """See the port."""
        self._require_open()
        threads = [thread_id for thread_id in thread_ids if thread_id in self._owners]
        runs = self._runs_in(threads)
        for run_id in runs:
            if not self._runs[run_id].is_over:
                raise ThreadBusy(details={"run_id": run_id})
        removed = self._forget_names(threads, runs)
        events = sum(len(self._records.pop(run_id)) for run_id in runs)
        snapshots = {name for run_id in runs for name in self._snapshots_of(run_id)}
        for run_id in runs:
            del self._runs[run_id]
            self._marks.pop(run_id, None)
            self._trees.pop(run_id, None)
        self._compacted -= set(runs)
        self._swept -= set(runs)
        for thread_id in threads:
            del self._owners[thread_id]
            self._threads.pop(thread_id, None)
        counts = Removed({"threads": len(threads), "runs": len(runs), "events": events})
        return counts + removed + self._remove_unnamed(snapshots | removed.digests)

    # --- what belongs together ------------------------------------------------------------------------------------

    def _is_root(self, run_id: str) -> bool:
        run = self._runs[run_id]
        return run.root_run_id == run_id and run.expired_at is None

    def _is_idle(self, thread_id: str, idle_before: int, without: Collection[str]) -> bool:
        runs = [self._runs[run_id] for run_id in self._runs_in(self._with_below([thread_id]))]
        ended = (run.finished_at is not None and run.finished_at < idle_before for run in runs)
        return all(ended) and not any(run.run_id in without for run in runs)

    def _with_below(self, thread_ids: Sequence[str]) -> list[str]:
        roots = set(self._runs_in(thread_ids))
        below = [run.thread_id for run in self._runs.values() if run.root_run_id in roots]
        return list(dict.fromkeys([*thread_ids, *below]))

    def _runs_in(self, thread_ids: Sequence[str]) -> list[str]:
        return [run_id for thread_id in thread_ids for run_id in self._threads.get(thread_id, [])]

    # --- removing -------------------------------------------------------------------------------------------------

    def _forget_names(self, thread_ids: Collection[str], run_ids: Collection[str]) -> Removed:
        threads, runs = set(thread_ids), set(run_ids)
        artifacts = _take(self._artifacts, lambda artifact: artifact.thread_id in threads)
        media = _take(self._media, lambda medium: medium.thread_id in threads)
        aliases = {key: named for key, named in self._aliases.items() if key[0] in threads}
        for key in aliases:
            del self._aliases[key]
        self._hidden -= threads
        counts = {
            "sessions": len(_take(self._sessions, lambda session: session.thread_id in threads)),
            "aliases": sum(map(len, aliases.values())),
            "idempotency_keys": len(_take(self._keys, lambda told: told[0] in runs)),
            "artifacts": len(artifacts),
            "media": len(media),
            "interrupts": len(_take(self._interrupts, lambda its: its[0].thread_id in threads)),
        }
        blobs = frozenset(each.digest for each in (*artifacts, *media))
        return Removed(counts, blobs - self._named_blobs())

    def _snapshots_of(self, run_id: str) -> set[str]:
        run = self._runs[run_id]
        names = (run.agent_snapshot_checksum, run.context_snapshot_checksum, run.request_checksum)
        return {name for name in names if name is not None}

    def _remove_contents(self, run_ids: Sequence[str], removed: Removed) -> Removed:
        snapshots = {name for run_id in run_ids for name in self._snapshots_of(run_id)}
        return self._remove_unnamed(snapshots | removed.digests)

    def _remove_unnamed(self, digests: Collection[str]) -> Removed:
        named = self._named_blobs()
        for run in self._runs.values():
            if run.expired_at is None:
                named |= self._snapshots_of(run.run_id)
        gone = [name for name in set(digests) - named if self._contents.pop(name, None) is not None]
        return Removed({"contents": len(gone)})


def _take(entries: dict[K, V], wanted: Callable[[V], bool]) -> list[V]:
    """Take the wanted entries out and return them."""
    taken = {key: value for key, value in entries.items() if wanted(value)}
    for key in taken:
        del entries[key]
    return list(taken.values())
