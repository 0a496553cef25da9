"""The catalogue of a PostgreSQL store: each question and each change is one statement, but for hiding a session."""

from __future__ import annotations

from abc import ABC, abstractmethod

from runtime.journal import KeyedRun, Session
from runtime.journal.catalogue import Owner, Place, RunFilter, SessionChange, SessionFilter, UsedSession
from runtime.journal.postgres_connection import Pool, transaction
from runtime.journal.postgres_rows import run_of, session_of
from runtime.journal.queries import load
from runtime.run import RunRecord

_SQL = load("postgres")
_FIRST = Place(2**63 - 1, "")


class PostgresCatalogue(ABC):
    """The `Catalogue` of a store that has a `_pool`."""

    @property
    @abstractmethod
    def _pool(self) -> Pool:
        """The open store's connections. Raises StoreError if it is closed."""

    async def add_session(self, session: Session) -> None:
        """See the port."""
        new = session
        key, told = (new.tenant_id, new.owner_id, new.session_id), (new.title, new.created_at, new.default_title)
        await self._pool.fetch_once(_SQL["add_session"], *key, new.thread_id, new.agent_id, *told)

    async def change_session(self, owner: Owner, session_id: str, change: SessionChange) -> Session | None:
        """See the port."""
        key, title = (owner.tenant_id, owner.owner_id, session_id), (change.title, change.retitle)
        values = (*key, change.agent_id, *title, change.archived, change.at, change.if_untitled)
        rows = await self._pool.fetch(_SQL["change_session"], *values)
        return session_of(rows[0]) if rows else None

    async def hide_session(self, owner: Owner, session_id: str, at: int) -> list[RunRecord] | None:
        """See the port. The thread is held as by a beginning: a run is either named here or does not begin."""
        key = (owner.tenant_id, owner.owner_id, session_id)
        async with self._pool.connection() as connection, transaction(connection):
            await connection.fetch(_SQL["hold_session"], *key)
            hidden = await connection.fetch(_SQL["hide_session"], *key, at)
            if not hidden:
                return None
            rows = await connection.fetch(_SQL["active_run_of_thread"], hidden[0]["thread_id"])
        return [run_of(row) for row in rows]

    async def list_sessions(self, owner: Owner, before: Place | None, limit: int) -> list[Session]:
        """See the port."""
        values = (owner.tenant_id, owner.owner_id, *(before or _FIRST), limit)
        return [session_of(row) for row in await self._pool.fetch(_SQL["list_sessions"], *values)]

    async def list_used_sessions(
        self, owner: Owner, wanted: SessionFilter, before: Place | None, limit: int
    ) -> list[UsedSession]:
        """See the port."""
        values = (owner.tenant_id, owner.owner_id, *(before or _FIRST), limit, wanted.agent_id, wanted.archived)
        rows = await self._pool.fetch(_SQL["list_used_sessions"], *values)
        return [UsedSession(session_of(row), row["last_run_at"]) for row in rows]

    async def list_runs(self, owner: Owner, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        """See the port."""
        statuses = None if wanted.statuses is None else sorted(wanted.statuses)
        values = (owner.tenant_id, owner.owner_id, *(before or _FIRST), limit, statuses)
        if wanted.session_id is None:
            rows = await self._pool.fetch(_SQL["list_runs"], *values)
        else:
            rows = await self._pool.fetch(_SQL["list_runs_of_session"], *values, wanted.session_id)
        return [run_of(row) for row in rows]

    async def list_every_run(self, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        """See the port."""
        statuses = None if wanted.statuses is None else sorted(wanted.statuses)
        values = (*(before or _FIRST), limit, statuses, wanted.session_id)
        return [run_of(row) for row in await self._pool.fetch(_SQL["list_every_run"], *values)]

    async def find_visible_run(self, run_id: str) -> RunRecord | None:
        """See the port."""
        rows = await self._pool.fetch(_SQL["find_visible_run"], run_id)
        return run_of(rows[0]) if rows else None

    async def runs_of_tree(self, root_run_id: str) -> list[RunRecord]:
        """See the port."""
        return [run_of(row) for row in await self._pool.fetch(_SQL["runs_of_tree"], root_run_id)]

    async def find_keyed(self, owner: Owner, key_digest: str) -> KeyedRun | None:
        """See the port."""
        rows = await self._pool.fetch(_SQL["find_keyed"], owner.tenant_id, owner.owner_id, key_digest)
        return KeyedRun(run_of(rows[0]), rows[0]["request_digest"], rows[0]["message_id"]) if rows else None
