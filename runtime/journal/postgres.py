"""The store in PostgreSQL: for many processes and hosts that share their runs.

The tables are the authority. One connection writes in groups, one beats, one listens, a few serve whoever asks; any
process may begin, follow and cancel any run, and constraints and fences keep one executor on each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from runtime.errors import StoreError
from runtime.events import Event, Record
from runtime.journal import Begun, Opening, Queued, Session, Started
from runtime.journal.drafts import drafts_of
from runtime.journal.leases import Lease
from runtime.journal.postgres_aliases import PostgresAliases
from runtime.journal.postgres_artifacts import PostgresArtifacts
from runtime.journal.postgres_batch import Append, AtHand
from runtime.journal.postgres_begin import Beginning, put_contents
from runtime.journal.postgres_catalogue import PostgresCatalogue
from runtime.journal.postgres_connection import (
    CONTROL_S,
    FOREIGN,
    Link,
    Pool,
    PostgresAddress,
    address_of,
    connect,
    hang_up,
    patiently,
    transaction,
    unopened,
)
from runtime.journal.postgres_deliveries import PostgresDeliveries
from runtime.journal.postgres_inbox import PostgresInbox
from runtime.journal.postgres_interrupts import PostgresInterrupts
from runtime.journal.postgres_leases import PostgresLeases
from runtime.journal.postgres_media import PostgresMedia
from runtime.journal.postgres_reader import PostgresReader
from runtime.journal.postgres_retention import PostgresRetention
from runtime.journal.postgres_schema import keep_partitions, migrate, require_migrated
from runtime.journal.postgres_trees import PostgresTrees
from runtime.journal.postgres_wakes import Listener, Sender, sender_name
from runtime.journal.postgres_writer import PostgresWriter
from runtime.journal.wakes import End, Wake
from runtime.run import RunRecord

R = TypeVar("R")

UPKEEP_S = 3600.0
"""How often an open store looks after its partitions and what others left."""

log = logging.getLogger("agui_bridge.journal")


@dataclass(frozen=True, slots=True)
class _Open:
    """What an open store consists of; `resources` closes it all, in the right order."""

    pool: Pool
    writer: PostgresWriter
    reader: PostgresReader
    leases: PostgresLeases
    sender: Sender
    resources: AsyncExitStack


class PostgresStore(
    PostgresCatalogue,
    PostgresAliases,
    PostgresArtifacts,
    PostgresMedia,
    PostgresRetention,
    PostgresTrees,
    PostgresInterrupts,
    PostgresDeliveries,
    PostgresInbox,
):
    """A `Store` at a `postgresql://` URL (see `address_of`). Raises ConfigurationError for one that is none.

    Without `auto_migrate`, `open` refuses a store with pending migrations.
    """

    def __init__(self, url: str, *, auto_migrate: bool = True):
        self._address = address_of(url)
        self._auto_migrate = auto_migrate
        self._on_wake: Callable[[Wake | None], None] | None = None
        self._store: _Open | None = None
        self._at_work: set[asyncio.Task[Any]] = set()

    @property
    def address(self) -> PostgresAddress:
        """Where it is, as it may be shown."""
        return self._address

    async def open(self) -> None:
        """See the port. Raises also ConfigurationError for a database that cannot be a store, StoreError."""
        if self._store is None:
            try:
                async with AsyncExitStack() as resources:
                    self._store = await self._open(resources)
            except FOREIGN as error:
                raise unopened(self._address, error) from error

    async def close(self) -> None:
        """See the port."""
        if self._store is not None:
            store, self._store = self._store, None
            if self._at_work:
                await asyncio.wait(self._at_work)
            await store.resources.aclose()

    # --- the journal ----------------------------------------------------------------------------------------------

    async def begin_run(self, opening: Opening) -> Begun:
        """See the port."""
        store = self._opened()
        beginning = Beginning(store.pool, opening, drafts_of(opening.events, packed=False))
        begun = await self._finish(patiently(beginning.attempt))
        if isinstance(begun, Started | Queued):
            store.writer.keep(AtHand(begun.run, begun.run.last_seq, begun.run.parent_run_id is not None))
        return begun

    async def append(
        self, run_id: str, fence: int, expected_seq: int, events: Sequence[Event], occurred_at: int
    ) -> list[Record]:
        """See the port."""
        drafts = drafts_of(events)
        return await self._opened().writer.submit(Append(run_id, fence, expected_seq, drafts, occurred_at))

    async def put_contents(self, contents: dict[str, bytes]) -> None:
        """See the port."""
        pool = self._opened().pool

        async def put() -> None:
            async with pool.connection() as connection, transaction(connection):
                await put_contents(connection, contents)

        await self._finish(patiently(put))

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

    async def healthy(self) -> None:
        """See the port."""
        store = self._opened()
        if not store.writer.alive:
            raise StoreError("The journal's writer has stopped.")
        await store.reader.ping()

    # --- leases ---------------------------------------------------------------------------------------------------

    @property
    def exclusive(self) -> bool:
        """See the port: other processes may have it open."""
        return False

    async def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
        """See the port."""
        return await self._opened().leases.renew(executor_instance_id, run_ids, lease_s)

    async def take_over(self, run_id: str, executor_instance_id: str, lease_s: float) -> RunRecord | None:
        """See the port."""
        return await self._opened().leases.take_over(run_id, executor_instance_id, lease_s)

    async def hand_over(self, run_id: str, fence: int, for_s: float = 0.0) -> bool:
        """See the port."""
        return await self._opened().leases.hand_over(run_id, fence, for_s)

    async def handed_over(self) -> list[RunRecord]:
        """See the port."""
        return await self._opened().leases.handed_over()

    async def lost_runs(self) -> list[RunRecord]:
        """See the port."""
        return await self._opened().leases.lost_runs()

    async def mark_cancel(self, run_id: str, reason: str) -> RunRecord | None:
        """See the port."""
        return await self._opened().leases.mark_cancel(run_id, reason)

    async def mark_read(self, run_ids: Sequence[str]) -> None:
        """See the port."""
        await self._opened().leases.mark_read(run_ids)

    async def clear_read(self, run_id: str) -> None:
        """See the port."""
        await self._opened().leases.clear_read(run_id)

    async def mark_unread(self, run_id: str, *, unread: bool) -> None:
        """See the port."""
        await self._opened().leases.mark_unread(run_id, unread=unread)

    async def is_unread(self, run_id: str) -> bool:
        """See the port."""
        return await self._opened().leases.is_unread(run_id)

    # --- wakes ----------------------------------------------------------------------------------------------------

    def subscribe(self, on_wake: Callable[[Wake | None], None]) -> None:
        """See the port."""
        self._on_wake = on_wake

    async def wake(self, wake: Wake) -> None:
        """See the port. Returns at once: what cannot be sent is dropped."""
        self._opened().sender.send(wake)

    async def ends(self, run_ids: Sequence[str]) -> dict[str, End]:
        """See the port."""
        return await self._opened().reader.ends(run_ids)

    # --- opening --------------------------------------------------------------------------------------------------

    async def _open(self, resources: AsyncExitStack) -> _Open:
        connection = await connect(self._address, "open")
        try:
            async with transaction(connection):
                await (migrate if self._auto_migrate else require_migrated)(connection)
            async with transaction(connection):
                await keep_partitions(connection)
        finally:
            await hang_up(connection)
        pool, beat, name = Pool(self._address), Link(self._address, "beat", CONTROL_S), sender_name()
        await pool.open()
        resources.push_async_callback(pool.close)
        resources.push_async_callback(beat.close)
        sender = Sender(pool, name)
        resources.push_async_callback(sender.close)
        if self._on_wake is not None and self._address.listen_dsn is not None:
            listener = Listener(self._address, self._address.listen_dsn, name, self._on_wake)
            await listener.open()
            resources.push_async_callback(listener.close)
        writer = PostgresWriter(Link(self._address, "write"))
        resources.push_async_callback(writer.close)
        leases = PostgresLeases(beat)
        upkeep = asyncio.create_task(_keep_up(pool, leases), name="journal-upkeep")
        resources.push_async_callback(_cancel, upkeep)
        return _Open(pool, writer, PostgresReader(pool), leases, sender, resources.pop_all())

    async def _finish(self, work: Coroutine[Any, Any, R]) -> R:
        """Do the work to its end, even if the caller stops waiting for it."""
        task = asyncio.create_task(work)
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)
        return await asyncio.shield(task)

    def _opened(self) -> _Open:
        if self._store is None:
            raise StoreError("The journal is not open.", code="store_closed")
        return self._store

    @property
    def _pool(self) -> Pool:
        return self._opened().pool

    def _keep(self, known: AtHand) -> None:
        self._opened().writer.keep(known)


async def _keep_up(pool: Pool, leases: PostgresLeases) -> None:
    while True:
        await asyncio.sleep(UPKEEP_S)
        try:
            async with pool.connection() as connection, transaction(connection):
                await keep_partitions(connection)
            await leases.forget()
        except StoreError as error:
            log.warning("the store could not be looked after: %s", error)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
