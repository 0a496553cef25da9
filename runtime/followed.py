"""What other processes are told of the runs at work here: that there is more to read, if anybody there reads; and that
nobody here does, so that the run may be superseded from anywhere.

Nothing is told in a store that is this process's alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any

from runtime.errors import StoreError
from runtime.journal.leases import Lease
from runtime.journal.store import Store
from runtime.journal.wakes import Wake

log = logging.getLogger("agui_bridge.journal")


class Followed:
    """The runs at work here that are read in other processes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._elsewhere: set[str] = set()
        self._telling: set[asyncio.Task[None]] = set()

    def begins(self, run_id: str) -> None:
        """Another process has begun to read the run; or nobody knows, and somebody may have waited for it."""
        if not self._store.exclusive:
            self._elsewhere.add(run_id)

    def forget(self, run_id: str) -> None:
        """The run is no longer at work here."""
        self._elsewhere.discard(run_id)

    def heard(self, leases: Iterable[Lease]) -> None:
        """What a heartbeat brought."""
        for lease in leases:
            if lease.unread_ms is None:
                self._elsewhere.discard(lease.run_id)
            else:
                self.begins(lease.run_id)

    def published(self, run_id: str, seq: int) -> None:
        """The run has facts up to `seq`."""
        if run_id in self._elsewhere:
            self._tell(self._store.wake(Wake("events", run_id, seq)))

    def unread_changed(self, run_id: str, unread: bool) -> None:
        """Nobody here reads a run any more that is to be stopped for that; or somebody does again."""
        if not self._store.exclusive:
            self._tell(self._store.mark_unread(run_id, unread=unread))

    def _tell(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(_quietly(work))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except StoreError as error:
        log.info("other processes were not told: %s", error)
