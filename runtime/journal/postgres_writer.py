"""Group commit over one connection: whatever waits when a statement has returned goes into the next one.

A statement is its own transaction, so that a group costs one round trip and one flush to disk, and nothing is left
half done; only interrupts take a transaction of several (see `postgres_interrupts`). If its answer is lost, the same
group is tried again on a new connection: what was committed is then found as a repeat. A group that the database
refuses is halved and tried again, until the row that cannot be stored is alone with its error.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from runtime.errors import AguiBridgeError, StoreError
from runtime.events import Record
from runtime.journal.changes import confirm_repeat
from runtime.journal.drafts import Unstorable
from runtime.journal.postgres_batch import Append, AtHand, Plan, RunStep, interrupts_of, plan_of, settle, statement_of
from runtime.journal.postgres_connection import PATIENCE_S, Link, Row, patiently
from runtime.journal.postgres_interrupts import append_steps
from runtime.journal.postgres_rows import run_of, stored_records
from runtime.journal.queries import load

GROUP_LIMIT = 512
"""The most events that one statement takes; a larger append is taken alone."""

KEPT = 4096
"""How many records of runs are kept at hand."""

CLOSING_S = 1.0
"""How long each group waits for a server that is away when the store is being closed."""

LOOKS = 5
"""How often an append is looked at again when its run changes while it is being written."""

_SQL = load("postgres")


class PostgresWriter:
    """Appends for all runs of this process, between `start` and `close`."""

    def __init__(self, link: Link):
        self._link = link
        self._waiting: deque[tuple[Append, asyncio.Future[list[Record]]]] = deque()
        self._arrival = asyncio.Event()
        self._accepting = True
        self._at_hand: dict[str, AtHand] = {}
        self._task = asyncio.create_task(self._run(), name="journal-write")

    @property
    def alive(self) -> bool:
        """Whether it takes appends."""
        return self._accepting and not self._task.done()

    def submit(self, append: Append) -> asyncio.Future[list[Record]]:
        """Hand in an append; cancelling the future withdraws nothing. Raises StoreError when closed."""
        if not self.alive:
            raise StoreError("The journal is closed.", code="store_closed")
        future: asyncio.Future[list[Record]] = asyncio.get_running_loop().create_future()
        self._waiting.append((append, future))
        self._arrival.set()
        return future

    def keep(self, known: AtHand) -> None:
        """Have a run's record at hand."""
        run_id = known.run.run_id
        self._at_hand.pop(run_id, None)
        if not known.run.is_over:
            self._at_hand[run_id] = known
            while len(self._at_hand) > KEPT:
                del self._at_hand[next(iter(self._at_hand))]

    async def close(self) -> None:
        """Accept nothing more, write what was handed in, and let go of the connection."""
        self._accepting = False
        self._arrival.set()
        await asyncio.wait({self._task})
        await self._link.close()

    async def _run(self) -> None:
        group: list[tuple[Append, asyncio.Future[list[Record]]]] = []
        try:
            while group := await self._take():
                await self._write([append for append, _ in group])
                _deliver(group)
        finally:
            self._accepting = False
            for append, _ in [*group, *self._waiting]:
                if not append.settled:
                    append.error = StoreError("The journal is closed.", code="store_closed")
            _deliver([*group, *self._waiting])

    async def _take(self) -> list[tuple[Append, asyncio.Future[list[Record]]]]:
        """All that waits, up to the limit; nothing when it is closed and all is written."""
        while not self._waiting:
            if not self._accepting:
                return []
            self._arrival.clear()
            await self._arrival.wait()
        group = [self._waiting.popleft()]
        size = group[0][0].size
        while self._waiting and size + self._waiting[0][0].size <= GROUP_LIMIT:
            group.append(self._waiting.popleft())
            size += group[-1][0].size
        return group

    async def _write(self, group: Sequence[Append]) -> None:
        """Settle every append of the group."""
        try:
            await patiently(lambda: self._attempt(group), PATIENCE_S if self._accepting else CLOSING_S)
        except Unstorable as error:
            left = [append for append in group if not append.settled]
            if len(left) == 1:
                left[0].error = error
                return
            middle = len(left) // 2
            await self._write(left[:middle])
            await self._write(left[middle:])
        except AguiBridgeError as error:
            self._give_up(group, error)

    async def _attempt(self, group: Sequence[Append]) -> None:
        """Settle the group, first by the records at hand. What those do not settle is looked up in the store."""
        fresh = False
        for _ in range(LOOKS):
            left = [append for append in group if not append.settled]
            if not left:
                return
            plan = await self._planned(left, fresh)
            done = await self._commit(plan)
            if fresh:
                await self._confirm(plan, done)
                for append, error in plan.refused.items():
                    append.error = error
            fresh = True
        self._give_up(group, StoreError("The run's row changes faster than it can be written."))

    async def _planned(self, appends: Sequence[Append], fresh: bool) -> Plan:
        named = {append.run_id for append in appends}
        known = {} if fresh else {run_id: self._at_hand[run_id] for run_id in named if run_id in self._at_hand}
        if missing := sorted(named - known.keys()):
            for row in await self._link.fetch(_SQL["find_runs"], missing):
                run = run_of(row)
                known[run.run_id] = AtHand(run, run.last_seq)
        return plan_of(appends, known)

    async def _commit(self, plan: Plan) -> set[str]:
        """Write the plan's steps; the runs of those that were committed."""
        steps = list(plan.steps.values())
        if not steps:
            return set()
        done: set[str] = set()
        for row in await self._append(steps):
            place: int = row["place"]
            step = steps[place]
            settle(step, row["recorded_at"], row["root_after"])
            self.keep(step.after)
            done.add(step.after.run.run_id)
        return done

    async def _append(self, steps: Sequence[RunStep]) -> list[Row]:
        if any(interrupts_of(steps)):
            return await self._link.transact(lambda connection: append_steps(connection, steps))
        query, values = statement_of(steps)
        return await self._link.fetch(_SQL[query], *values)

    async def _confirm(self, plan: Plan, done: set[str]) -> None:
        """Find in the store what can only be there already."""
        for append, run in plan.repeats:
            if append.run_id in plan.steps and append.run_id not in done:
                continue
            rows = await self._link.fetch(_SQL["events_of_run"], append.run_id, append.expected_seq, append.size)
            stored = stored_records(append.run_id, rows, append.expected_seq, append.size)
            try:
                confirm_repeat(run, stored, append.drafts)
                append.records = stored
            except AguiBridgeError as error:
                append.error = error

    def _give_up(self, group: Sequence[Append], error: AguiBridgeError) -> None:
        for append in group:
            self._at_hand.pop(append.run_id, None)
            if not append.settled:
                append.error = error


def _deliver(group: Sequence[tuple[Append, asyncio.Future[list[Record]]]]) -> None:
    for append, future in group:
        if future.done():
            continue
        if append.error is not None:
            future.set_exception(append.error)
        elif append.records is not None:
            future.set_result(append.records)
