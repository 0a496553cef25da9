"""Hand-over: runs that another process has let go of, between two of their rounds, are gone on with here.

It is the same run under a new fence: its loop is restored from its own facts and what the store kept of its request.
The agent has to be the same, by its snapshot; if it is not, the run ends as interrupted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from runtime.canonical import canonical, digest_of
from runtime.errors import AguiBridgeError
from runtime.events import Event
from runtime.folds import Folds
from runtime.journal.store import Store
from runtime.live_runs import LiveRuns, Performer
from runtime.progress import progress_of
from runtime.reconciler import Reconciler
from runtime.request import RunRequest
from runtime.run import RUNNING, RunRecord
from runtime.sampling import PAUSED

log = logging.getLogger("agui_bridge.supervisor")

AGENT_CHANGED = "agent_changed"
"""Why a run was interrupted whose agent is another one here than where it began."""

PAGE = 512


class Requests(Protocol):
    """Finds what a run was asked."""

    async def request_of(self, run: RunRecord) -> RunRequest:
        """Raises StoreError."""
        ...


class HandOver:
    """Takes the runs that were handed over, for one process."""

    def __init__(
        self,
        store: Store,
        live: LiveRuns,
        folds: Folds,
        reconciler: Reconciler,
        requests: Requests,
        performers: Mapping[str, Performer],
        *,
        instance_id: str,
        lease_s: float,
    ) -> None:
        self._store = store
        self._live = live
        self._folds = folds
        self._reconciler = reconciler
        self._requests = requests
        self._performers = performers
        self._instance_id = instance_id
        self._lease_s = lease_s

    async def look_around(self) -> None:
        """Take what there is to be taken. Raises StoreError."""
        if self._store.exclusive or self._live.leaving:
            return
        for run in await self._store.handed_over():
            performer = self._performers.get(run.agent_id)
            if performer is None or self._live.is_here(run.run_id) or self._live.leaving:
                continue
            try:
                await self._take(run, performer)
            except AguiBridgeError as error:
                log.warning("run %s could not be gone on with: %s", run.run_id, error.message)

    async def _take(self, run: RunRecord, performer: Performer) -> None:
        snapshot = canonical(performer.agent.snapshot(performer.model))
        if run.status != RUNNING or digest_of(snapshot) != run.agent_snapshot_checksum:
            await self._reconciler.close_lost(run, AGENT_CHANGED)
            return
        request = await self._requests.request_of(run)
        with self._live.beginning(run.run_id):
            taken = await self._store.take_over(run.run_id, self._instance_id, self._lease_s)
            if taken is None or taken.status != RUNNING:
                return
            progress = progress_of(await self._facts(taken), PAUSED)
            if progress.can_go_on:
                thread = await self._folds.thread(taken.thread_id)
                self._live.launch(taken, [], request, performer, thread, unasked=True, progress=progress)
                log.info("run %s goes on here", run.run_id)
                return
        await self._reconciler.close_lost(taken)

    async def _facts(self, run: RunRecord) -> list[Event | None]:
        facts: list[Event | None] = []
        after = 0
        while page := await self._store.read(run.run_id, after, PAGE):
            facts += [record.event for record in page]
            after = page[-1].seq
        return facts
