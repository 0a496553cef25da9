"""How a run begins in PostgreSQL: one transaction that holds the thread's row from its first look to its end.

Two processes that begin on one thread follow each other: the second one sees what the first one made. Should a lock
be passed by all the same, the constraints (one active run a thread, each attempt once, each key once) refuse the
second, and it looks again. Names are locked before rows that are shared: thread, session, run, then blobs by digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import asyncpg

from runtime.events import SCHEMA_VERSION, Event
from runtime.journal import Begun, KeyedRun, Opening, Queued, Started
from runtime.journal.changes import Standing, Wait, admitted, attempt_or_refusal, begun_of
from runtime.journal.drafts import Draft, Unstorable, records_of
from runtime.journal.interrupts import closed_in, raised_in
from runtime.journal.postgres_connection import Connection, Pool, Unsettled, constraint_of, fetch
from runtime.journal.postgres_interrupts import asked_interrupts, keep_interrupts
from runtime.journal.postgres_rows import run_of, session_of, stored_json, stored_records
from runtime.journal.queries import load
from runtime.run import QUEUED, RunRecord

RACES = frozenset({"runs_active", "runs_attempt", "runs_continue", "idempotency_keys_key"})
"""Constraints that refuse a beginning because another one came first."""

CONTENTS_LOCK = 0x4147_554B
"""The advisory lock that is shared by all who store contents, and held alone by who removes some."""

_SQL = load("postgres")
_FOLLOWED = "followed as "


class Beginning:
    """One call of `begin_run`, which may be tried again until it is settled."""

    def __init__(self, pool: Pool, opening: Opening, drafts: Sequence[Draft]):
        self._pool = pool
        self._opening = opening
        self._drafts = drafts
        self._tried = False

    async def attempt(self) -> Begun:
        """Begin, or say why not. Raises Unsettled if that is not known: then it may be asked again."""
        async with self._pool.connection() as connection:
            if self._tried and (begun := await self._begun_before(connection)):
                return begun
            self._tried = True
            transaction = connection.transaction()
            await transaction.start()
            try:
                begun = await self._begin(connection)
            except BaseException:
                if not connection.is_closed():
                    await transaction.rollback()
                raise
            if isinstance(begun, Started | Queued):
                await transaction.commit()
            else:
                await transaction.rollback()
            return begun

    async def _begin(self, connection: Connection) -> Begun:
        opening = self._opening
        await self._hold(connection)
        standing = await _standing(connection, opening)
        answer = attempt_or_refusal(opening, standing)
        if not isinstance(answer, int | Wait):
            return answer
        if opening.session is not None and standing.session is None:
            raise Unstorable(f"Thread {opening.run.thread_id} belongs to another session.")
        run, drafts = admitted(opening, answer, self._drafts, 0)
        try:
            [(now, lease_expires_at, root_after)] = await connection.fetch(
                _SQL["start_run"], *self._values(run, drafts)
            )
            if (key := opening.idempotency) is not None:
                told = (key.request_digest, key.message_id, run.run_id, run.created_at)
                await connection.fetch(_SQL["add_key"], run.tenant_id, run.owner_id, key.key_digest, *told)
        except asyncpg.UniqueViolationError as error:
            if constraint_of(error) in RACES:
                raise Unsettled("Another run began first.") from error
            raise
        await self._claim(connection, run, [draft.event for draft in drafts], standing)
        await put_contents(connection, opening.contents)
        if opening.default_title is not None:
            await connection.fetch(_SQL["give_default_title"], run.thread_id, opening.default_title)
        if opening.delivers:
            await connection.fetch(_SQL["add_delivery"], run.run_id)
        run = replace(run, lease_expires_at=lease_expires_at)
        return begun_of(run, answer, records_of(run.run_id, 0, drafts, opening.occurred_at, now, root_after))

    async def _hold(self, connection: Connection) -> None:
        run, new = self._opening.run, self._opening.session
        thread = (run.thread_id, run.tenant_id, run.owner_id, run.created_at)
        session = (None,) * 6
        if new is not None:
            session = (new.session_id, new.thread_id, new.agent_id, new.title, new.created_at, new.default_title)
        await connection.fetch(_SQL["hold_names"], *thread, *session)
        await connection.fetch(_SQL["hold_thread"], run.thread_id)

    async def _claim(self, connection: Connection, run: RunRecord, events: Sequence[Event], standing: Standing) -> None:
        """Keep what the first facts say of interrupts, and see that nobody has answered since they were looked at:
        another thread of the tree may have, or the end of a run."""
        at = self._opening.occurred_at
        closed = closed_in(run, events, at)
        wanted = [its for its in closed if standing.asked[its.interrupt_id].interrupt.is_open]
        if len(await keep_interrupts(connection, raised_in(run, events, at), wanted)) < len(wanted):
            raise Unsettled("Another run answered first.")

    async def _begun_before(self, connection: Connection) -> Started | Queued | None:
        """What an attempt whose answer was lost has committed."""
        run = self._opening.run
        rows = await fetch(connection, self._pool.pooler, _SQL["find_run"], [run.run_id])
        if not rows:
            return None
        found = run_of(rows[0])
        if (found.thread_id, found.input_digest) != (run.thread_id, run.input_digest):
            return None
        if found.when_busy is not None:
            return Queued(found, found)
        values = [run.run_id, 0, len(self._drafts)]
        events = await fetch(connection, self._pool.pooler, _SQL["events_of_run"], values)
        return Started(found, stored_records(run.run_id, events))

    def _values(self, run: RunRecord, drafts: Sequence[Draft]) -> list[Any]:
        opening = self._opening
        return [
            run.run_id,
            run.tenant_id,
            run.owner_id,
            run.thread_id,
            run.session_id,
            run.agent_id,
            run.client_run_id,
            run.input_digest,
            run.attempt,
            run.status,
            run.base,
            run.last_seq,
            run.fence,
            run.root_run_id,
            run.created_at,
            run.parent_run_id,
            run.executor_instance_id,
            run.started_at,
            run.finished_at,
            run.final_message_id,
            stored_json("error", run.error),
            stored_json("usage", run.usage),
            run.agent_snapshot_checksum,
            run.context_snapshot_checksum,
            run.trace_id,
            None if opening.lease_s is None or run.status == QUEUED else round(opening.lease_s * 1000),
            opening.occurred_at,
            SCHEMA_VERSION,
            list(range(1, len(drafts) + 1)),
            [draft.event.event_type for draft in drafts],
            [draft.payload for draft in drafts],
            [draft.checksum for draft in drafts],
            run.request_checksum,
            run.when_busy,
            run.continues,
        ]


async def put_contents(connection: Connection, contents: dict[str, bytes]) -> None:
    """Store blobs by digest, in the order of their digests: two who store the same ones never wait crosswise."""
    if contents:
        digests = sorted(contents)
        data = [contents[digest] for digest in digests]
        await connection.fetch(_SQL["put_contents"], digests, data, CONTENTS_LOCK)


async def _standing(connection: Connection, opening: Opening) -> Standing:
    """What the store holds where the run wants to begin; the caller holds the thread.

    The runs are asked for before the position: an active run may end in between, and then the position is its last.
    """
    run, new, key = opening.run, opening.session, opening.idempotency
    runs = await standing_runs(connection, run.thread_id, run.client_run_id, run.input_digest, run.continues)
    session_id = None if new is None else new.session_id
    [row] = await connection.fetch(_SQL["standing_thread"], run.thread_id, run.tenant_id, run.owner_id, session_id)
    keyed = None
    if key is not None:
        for told in await connection.fetch(_SQL["find_keyed"], run.tenant_id, run.owner_id, key.key_digest):
            keyed = KeyedRun(run_of(told), told["request_digest"], told["message_id"])
    session = None
    if row["session_id"] is not None:
        session = session_of(row)
    return Standing(
        owner=(row["thread_tenant_id"], row["thread_owner_id"]),
        session=session,
        same=runs.same,
        named=runs.named,
        active=runs.active,
        position=row["position"],
        hidden=row["hidden"],
        keyed=keyed,
        followed=runs.followed,
        first_queued=runs.queued,
        queued=row["queued"],
        continued=runs.continued,
        asked=await asked_interrupts(connection, opening.events),
    )


@dataclass(frozen=True, slots=True)
class StandingRuns:
    """The runs that a `Standing` names."""

    same: RunRecord | None
    named: RunRecord | None
    active: RunRecord | None
    followed: dict[str, RunRecord]
    queued: RunRecord | None = None
    continued: RunRecord | None = None


async def standing_runs(
    connection: Connection, thread_id: str, client_run_id: str, input_digest: str, continues: str | None = None
) -> StandingRuns:
    """The runs that matter to a request of this id and content; the caller holds the thread."""
    rows = await connection.fetch(_SQL["standing_runs"], thread_id, client_run_id, input_digest, continues)
    found = {row["part"]: run_of(row) for row in rows}
    followed = {part.removeprefix(_FOLLOWED): run for part, run in found.items() if part.startswith(_FOLLOWED)}
    same, named, active = found.get("same"), found.get("named"), found.get("active")
    return StandingRuns(same, named, active, followed, found.get("queued"), found.get("continued"))
