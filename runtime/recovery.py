"""Recovery: what was lost is gone on with, if somebody has decided so beforehand.

A lost run is closed as interrupted all the same, and never run again. What goes on is another run, linked to it: it
begins with what the lost one had committed, waits in line before anybody else, and is stored before the lost one is
closed, so that whoever closes it, and however often, there is one. A continuation that is lost as well is not
continued: what brings every process down must come to an end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from runtime.beginning import opening_of
from runtime.canonical import digest
from runtime.errors import AguiBridgeError
from runtime.hand_over import Requests
from runtime.journal import Queued, Replay
from runtime.journal.inbox import ENQUEUE
from runtime.journal.store import Store
from runtime.live_runs import Performer
from runtime.run import RUNNING, RunRecord
from runtime.system import Clock, Mint
from runtime.thread import Thread

log = logging.getLogger("agui_bridge.supervisor")


class Recovery:
    """Stores the continuations of runs that are being closed as interrupted. `joined` is told of each that waits."""

    def __init__(
        self,
        store: Store,
        requests: Requests,
        performers: Mapping[str, Performer],
        joined: Callable[[RunRecord], None],
        *,
        clock: Clock,
        mint: Mint,
        instance_id: str,
    ) -> None:
        self._store = store
        self._requests = requests
        self._performers = performers
        self._joined = joined
        self._clock = clock
        self._mint = mint
        self._instance_id = instance_id

    async def plan(self, run: RunRecord) -> None:
        """See to it that a run which is about to be closed is continued. It never keeps it from being closed."""
        performer = self._performers.get(run.agent_id)
        is_own = run.status == RUNNING and run.root_run_id == run.run_id
        if performer is None or not is_own or run.continues is not None:
            return
        try:
            request = replace(
                await self._requests.request_of(run),
                facts=[],
                client_run_id=None,
                input_digest=digest(["continues", run.run_id]),
                cancel_when_unread=False,
                when_busy=ENQUEUE,
                continues=run.run_id,
            )
            opening = opening_of(
                request,
                None,
                Thread(run.thread_id),
                performer.agent.snapshot(performer.model),
                run_id=self._mint("run"),
                executor_instance_id=self._instance_id,
                now=self._clock.now(),
            )
            begun = await self._store.begin_run(opening)
        except AguiBridgeError as error:
            log.warning("run %s is not continued: %s", run.run_id, error.message)
            return
        match begun:
            case Queued(waiting) | Replay(waiting):
                self._joined(waiting)
                log.info("run %s will be continued as %s", run.run_id, waiting.run_id)
            case _:
                log.warning("run %s is not continued: %s", run.run_id, type(begun).__name__)
