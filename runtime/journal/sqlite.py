"""The journal in a SQLite file: for one process that needs nothing else.

WAL, a commit is on the disk before anybody sees it, one thread writes in groups, a few connections read. An
operating system lock on `PATH.lock` keeps a second process out, so that nobody else has runs at work in this store.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from runtime.errors import ConfigurationError, StoreError
from runtime.events import Event, Record
from runtime.journal import Begun, Opening, Session, Started
from runtime.journal.changes import lease_ran_out
from runtime.journal.drafts import drafts_of
from runtime.journal.group import CommitThread
from runtime.journal.inbox import Part, Starting
from runtime.journal.leases import Lease
from runtime.journal.lock import FileLock
from runtime.journal.migrate import migrate_sqlite, migrations, require_current, sqlite_version
from runtime.journal.sqlite_aliases import SqliteAliases
from runtime.journal.sqlite_artifacts import SqliteArtifacts
from runtime.journal.sqlite_catalogue import SqliteCatalogue
from runtime.journal.sqlite_connection import FOREIGN, SYNCHRONOUS, connect_writer, tune, unopened
from runtime.journal.sqlite_deliveries import SqliteDeliveries
from runtime.journal.sqlite_inbox import SqliteInbox
from runtime.journal.sqlite_interrupts import SqliteInterrupts
from runtime.journal.sqlite_media import SqliteMedia
from runtime.journal.sqlite_reader import SqliteReader
from runtime.journal.sqlite_retention import SqliteRetention
from runtime.journal.sqlite_trees import SqliteTrees
from runtime.journal.sqlite_writer import SqliteWriter
from runtime.journal.wakes import End, Wake
from runtime.run import QUEUED, RunRecord

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Opened:
    """What an open store consists of; `resources` closes it all, in the right order."""

    reader: SqliteReader
    writer: SqliteWriter
    thread: CommitThread
    resources: ExitStack


class SqliteJournal(
    SqliteCatalogue,
    SqliteAliases,
    SqliteArtifacts,
    SqliteMedia,
    SqliteRetention,
    SqliteTrees,
    SqliteInterrupts,
    SqliteDeliveries,
    SqliteInbox,
):
    """A `Journal` in the file `path`, whose folder must exist.

    `synchronous` `full` keeps every commit over a power cut, `normal` may lose the last ones (never the order).
    Without `auto_migrate`, `open` refuses a store with pending migrations.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: str = "full",
        auto_migrate: bool = True,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ):
        if synchronous not in SYNCHRONOUS:
            raise ConfigurationError(f"synchronous is {' or '.join(SYNCHRONOUS)}, not {synchronous!r}.")
        self._path = Path(path).resolve()
        self._synchronous = synchronous
        self._auto_migrate = auto_migrate
        self._clock = clock
        self._store: Opened | None = None

    async def open(self) -> None:
        """See the port. Raises also ConfigurationError for a path or file that cannot be a store."""
        if self._store is None:
            await asyncio.to_thread(self._open)

    async def close(self) -> None:
        """See the port."""
        if self._store is not None:
            store, self._store = self._store, None
            await asyncio.to_thread(store.resources.close)

    async def begin_run(self, opening: Opening) -> Begun:
        """See the port."""
        drafts = drafts_of(opening.events, packed=False)
        store = self._opened()
        return await store.thread.submit(partial(store.writer.begin_run, opening, drafts), len(drafts))

    async def append(
        self, run_id: str, fence: int, expected_seq: int, events: Sequence[Event], occurred_at: int
    ) -> list[Record]:
        """See the port."""
        drafts = drafts_of(events)
        store = self._opened()
        work = partial(store.writer.append, run_id, fence, expected_seq, drafts, occurred_at)
        return await store.thread.submit(work, len(drafts))

    async def put_contents(self, contents: dict[str, bytes]) -> None:
        """See the port."""
        store = self._opened()
        await store.thread.submit(partial(store.writer.put_contents, dict(contents)))

    async def content(self, digest: str) -> bytes | None:
        """See the port."""
        return await self._opened().reader.content(digest)

    async def find_run(self, run_id: str) -> RunRecord | None:
        """See the port."""
        return await self._opened().reader.run(run_id)

    async def find_session(self, tenant_id: str, owner_id: str, session_id: str) -> Session | None:
        """See the port."""
        return await self._opened().reader.session(tenant_id, owner_id, session_id)

    async def active_runs(self) -> list[RunRecord]:
        """See the port."""
        return await self._opened().reader.active_runs()

    async def read(self, run_id: str, after: int, limit: int) -> list[Record]:
        """See the port."""
        return await self._opened().reader.events(run_id, after, limit)

    async def read_thread(
        self, thread_id: str, after: int, up_to: int | None = None
    ) -> list[tuple[RunRecord, list[Record]]]:
        """See the port."""
        return await self._opened().reader.thread(thread_id, after, up_to)

    async def start_queued(self, starting: Starting) -> Started | None:
        """See the port."""
        drafts = drafts_of(starting.events, packed=False)
        store = self._opened()
        return await store.thread.submit(partial(store.writer.start_queued, starting, drafts), len(drafts))

    async def append_all(self, parts: Sequence[Part], occurred_at: int) -> list[list[Record]] | None:
        """See the port."""
        drafted = [(part, drafts_of(part.events)) for part in parts]
        store = self._opened()
        events = sum(len(drafts) for _, drafts in drafted)
        return await store.thread.submit(partial(store.writer.append_all, drafted, occurred_at), events)

    # --- leases and wakes: the lock keeps every other process out -------------------------------------------------

    @property
    def exclusive(self) -> bool:
        """See the port."""
        return True

    async def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
        """See the port."""
        store = self._opened()
        return await store.thread.submit(partial(store.writer.renew, executor_instance_id, list(run_ids), lease_s))

    async def take_over(self, run_id: str, executor_instance_id: str, lease_s: float) -> RunRecord | None:
        """See the port."""
        store = self._opened()
        return await store.thread.submit(partial(store.writer.take_over, run_id, executor_instance_id, lease_s))

    async def hand_over(self, run_id: str, fence: int, for_s: float = 0.0) -> bool:
        """See the port."""
        store = self._opened()
        return await store.thread.submit(partial(store.writer.hand_over, run_id, fence, for_s))

    async def handed_over(self) -> list[RunRecord]:
        """See the port."""
        active = await self._opened().reader.active_runs()
        left = [run for run in active if run.status != QUEUED and run.executor_instance_id is None]
        return [run for run in left if not lease_ran_out(run, self._clock())]

    async def lost_runs(self) -> list[RunRecord]:
        """See the port."""
        active = await self._opened().reader.active_runs()
        return [run for run in active if run.status != QUEUED and lease_ran_out(run, self._clock())]

    async def mark_cancel(self, run_id: str, reason: str) -> RunRecord | None:
        """See the port."""
        store = self._opened()
        return await store.thread.submit(partial(store.writer.mark_cancel, run_id, reason))

    async def mark_read(self, run_ids: Sequence[str]) -> None:
        """See the port."""
        self._opened()

    async def clear_read(self, run_id: str) -> None:
        """See the port."""
        self._opened()

    async def mark_unread(self, run_id: str, *, unread: bool) -> None:
        """See the port."""
        self._opened()

    async def is_unread(self, run_id: str) -> bool:
        """See the port."""
        self._opened()
        return False

    def subscribe(self, on_wake: Callable[[Wake | None], None]) -> None:
        """See the port: no other process can wake anybody here."""

    async def wake(self, wake: Wake) -> None:
        """See the port."""
        self._opened()

    async def ends(self, run_ids: Sequence[str]) -> dict[str, End]:
        """See the port."""
        return await self._opened().reader.ends(run_ids)

    async def healthy(self) -> None:
        """See the port."""
        store = self._opened()
        if not store.thread.alive:
            raise StoreError("The journal's writer has stopped.")
        await store.reader.ping()

    async def _ask(self, question: Callable[[sqlite3.Connection], R]) -> R:
        return await self._opened().reader.ask(question)

    async def _change(self, change: Callable[[sqlite3.Connection], R]) -> R:
        store = self._opened()
        return await store.thread.submit(partial(store.writer.change, change))

    def _open(self) -> None:
        with ExitStack() as resources:
            lock = FileLock(self._path.with_name(self._path.name + ".lock"))
            resources.callback(lock.release)
            connection = connect_writer(self._path)
            resources.callback(connection.close)
            self._prepare(connection)
            reader = SqliteReader(self._path)
            resources.callback(reader.close)
            writer = SqliteWriter(connection, self._clock)
            thread = CommitThread(writer.commit, "journal-write")
            resources.callback(thread.stop)
            self._store = Opened(reader, writer, thread, resources.pop_all())

    def _prepare(self, connection: sqlite3.Connection) -> None:
        known = migrations("sqlite")
        try:
            # Asked before anything is changed: the file may belong to somebody else.
            version = sqlite_version(connection)
            if not self._auto_migrate:
                require_current(version, known)
            tune(connection, self._synchronous)
            migrate_sqlite(connection, known)
        except FOREIGN as error:
            raise unopened(self._path, error) from error

    def _opened(self) -> Opened:
        if self._store is None:
            raise StoreError("The journal is not open.", code="store_closed")
        return self._store
