"""Reconciliation: ends runs whose executor is gone or whose facts could not be written.

It takes the run's lease first, so that no other process does the same and the old executor can append nothing more.
A lost run is closed, never run again: what it had begun may have happened.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from runtime import events as e
from runtime.ending import LOST, PARENT_LOST, ending
from runtime.errors import AguiBridgeError, AppendConflict, FenceLost
from runtime.folds import Folds
from runtime.journal.store import Store
from runtime.journal.tail import Tail
from runtime.run import CANCELLING, QUEUED, RunRecord
from runtime.system import Clock

log = logging.getLogger("agui_bridge.reconciler")

EXECUTOR_LOST = LOST
PARENT_CANCELLED = "parent_cancelled"


class Reconciler:
    """Closes runs for the executor `instance_id`, which holds each for `lease_s` seconds while it does."""

    def __init__(
        self, store: Store, folds: Folds, tail: Tail, clock: Clock, *, instance_id: str, lease_s: float
    ) -> None:
        self._store = store
        self._folds = folds
        self._tail = tail
        self._clock = clock
        self._instance_id = instance_id
        self._lease_s = lease_s
        self.before_lost: Callable[[RunRecord], Awaitable[None]] | None = None
        """Waited for before a run is closed whose executor is gone, once it is this process's to close."""
        self.on_closed: Callable[[str], None] | None = None
        """Called with a thread's id when a run on it was closed."""

    async def close_lost(self, run: RunRecord, reason: str = EXECUTOR_LOST) -> bool:
        """Say that the run's executor is gone, and what became of the calls it had begun.

        Comes to nothing (False) while somebody's lease holds. A thread that cannot be read any more ends bare: one
        that is damaged must not keep the others from being served.
        """
        lost = e.RunInterrupted(reason)
        try:
            return await self._close(run, [lost])
        except (FenceLost, AppendConflict):
            log.info("run %s was closed by another process", run.run_id)
            return True
        except AguiBridgeError:
            log.exception("run %s cannot be read; it ends without its message", run.run_id)
            taken = await self._store.take_over(run.run_id, self._instance_id, self._lease_s)
            if taken is None:
                return False
            await self._store.append(run.run_id, taken.fence, taken.last_seq, [lost], self._clock.now())
            if self.on_closed is not None:
                self.on_closed(run.thread_id)
            return True

    async def cancel_orphan(self, run: RunRecord, reason: str) -> bool:
        """Cancel a run that nobody performs; False while somebody's lease holds, or when it is over."""
        moves: list[e.Event] = [e.RunCancelled(reason, external_stop_confirmed=run.status == QUEUED)]
        if run.status != QUEUED:
            moves.insert(0, e.RunCancelling(reason))
        try:
            return await self._close(run, moves)
        except (FenceLost, AppendConflict):
            return False

    async def close_failed(self, run: RunRecord, error: Exception) -> None:
        """The run's facts could not be written: end it with what the journal holds, if that takes it.

        A run whose fence was lost has another owner, or is over.
        """
        if isinstance(error, FenceLost):
            return
        known = error if isinstance(error, AguiBridgeError) else AguiBridgeError("The server failed; its log says why.")
        try:
            await self._close(run, [e.RunFailed(known.as_payload())])
        except Exception:
            log.exception("run %s stays open until its lease has ended", run.run_id)

    async def _close(self, run: RunRecord, moves: list[e.Event]) -> bool:
        below = await self._close_below(run, moves)
        if below is None:
            return False
        taken = await self._store.take_over(run.run_id, self._instance_id, self._lease_s)
        if taken is None:
            return False
        *before, terminal = moves
        if self.before_lost is not None and isinstance(terminal, e.RunInterrupted):
            await self.before_lost(taken)
        if taken.status == CANCELLING:
            before = []
            terminal = terminal if isinstance(terminal, e.RunCancelled) else e.RunInterrupted(EXECUTOR_LOST)
        thread = await self._folds.committed(run.thread_id)
        lost = not isinstance(terminal, e.RunFailed)
        facts = [*before, *ending(thread, run.run_id, terminal, lost=lost, below=below)]
        records = await self._store.append(run.run_id, taken.fence, taken.last_seq, facts, self._clock.now())
        self._tail.publish(run.run_id, records)
        if self.on_closed is not None:
            self.on_closed(run.thread_id)
        return True

    async def _close_below(self, run: RunRecord, moves: list[e.Event]) -> dict[str, RunRecord] | None:
        """End the run's children before it, each as it ends itself; a failure is the run's own, and theirs is that they
        are lost. None while somebody holds one of them."""
        below: dict[str, RunRecord] = {}
        for child in await self._store.runs_of_tree(run.root_run_id):
            if child.parent_run_id != run.run_id:
                continue
            if not child.is_over:
                if not await self._end_child(child, moves):
                    return None
                child = await self._store.find_run(child.run_id) or child
            below[child.run_id] = child
        return below

    async def _end_child(self, child: RunRecord, moves: list[e.Event]) -> bool:
        *_, terminal = moves
        if isinstance(terminal, e.RunCancelled):
            return await self.cancel_orphan(child, PARENT_CANCELLED)
        return await self._close(child, [e.RunInterrupted(PARENT_LOST if child.status == QUEUED else EXECUTOR_LOST)])
