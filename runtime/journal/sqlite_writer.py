"""The write side of a SQLite journal: what happens inside the one writing transaction.

It belongs to the commit thread and is called by nobody else. Rows of a group are gathered and inserted together, the
records of active runs are kept at hand: nobody else changes what is in them, since the store is locked. A group that
fails is halved and tried again, until the row that cannot be stored is alone with its error.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import orjson

from runtime.errors import AguiBridgeError, AppendConflict, FenceLost
from runtime.events import SCHEMA_VERSION, Record
from runtime.journal import Begun, Opening, Started
from runtime.journal.catalogue import Owner
from runtime.journal.changes import (
    Standing,
    Wait,
    admitted,
    advance,
    attempt_or_refusal,
    begun_of,
    confirm_repeat,
    is_repeat,
    leased,
    may_start,
    moves,
    opens_tree,
    started,
)
from runtime.journal.drafts import Draft, count_of, placed, records_of
from runtime.journal.group import Job
from runtime.journal.inbox import Part, Starting
from runtime.journal.leases import Lease
from runtime.journal.queries import load
from runtime.journal.sqlite_aliases import followed_runs
from runtime.journal.sqlite_catalogue import is_hidden, keyed_run
from runtime.journal.sqlite_connection import FOREIGN, translated
from runtime.journal.sqlite_inbox import queued_runs, run_that_continues
from runtime.journal.sqlite_interrupts import InterruptRows, asked_interrupts
from runtime.journal.sqlite_rows import row_of, run_of, session_of, stored_records
from runtime.run import RunRecord

R = TypeVar("R")

_SQL = load("sqlite")


class _Held:
    """An active run at hand. `last_seq` runs ahead of the record's, which is made anew only when more changes."""

    __slots__ = ("changed", "last_seq", "run", "run_no", "tree")

    def __init__(self, run_no: int, run: RunRecord, tree: _Tree | None):
        self.run_no = run_no
        self.run = run
        self.tree = tree
        self.last_seq = run.last_seq
        self.changed = False


class _Tree:
    """A tree at hand, by its root: where its events end."""

    __slots__ = ("run_no", "seq")

    def __init__(self, run_no: int, seq: int):
        self.run_no = run_no
        self.seq = seq


class SqliteWriter:
    """Commits groups of jobs; the jobs' work is made of this object's other methods."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], int]):
        self._connection = connection
        self._clock = clock
        self._now = 0
        self._held: dict[str, _Held] = {}
        self._trees: dict[str, _Tree] = {}
        self._grown: set[_Tree] = set()
        self._rows: list[tuple[Any, ...]] = []
        self._interrupts = InterruptRows()
        self._touched: dict[int, _Held] = {}

    def commit(self, jobs: Sequence[Job[Any]]) -> None:
        """Do the jobs in one transaction; each has its result or its error afterwards."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except FOREIGN as error:
            for job in jobs:
                job.error = translated(error)
            return
        self._now = self._clock()
        try:
            for job in jobs:
                self._do(job)
            self._flush()
            self._connection.execute("COMMIT")
        except FOREIGN as error:
            self._roll_back()
            if len(jobs) == 1:
                jobs[0].error = translated(error)
                return
            middle = len(jobs) // 2
            self.commit(jobs[:middle])
            self.commit(jobs[middle:])

    def begin_run(self, opening: Opening, drafts: Sequence[Draft]) -> Begun:
        """The port's `begin_run`."""
        self._flush()
        answer = attempt_or_refusal(opening, standing := self._standing(opening))
        if not isinstance(answer, int | Wait):
            return answer
        run, drafts = admitted(opening, answer, drafts, self._now)
        row = row_of(run)
        if standing.owner is None:
            self._execute("add_thread", run.thread_id, run.tenant_id, run.owner_id, run.created_at)
        if (new := opening.session) is not None and standing.session is None:
            key = (new.tenant_id, new.owner_id, new.session_id)
            told = (new.thread_id, new.agent_id, new.title, new.created_at, new.default_title)
            self._execute("add_session", *key, *told)
        if opening.default_title is not None:
            self._execute("give_default_title", opening.default_title, run.thread_id)
        run_no = self._connection.execute(_SQL["add_run"], row).lastrowid
        if run_no is None:
            raise sqlite3.InternalError("The new run has no number.")
        if (key := opening.idempotency) is not None:
            told = (key.request_digest, key.message_id, run.run_id, run.created_at)
            self._execute("add_key", run.tenant_id, run.owner_id, key.key_digest, *told)
        self.put_contents(opening.contents)
        if opening.delivers:
            self._execute("add_delivery", run_no)
        held = _Held(run_no, run, None if run.parent_run_id is None else self._tree(run.root_run_id))
        if not run.is_over:
            self._held[run.run_id] = held
        return begun_of(run, answer, self._add_events(held, 0, drafts, opening.occurred_at))

    def start_queued(self, starting: Starting, drafts: Sequence[Draft]) -> Started | None:
        """The port's `start_queued`."""
        self._flush()
        held = self._find(starting.run_id)
        if held is None or not may_start(held.run, starting, self._standing_of(held.run.thread_id)):
            return None
        run = started(held.run, starting, drafts, self._now)
        place = (run.base, run.agent_snapshot_checksum, run.lease_expires_at)
        self._execute("place_run", *place, run.run_id)
        self.put_contents(starting.contents)
        self._change(held, run)
        return Started(run, self._add_events(held, 0, drafts, starting.occurred_at))

    def append_all(self, parts: Sequence[tuple[Part, Sequence[Draft]]], occurred_at: int) -> list[list[Record]] | None:
        """The port's `append_all`."""
        for part, drafts in parts:  # all are looked at before anything is written
            held = self._find(part.run_id)
            try:
                if held is None or is_repeat(held.run, held.last_seq, part.fence, part.expected_seq, count_of(drafts)):
                    return None
            except (AppendConflict, FenceLost):
                return None
        return [self.append(*_place(part), drafts, occurred_at) for part, drafts in parts]

    def append(
        self, run_id: str, fence: int, expected_seq: int, drafts: Sequence[Draft], occurred_at: int
    ) -> list[Record]:
        """The port's `append`."""
        held = self._find(run_id)
        if held is None:
            raise FenceLost(f"There is no run {run_id}.")
        count = count_of(drafts)
        if is_repeat(held.run, held.last_seq, fence, expected_seq, count):
            stored = self._stored(run_id, expected_seq, count)
            confirm_repeat(held.run, stored, drafts)
            return stored
        end = expected_seq + count
        if moves(drafts):
            self._change(held, advance(held.run, end, drafts, occurred_at))
        elif drafts:
            held.last_seq = end
            self._touched[held.run_no] = held
        return self._add_events(held, expected_seq, drafts, occurred_at)

    def put_contents(self, contents: dict[str, bytes]) -> None:
        """The port's `put_contents`."""
        if contents:
            self._connection.executemany(_SQL["put_content"], contents.items())

    def renew(self, executor_instance_id: str, run_ids: Sequence[str], lease_s: float) -> list[Lease]:
        """The port's `renew`."""
        self._flush()
        until = self._now + round(lease_s * 1000)
        named = orjson.dumps(list(run_ids)).decode()
        rows = self._connection.execute(_SQL["renew_leases"], (until, executor_instance_id, named)).fetchall()
        return [Lease(row["run_id"], row["fence"], row["cancel_reason"], None) for row in rows]

    def take_over(self, run_id: str, executor_instance_id: str, lease_s: float) -> RunRecord | None:
        """The port's `take_over`."""
        held = self._find(run_id)
        if held is None or held.run.is_over:
            return None
        fence = held.run.fence + 1
        taken = replace(held.run, fence=fence, executor_instance_id=executor_instance_id, last_seq=held.last_seq)
        run = leased(taken, lease_s, self._now)
        self._change(held, run)
        self._flush()
        self._execute("lease_run", run.lease_expires_at, run_id, fence)
        return run

    def hand_over(self, run_id: str, fence: int, for_s: float) -> bool:
        """The port's `hand_over`."""
        held = self._find(run_id)
        if held is None or held.run.is_over or held.run.fence != fence:
            return False
        self._change(held, replace(held.run, executor_instance_id=None, last_seq=held.last_seq))
        self._flush()
        self._execute("lease_run", self._now + round(for_s * 1000), run_id, fence)
        return True

    def mark_cancel(self, run_id: str, reason: str) -> RunRecord | None:
        """The port's `mark_cancel`."""
        self._flush()
        self._execute("mark_cancel", reason, run_id)
        row = self._execute("find_run", run_id)
        return None if row is None else run_of(row)

    def change(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Do other work in this transaction. It changes nothing of a run."""
        self._flush()
        return work(self._connection)

    def _do(self, job: Job[Any]) -> None:
        # Work refuses before it writes, so that a refusal leaves nothing behind in the transaction.
        job.error = None
        try:
            job.result = job.work()
        except AguiBridgeError as error:
            job.error = error

    def _change(self, held: _Held, run: RunRecord) -> None:
        row_of(run)
        held.run, held.last_seq, held.changed = run, run.last_seq, True
        self._touched[held.run_no] = held

    def _add_events(self, held: _Held, after: int, drafts: Sequence[Draft], occurred_at: int) -> list[Record]:
        tree = held.tree
        root_after = None if tree is None else tree.seq
        records = records_of(held.run.run_id, after, drafts, occurred_at, self._now, root_after)
        if tree is not None:
            tree.seq += len(records)
            self._grown.add(tree)
        elif opens_tree(held.run, drafts):
            held.tree = self._trees[held.run.run_id] = _Tree(held.run_no, held.last_seq)
            self._grown.add(held.tree)
        self._interrupts.gather(held.run, [draft.event for draft in drafts], occurred_at)
        run_no, tenant_id = held.run_no, held.run.tenant_id
        ahead = 0 if root_after is None else root_after - after
        self._rows += [
            (
                run_no,
                seq,
                seq + ahead,
                draft.event.event_type,
                occurred_at,
                self._now,
                draft.payload,
                draft.checksum,
                SCHEMA_VERSION,
                tenant_id,
                from_seq,
            )
            for seq, from_seq, draft in placed(drafts, after)
        ]
        return records

    def _flush(self) -> None:
        """Write what was gathered, so that statements see it."""
        if self._rows:
            self._connection.executemany(_SQL["append_event"], self._rows)
            self._rows.clear()
        self._interrupts.write(self._connection)
        if self._grown:
            self._connection.executemany(_SQL["move_tree"], [(tree.seq, tree.run_no) for tree in self._grown])
            self._grown.clear()
        if not self._touched:
            return
        moved: list[tuple[int, int]] = []
        for held in self._touched.values():
            if not held.changed:
                moved.append((held.last_seq, held.run_no))
                continue
            self._connection.execute(_SQL["change_run"], row_of(replace(held.run, last_seq=held.last_seq)))
            held.changed = False
            if held.run.is_over:
                self._held.pop(held.run.run_id, None)
                self._trees.pop(held.run.run_id, None)
        self._connection.executemany(_SQL["move_run"], moved)
        self._touched.clear()

    def _roll_back(self) -> None:
        # What cannot be rolled back makes the next BEGIN fail, which reports it.
        with suppress(sqlite3.Error):
            self._connection.rollback()
        self._rows.clear()
        self._interrupts.forget()
        self._touched.clear()
        self._held.clear()
        self._trees.clear()
        self._grown.clear()

    def _find(self, run_id: str) -> _Held | None:
        held = self._held.get(run_id)
        if held is None:
            self._flush()
            row = self._execute("find_run", run_id)
            if row is None:
                return None
            run = run_of(row)
            held = _Held(row["run_no"], run, self._tree(run.root_run_id))
            if not held.run.is_over:
                self._held[run_id] = held
        return held

    def _tree(self, root_run_id: str) -> _Tree | None:
        """The tree of this root, if it has had children."""
        tree = self._trees.get(root_run_id)
        if tree is None and (row := self._execute("find_tree", root_run_id)) is not None:
            if row["tree_seq"] is None:
                return None
            tree = self._trees[root_run_id] = _Tree(row["run_no"], row["tree_seq"])
        return tree

    def _stored(self, run_id: str, after: int, count: int) -> list[Record]:
        self._flush()
        rows = self._connection.execute(_SQL["events_of_run"], (run_id, after, count))
        return stored_records(run_id, rows, after, count)

    def _standing(self, opening: Opening) -> Standing:
        run, new, key, connection = opening.run, opening.session, opening.idempotency, self._connection
        owner = self._execute("thread_owner", run.thread_id)
        row = None if new is None else self._execute("find_session", new.tenant_id, new.owner_id, new.session_id)
        session = None if row is None else session_of(row)
        return replace(
            self._standing_of(run.thread_id if session is None else session.thread_id),
            owner=None if owner is None else (owner["tenant_id"], owner["owner_id"]),
            session=session,
            same=self._run("newest_same_run", run.thread_id, run.client_run_id, run.input_digest),
            named=self._run("newest_named_run", run.thread_id, run.client_run_id),
            hidden=is_hidden(run.thread_id, connection) or (session is not None and session.hidden_at is not None),
            keyed=None if key is None else keyed_run(Owner(run.tenant_id, run.owner_id), key.key_digest, connection),
            followed=followed_runs(run.thread_id, run.client_run_id, connection),
            continued=run_that_continues(run.continues, connection),
            asked=asked_interrupts(opening.events, connection),
        )

    def _standing_of(self, thread_id: str) -> Standing:
        """Who is at work on a thread and who waits for it, and where it stands."""
        line, position = queued_runs(thread_id, self._connection), self._execute("thread_position", thread_id)
        return Standing(
            owner=None,
            session=None,
            same=None,
            named=None,
            active=self._run("active_run_of_thread", thread_id),
            position=0 if position is None else position[0],
            first_queued=line[0] if line else None,
            queued=len(line),
        )

    def _run(self, query: str, *values: object) -> RunRecord | None:
        row = self._execute(query, *values)
        return None if row is None else run_of(row)

    def _execute(self, query: str, *values: Any) -> sqlite3.Row | None:
        return self._connection.execute(_SQL[query], values).fetchone()


def _place(part: Part) -> tuple[str, int, int]:
    return part.run_id, part.fence, part.expected_seq
