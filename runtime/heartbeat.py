"""The heartbeat: holds this process's leases, hears what others want of its runs, and looks for runs that were lost.

It decides nothing about a run: it tells the supervisor what a beat brought. When leases could not be renewed for so
long that others may believe this process dead, it says so before they end: work without a lease must stop. Deadlines
are of the monotonic clock, leases of the store's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Set

from runtime.errors import StoreError
from runtime.journal.leases import Lease
from runtime.journal.store import Store
from runtime.run import RunRecord

log = logging.getLogger("agui_bridge.heartbeat")

MARGIN = 0.2
"""The share of a lease that is left when work without a renewal must stop."""


class Heartbeat:
    """Beats every `every_s` seconds between `start` and `stop`; `lease_s` is how long a beat holds.

    `held` names the runs at work here, `on_leases` is given those names as asked about and the leases that came back,
    `on_expiry` is called when what is held can be relied on no longer, `on_lost` for each run that somebody left,
    `on_look` behind every beat.
    """

    def __init__(
        self,
        store: Store,
        instance_id: str,
        *,
        lease_s: float,
        every_s: float,
        held: Callable[[], Set[str]],
        on_leases: Callable[[Set[str], list[Lease]], None],
        on_expiry: Callable[[], None],
        on_lost: Callable[[RunRecord], Awaitable[object]],
        on_look: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._instance_id = instance_id
        self._lease_s = lease_s
        self._every_s = every_s
        self._held = held
        self._on_leases = on_leases
        self._on_expiry = on_expiry
        self._on_lost = on_lost
        self._on_look = on_look
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._reliable_until = 0.0

    def start(self) -> None:
        """Begin to beat, on the running event loop."""
        self._hurry = asyncio.Event()
        self._rely(asyncio.get_running_loop().time())
        self._task = asyncio.create_task(self._run(), name="heartbeat")

    async def stop(self) -> None:
        """Stop beating; leases end by themselves."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def hurry(self) -> None:
        """Beat now: somebody said that there is something to hear."""
        self._hurry.set()

    async def beat(self) -> None:
        """Renew what is held and tell what came back. Raises StoreError, TimeoutError."""
        held = frozenset(self._held())
        now = asyncio.get_running_loop().time()
        if held:
            async with asyncio.timeout(self._patience()):
                leases = await self._store.renew(self._instance_id, sorted(held), self._lease_s)
            self._on_leases(held, leases)
        self._rely(now)

    async def look_for_lost(self) -> None:
        """Close what somebody left behind. Raises StoreError."""
        for run in await self._store.lost_runs():
            if run.run_id not in self._held():
                await self._on_lost(run)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with asyncio.timeout(self._patience()):
                    await self._hurry.wait()
            except TimeoutError:
                pass
            self._hurry.clear()
            try:
                await self.beat()
                await self.look_for_lost()
                if self._on_look is not None:
                    await self._on_look()
            except (StoreError, TimeoutError) as error:
                log.warning("a heartbeat failed: %s", str(error) or "the store did not answer in time")
                if loop.time() >= self._reliable_until and not self._store.exclusive:
                    self._on_expiry()

    def _patience(self) -> float:
        """How long to wait at most: never beyond the moment from which the leases cannot be relied on."""
        left = self._reliable_until - asyncio.get_running_loop().time()
        return min(self._every_s, left) if left > 0 else self._every_s

    def _rely(self, since: float) -> None:
        self._reliable_until = since + self._lease_s * (1 - MARGIN)
