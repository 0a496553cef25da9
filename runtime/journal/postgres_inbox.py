"""The inbox of a PostgreSQL store.

Who starts a queued run holds its thread, as a beginning does, and looks at the line anew. What goes to several runs is
one statement in a transaction of its own: if one of them does not stand as planned, all of it is taken back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import asyncpg

from runtime.events import SCHEMA_VERSION, Record
from runtime.journal import Started
from runtime.journal.changes import Standing, are_same, may_start, started
from runtime.journal.drafts import Draft, drafts_of, records_of
from runtime.journal.inbox import Part, Starting
from runtime.journal.interrupts import closed_in, raised_in
from runtime.journal.postgres_batch import Append, AtHand, RunStep, plan_of, settle
from runtime.journal.postgres_begin import put_contents
from runtime.journal.postgres_connection import Connection, Pool, Unsettled, constraint_of, patiently, transaction
from runtime.journal.postgres_interrupts import append_steps, keep_interrupts
from runtime.journal.postgres_rows import run_of, stored_records
from runtime.journal.queries import load
from runtime.run import QUEUED, RunRecord

_SQL = load("postgres")


class PostgresInbox(ABC):
    """The `Inbox` of a store that has a `_pool`."""

    @property
    @abstractmethod
    def _pool(self) -> Pool:
        """The open store's connections. Raises StoreError if it is closed."""

    @abstractmethod
    def _keep(self, known: AtHand) -> None:
        """Have a run's record at hand for the next append."""

    async def queued_runs(self, thread_id: str) -> list[RunRecord]:
        """See the port."""
        return [run_of(row) for row in await self._pool.fetch(_SQL["queued_runs"], thread_id)]

    async def next_queued(self, thread_id: str | None = None) -> list[RunRecord]:
        """See the port."""
        return [run_of(row) for row in await self._pool.fetch(_SQL["next_queued"], thread_id)]

    async def start_queued(self, starting: Starting) -> Started | None:
        """See the port."""
        drafts = drafts_of(starting.events, packed=False)
        begun = await patiently(lambda: self._start(starting, drafts))
        if begun is not None:
            self._keep(AtHand(begun.run, begun.run.last_seq, begun.run.parent_run_id is not None))
        return begun

    async def append_all(self, parts: Sequence[Part], occurred_at: int) -> list[list[Record]] | None:
        """See the port."""
        given = [(part, drafts_of(part.events)) for part in parts]
        steps = await patiently(lambda: self._append_all(given, occurred_at))
        if steps is None:
            return None
        for step in steps:
            self._keep(step.after)
        return [step.appends[0].records or [] for step in steps]

    # --- work that may be repeated --------------------------------------------------------------------------------

    async def _start(self, starting: Starting, drafts: Sequence[Draft]) -> Started | None:
        async with self._pool.connection() as connection, transaction(connection):
            found = await connection.fetch(_SQL["thread_of_run"], starting.run_id)
            if not found:
                return None
            await connection.fetch(_SQL["hold_thread"], found[0]["thread_id"])
            run = await _run(connection, starting.run_id)
            if run is not None and _was_begun(run, starting):  # by this very call, whose answer was lost
                events = await connection.fetch(_SQL["events_of_run"], run.run_id, 0, len(drafts))
                return Started(run, stored_records(run.run_id, events))
            if run is None or not may_start(run, starting, await _standing_of(connection, run.thread_id)):
                return None
            begun = started(run, starting, drafts, 0)
            try:
                rows = await connection.fetch(_SQL["start_queued"], *_values(starting, begun, drafts))
            except asyncpg.UniqueViolationError as error:
                if constraint_of(error) == "runs_active":
                    raise Unsettled("Another run began first.") from error
                raise
            if not rows:  # somebody has withdrawn it meanwhile
                return None
            of = (begun, starting.events, starting.occurred_at)
            await keep_interrupts(connection, raised_in(*of), closed_in(*of))
            await put_contents(connection, starting.contents)
            begun = replace(begun, lease_expires_at=rows[0]["lease_expires_at"])
        records = records_of(begun.run_id, 0, drafts, starting.occurred_at, rows[0]["recorded_at"])
        return Started(begun, records)

    async def _append_all(
        self, given: Sequence[tuple[Part, Sequence[Draft]]], occurred_at: int
    ) -> list[RunStep] | None:
        appends = [Append(part.run_id, part.fence, part.expected_seq, drafts, occurred_at) for part, drafts in given]
        async with self._pool.connection() as connection:
            attempt = connection.transaction()
            await attempt.start()
            try:
                steps = await _written(connection, appends)
            except BaseException:
                if not connection.is_closed():
                    await attempt.rollback()
                raise
            await (attempt.rollback() if steps is None else attempt.commit())
            return steps


async def _written(connection: Connection, appends: Sequence[Append]) -> list[RunStep] | None:
    rows = await connection.fetch(_SQL["find_runs"], sorted(append.run_id for append in appends))
    known = {run.run_id: AtHand(run, run.last_seq) for run in map(run_of, rows)}
    plan = plan_of(appends, known)
    if plan.repeats and not plan.refused and len(plan.repeats) == len(appends):
        return await _written_before(connection, plan.repeats)
    if plan.refused or plan.repeats:
        return None
    steps = list(plan.steps.values())
    done = await append_steps(connection, steps)
    if len(done) < len(steps):
        return None
    for row in done:
        place: int = row["place"]
        settle(steps[place], row["recorded_at"], row["root_after"])
    return steps


async def _written_before(connection: Connection, repeats: Sequence[tuple[Append, RunRecord]]) -> list[RunStep] | None:
    """The same, if all of it was committed by a call whose answer was lost."""
    steps: list[RunStep] = []
    for append, run in repeats:
        events = await connection.fetch(_SQL["events_of_run"], append.run_id, append.expected_seq, append.size)
        append.records = stored_records(append.run_id, events, append.expected_seq, append.size)
        if not are_same(append.records, append.drafts):
            return None
        steps.append(RunStep(append.expected_seq, AtHand(run, run.last_seq), appends=[append]))
    return steps


async def _run(connection: Connection, run_id: str) -> RunRecord | None:
    rows = await connection.fetch(_SQL["find_run"], run_id)
    return run_of(rows[0]) if rows else None


def _was_begun(run: RunRecord, starting: Starting) -> bool:
    held = run.executor_instance_id == starting.executor_instance_id and run.fence == starting.fence + 1
    return run.status != QUEUED and held and run.base == starting.base


async def _standing_of(connection: Connection, thread_id: str) -> Standing:
    line = [run_of(row) for row in await connection.fetch(_SQL["queued_runs"], thread_id)]
    active = await connection.fetch(_SQL["run_at_work"], thread_id)
    place = await connection.fetch(_SQL["place_of_thread"], thread_id)
    return Standing(
        owner=None,
        session=None,
        same=None,
        named=None,
        active=run_of(active[0]) if active else None,
        position=place[0]["position"] if place else 0,
        first_queued=line[0] if line else None,
        queued=len(line),
    )


def _values(starting: Starting, run: RunRecord, drafts: Sequence[Draft]) -> list[Any]:
    return [
        run.run_id,
        starting.fence,
        run.status,
        run.base,
        run.last_seq,
        run.fence,
        run.executor_instance_id,
        run.started_at,
        run.finished_at,
        run.final_message_id,
        run.agent_snapshot_checksum,
        round(starting.lease_s * 1000),
        starting.occurred_at,
        SCHEMA_VERSION,
        list(range(1, len(drafts) + 1)),
        [draft.event.event_type for draft in drafts],
        [draft.payload for draft in drafts],
        [draft.checksum for draft in drafts],
    ]
