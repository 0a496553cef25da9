"""The aliases of a PostgreSQL store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple

from runtime.errors import NotFound
from runtime.journal.aliases import Alias
from runtime.journal.changes import answered_before
from runtime.journal.postgres_begin import standing_runs
from runtime.journal.postgres_connection import Pool, patiently, transaction
from runtime.journal.postgres_rows import run_of
from runtime.journal.queries import load
from runtime.run import RunRecord

_SQL = load("postgres")


class PostgresAliases(ABC):
    """The `Aliases` of a store that has a `_pool`."""

    @property
    @abstractmethod
    def _pool(self) -> Pool:
        """The open store's connections. Raises StoreError if it is closed."""

    async def add_alias(self, alias: Alias) -> RunRecord:
        """See the port. The thread is held as by a beginning: a request has one answer, whoever asks where."""
        return await patiently(lambda: self._add(alias))

    async def find_named_run(self, thread_id: str, client_run_id: str) -> RunRecord | None:
        """See the port."""
        rows = await self._pool.fetch(_SQL["find_named_run"], thread_id, client_run_id)
        return run_of(rows[0]) if rows else None

    async def _add(self, alias: Alias) -> RunRecord:
        async with self._pool.connection() as connection, transaction(connection):
            await connection.fetch(_SQL["hold_thread"], alias.thread_id)
            rows = await connection.fetch(_SQL["run_of_thread"], alias.run_id, alias.thread_id)
            if not rows:
                raise NotFound
            found = await standing_runs(connection, alias.thread_id, alias.client_run_id, alias.input_digest)
            answer = answered_before(alias, found.same, found.followed)
            if answer is None:
                await connection.fetch(_SQL["put_alias"], *astuple(alias))
        return answer or run_of(rows[0])
