"""Suggestions: runs that leave nothing behind.

They are performed like any run, by a supervisor of their own over a store in memory, and erased when their page has
read them. An agent that no model performs is not asked: it would have to act.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from agui_bridge.desk import Accepted, Desk, Manners, Told, nothing
from agui_bridge.intake import IntakePolicy
from agui_bridge.run_input import RunInput
from agui_bridge.suggestion_request import in_words, suggesting
from runtime.authority import Principal
from runtime.errors import AguiBridgeError, NotFound, ShuttingDown
from runtime.journal.catalogue import RunFilter
from runtime.journal.memory import MemoryJournal
from runtime.limits import Limits
from runtime.live_runs import Performer
from runtime.run import ACTIVE
from runtime.supervisor import Supervisor

log = logging.getLogger("agui_bridge.suggestions")

SETTLE_S = 10.0
"""How long a run that nobody reads any more may take to end before it is left to itself, in seconds."""


class Suggestions:
    """Performs such runs. `performers` are the agents that are served, by name."""

    def __init__(self, performers: Mapping[str, Performer], policy: IntakePolicy, limits: Limits) -> None:
        self._served = performers
        asked = {
            name: Performer(suggesting(each.agent), each.model)
            for name, each in performers.items()
            if each.agent.performer is None
        }
        self._supervisor = Supervisor(MemoryJournal(), asked, limits=limits, disconnect_grace_s=0)
        self._policy = policy
        self._life = asyncio.Lock()
        self._begun = False
        self._ends = False

    def start(self) -> None:
        """Take requests; nothing begins before the first one."""
        self._ends = False

    async def stop(self) -> None:
        """Stop what is at work, and take no more."""
        async with self._life:
            self._ends = True
            if self._begun:
                self._begun = False
                await self._supervisor.drain(0)
                await self._supervisor.stop()

    @asynccontextmanager
    async def accept(
        self, run_input: RunInput, agent_id: str, principal: Principal, manners: Manners
    ) -> AsyncGenerator[Accepted | Told, None]:
        """The run, to be read within the block; behind it nothing is left. Raises NotFound (no such agent), and what a
        desk raises."""
        if agent_id not in self._served:
            raise NotFound(f"There is no agent {agent_id!r}.")
        if agent_id not in self._supervisor.performers:
            yield Told(nothing(run_input, manners.rendering(run_input)))
            return
        await self._begin()
        desk = Desk(self._supervisor, self._policy, cancel_when_unread=True, manners=manners)
        accepted = await desk.accept(in_words(run_input), agent_id, principal)
        try:
            yield accepted
        finally:
            await asyncio.shield(self._forget(principal, run_input.thread_id))

    async def cancel(self, principal: Principal, thread_id: str) -> bool:
        """Stop what the principal has begun on this thread; whether there was anything to stop."""
        if not self._begun:
            return False
        runs = await self._supervisor.runs(principal, RunFilter(thread_id, ACTIVE), None, 1)
        for run in runs:
            await self._supervisor.cancel(run.run_id, "user", SETTLE_S)
        return bool(runs)

    async def _begin(self) -> None:
        async with self._life:
            if self._ends:
                raise ShuttingDown
            if not self._begun:
                await self._supervisor.start()
                self._begun = True

    async def _forget(self, principal: Principal, thread_id: str) -> None:
        try:
            await self._supervisor.purge_session(principal, thread_id, SETTLE_S)
        except NotFound:
            return  # there was nothing to begin
        except AguiBridgeError as error:
            log.warning("the suggestions on thread %s are left until the process ends: %s", thread_id, error.message)
