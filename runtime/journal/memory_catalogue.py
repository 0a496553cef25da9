"""The catalogue of the store in memory: the same dicts, read in another order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace

from runtime.journal import KeyedRun, Session
from runtime.journal.catalogue import Owner, Place, RunFilter, SessionChange, SessionFilter, UsedSession
from runtime.journal.drafts import Unstorable
from runtime.run import RunRecord


class MemoryCatalogue(ABC):
    """The `Catalogue` of a store that keeps its sessions, threads, runs and keys here."""

    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[tuple[str, str, str], Session] = {}
        self._owners: dict[str, tuple[str, str]] = {}
        """The owner of each thread."""
        self._threads: dict[str, list[str]] = {}
        """The runs of each thread, in the order in which they began."""
        self._runs: dict[str, RunRecord] = {}
        self._hidden: set[str] = set()
        """The threads of hidden sessions."""
        self._keys: dict[tuple[str, str, str], tuple[str, str, str]] = {}
        """Run, request digest and message of each idempotency key."""

    @abstractmethod
    def _require_open(self) -> None:
        """Raises StoreError if the store is closed."""

    async def add_session(self, session: Session) -> None:
        """See the port."""
        self._require_open()
        key = (session.tenant_id, session.owner_id, session.session_id)
        if key in self._sessions or session.thread_id in self._owners:
            raise Unstorable(f"There is a session {session.session_id} or a thread {session.thread_id} already.")
        self._sessions[key] = session
        self._owners[session.thread_id] = key[:2]

    async def change_session(self, owner: Owner, session_id: str, change: SessionChange) -> Session | None:
        """See the port."""
        self._require_open()
        if (session := self._shown(owner, session_id)) is None:
            return None
        return self._store(_changed(session, change))

    async def hide_session(self, owner: Owner, session_id: str, at: int) -> list[RunRecord] | None:
        """See the port."""
        self._require_open()
        if (session := self._shown(owner, session_id)) is None:
            return None
        self._store(replace(session, hidden_at=at))
        self._hidden.add(session.thread_id)
        runs = [self._runs[run_id] for run_id in self._threads.get(session.thread_id, [])]
        return [run for run in runs if not run.is_over]

    async def list_sessions(self, owner: Owner, before: Place | None, limit: int) -> list[Session]:
        """See the port."""
        self._require_open()
        shown = {
            Place(session.created_at, session.session_id): session
            for (tenant_id, owner_id, _), session in self._sessions.items()
            if (tenant_id, owner_id) == (owner.tenant_id, owner.owner_id) and session.hidden_at is None
        }
        return [shown[place] for place in page_of(shown, before, limit)]

    async def list_used_sessions(
        self, owner: Owner, wanted: SessionFilter, before: Place | None, limit: int
    ) -> list[UsedSession]:
        """See the port."""
        self._require_open()
        used = [
            UsedSession(session, self._last_run_at(session.thread_id))
            for (tenant_id, owner_id, _), session in self._sessions.items()
            if (tenant_id, owner_id) == (owner.tenant_id, owner.owner_id)
            and session.hidden_at is None
            and wanted.agent_id in (None, session.agent_id)
            and (wanted.archived or session.archived_at is None)
        ]
        shown = {each.place: each for each in used}
        return [shown[place] for place in page_of(shown, before, limit)]

    def _last_run_at(self, thread_id: str) -> int | None:
        return max((self._runs[run_id].created_at for run_id in self._threads.get(thread_id, [])), default=None)

    async def list_runs(self, owner: Owner, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        """See the port."""
        self._require_open()
        shown = {
            Place(run.created_at, run.run_id): run
            for run in self._runs.values()
            if (run.tenant_id, run.owner_id) == (owner.tenant_id, owner.owner_id)
            and wanted.session_id in (None, run.session_id)
            and (wanted.statuses is None or run.status in wanted.statuses)
            and not self._is_below_hidden(run)
        }
        return [shown[place] for place in page_of(shown, before, limit)]

    async def list_every_run(self, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        """See the port."""
        self._require_open()
        shown = {
            Place(run.created_at, run.run_id): run
            for run in self._runs.values()
            if wanted.session_id in (None, run.session_id)
            and (wanted.statuses is None or run.status in wanted.statuses)
        }
        return [shown[place] for place in page_of(shown, before, limit)]

    async def find_visible_run(self, run_id: str) -> RunRecord | None:
        """See the port."""
        self._require_open()
        run = self._runs.get(run_id)
        return None if run is None or self._is_below_hidden(run) else run

    async def runs_of_tree(self, root_run_id: str) -> list[RunRecord]:
        """See the port."""
        self._require_open()
        return [run for run in self._runs.values() if run.root_run_id == root_run_id]

    async def find_keyed(self, owner: Owner, key_digest: str) -> KeyedRun | None:
        """See the port."""
        self._require_open()
        return self._keyed(owner.tenant_id, owner.owner_id, key_digest)

    def _keyed(self, tenant_id: str, owner_id: str, key_digest: str) -> KeyedRun | None:
        used = self._keys.get((tenant_id, owner_id, key_digest))
        return None if used is None else KeyedRun(self._runs[used[0]], used[1], used[2])

    def _is_below_hidden(self, run: RunRecord) -> bool:
        root = self._runs.get(run.root_run_id)
        return root is not None and root.thread_id in self._hidden

    def _shown(self, owner: Owner, session_id: str) -> Session | None:
        session = self._sessions.get((owner.tenant_id, owner.owner_id, session_id))
        return None if session is None or session.hidden_at is not None else session

    def _give_default_title(self, run: RunRecord, title: str | None) -> None:
        session = self._sessions.get((run.tenant_id, run.owner_id, run.session_id or ""))
        if title is not None and session is not None and session.default_title is None:
            self._store(replace(session, default_title=title))

    def _store(self, session: Session) -> Session:
        self._sessions[session.tenant_id, session.owner_id, session.session_id] = session
        return session


def _changed(session: Session, change: SessionChange) -> Session:
    retitles = change.retitle and not (change.if_untitled and session.title is not None)
    archived_at = session.archived_at
    if change.archived is not None:
        archived_at = (archived_at or change.at) if change.archived else None
    return replace(
        session,
        title=change.title if retitles else session.title,
        agent_id=change.agent_id or session.agent_id,
        archived_at=archived_at,
        changed_at=session.changed_at if change.at is None else change.at,
    )


def page_of(places: Iterable[Place], before: Place | None, limit: int) -> list[Place]:
    """The newest of these places that stand behind one."""
    behind = (place for place in places if before is None or place < before)
    return sorted(behind, reverse=True)[:limit]
