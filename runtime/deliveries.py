"""Deliveries: somebody outside is told that a run is over, or asks something, even if this process dies before.

The hooks `on_run_end`, `on_interrupt` and `session_title` are called from the journal, when everything that they tell
of is committed: at once by the process in which the run ended, else by whichever finds the delivery due. They are
called at least once. One that fails is called again later, and with it the others of its run, so each call has an id
that stays the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final

from runtime import events as e
from runtime.agent import Agent
from runtime.errors import AguiBridgeError
from runtime.hook_runner import awaited, called
from runtime.hooks import ON_INTERRUPT, ON_RUN_END, OUTSIDE, SESSION_TITLE, Hook, InterruptOpen, RunEnd, Untitled
from runtime.journal.catalogue import Owner, SessionChange
from runtime.journal.store import Store
from runtime.run import RunRecord
from runtime.thread import Thread
from runtime.titles import LONGEST, one_line
from runtime.tools.threads import ThreadLimiter

log = logging.getLogger("agui_bridge.deliveries")

HOOK_S: Final = 30.0
"""How long a hook may take, in seconds."""
CLAIM_S: Final = 120.0
"""How long a delivery is left to the process that took it, in seconds."""
MOST_ATTEMPTS: Final = 12
"""How often a delivery is tried before it is given up: the last time some hours after the first."""
FIRST_WAIT_S: Final = 5.0
LONGEST_WAIT_S: Final = 3600.0
TOGETHER: Final = 32
"""How many are looked for at once."""
STOP_GRACE_S: Final = 0.5


class Deliverer:
    """Delivers for one process. `agents` are those that are known here, by id; `threads` is where synchronous hooks
    run, `thread_of` reads all that is committed of a thread."""

    def __init__(
        self,
        store: Store,
        agents: Callable[[], dict[str, Agent]],
        threads: Callable[[], ThreadLimiter],
        thread_of: Callable[[str], Awaitable[Thread]],
        *,
        hook_s: float = HOOK_S,
    ) -> None:
        self._store = store
        self._agents = agents
        self._threads = threads
        self._thread_of = thread_of
        self._hook_s = hook_s
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def look(self, run_id: str, agent_id: str) -> None:
        """The run is over: deliver what is to be delivered of it. Returns at once."""
        agent = self._agents().get(agent_id)
        if agent is not None and _has_any(agent):
            self._begin(run_id)

    async def look_around(self) -> None:
        """Deliver what others have left. Raises StoreError."""
        if any(_has_any(agent) for agent in self._agents().values()):
            for run_id in await self._store.due_deliveries(TOGETHER):
                self._begin(run_id)

    async def close(self, patience_s: float) -> None:
        """Wait so long for what is under way; the rest is due again later."""
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=patience_s)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, run_id: str) -> None:
        if run_id not in self._tasks:
            task = self._tasks[run_id] = asyncio.create_task(self._deliver(run_id), name=f"delivery of {run_id}")
            task.add_done_callback(lambda _: self._tasks.pop(run_id, None))

    async def _deliver(self, run_id: str) -> None:
        try:
            run = await self._store.find_run(run_id)
            agent = None if run is None else self._agents().get(run.agent_id)
            if run is None or agent is None:  # another process may have it
                return
            attempts = await self._store.claim_delivery(run_id, CLAIM_S)
            if attempts is None:
                return
            if await self._told(run, agent):
                await self._store.end_delivery(run_id)
            elif attempts >= MOST_ATTEMPTS:
                log.error("nobody could be told of run %s in %d attempts; it is given up", run_id, attempts)
                await self._store.end_delivery(run_id)
            else:
                wait_s = min(FIRST_WAIT_S * 2 ** (attempts - 1), LONGEST_WAIT_S)
                await self._store.put_off_delivery(run_id, wait_s)
        except AguiBridgeError as error:
            log.warning("run %s is told of later: %s", run_id, error.message)

    async def _told(self, run: RunRecord, agent: Agent) -> bool:
        """Call every hook; whether all came off."""
        if run.expired_at is not None:
            return True
        [record] = await self._store.read(run.run_id, run.last_seq - 1, 1)
        if record.event is None:
            return True
        told = [(await self._call(run, hook, occasion)).came_off for hook, occasion in _calls(run, record.event, agent)]
        return all([*told, await self._title(run, agent)])

    async def _title(self, run: RunRecord, agent: Agent) -> bool:
        """Ask for the title of the run's session, if it has none; whether that came off."""
        hooks, session_id = agent.hooks_at[SESSION_TITLE], run.session_id
        if not hooks or session_id is None:
            return True
        session = await self._store.find_session(run.tenant_id, run.owner_id, session_id)
        if session is None or session.hidden_at is not None or session.title is not None:
            return True
        thread = await self._thread_of(run.thread_id)
        untitled = Untitled(f"{run.run_id}:title", run, tuple(thread.items()))
        for hook in hooks:
            answer = await self._call(run, hook, untitled)
            if not answer.came_off:
                return False
            if isinstance(answer.value, str) and (title := one_line(answer.value, LONGEST)):
                change = SessionChange(title=title, retitle=True, if_untitled=True)
                await self._store.change_session(Owner(run.tenant_id, run.owner_id), session_id, change)
                return True
            if answer.value is not None:
                log.warning("hook %s answered with %r, which is no title", hook.name, type(answer.value).__name__)
        return True

    async def _call(self, run: RunRecord, hook: Hook, occasion: InterruptOpen | RunEnd | Untitled) -> _Answer:
        name, threads, work = f"hook:{hook.name}", self._threads(), partial(hook.function, occasion)
        job: asyncio.Future[Any] = (
            asyncio.create_task(awaited(work), name=name)
            if hook.is_async
            else await threads.start(partial(called, work), name)
        )
        try:
            await asyncio.wait({job}, timeout=self._hook_s)
        finally:
            if not job.done():
                await threads.let_go(job, run.run_id, name, STOP_GRACE_S)
        if not job.done() or job.cancelled():
            log.warning("hook %s did not end within %g s (run %s)", hook.name, self._hook_s, run.run_id)
            return _Answer(came_off=False)
        if (error := job.exception()) is not None:
            log.warning("hook %s failed (run %s)", hook.name, run.run_id, exc_info=error)
            return _Answer(came_off=False)
        return _Answer(came_off=True, value=job.result())


@dataclass(frozen=True, slots=True)
class _Answer:
    """What became of a call."""

    came_off: bool
    value: object = None


def _has_any(agent: Agent) -> bool:
    return any(agent.hooks_at[point] for point in OUTSIDE)


def _calls(run: RunRecord, terminal: e.Event, agent: Agent) -> Iterator[tuple[Hook, InterruptOpen | RunEnd]]:
    """What is told to whom. Of a suspended run's questions only its own: earlier runs have told theirs."""
    if isinstance(terminal, e.RunSuspended):
        for payload in terminal.interrupts:
            if payload["run_id"] == run.run_id:
                members: dict[str, Any] = {name: payload.get(name) for name in _ASKED}
                asked = e.InterruptRaised(**members)
                told = InterruptOpen(f"{run.run_id}:{asked.interrupt_id}", run, asked)
                yield from ((hook, told) for hook in agent.hooks_at[ON_INTERRUPT])
    ended = RunEnd(f"{run.run_id}:end", run, terminal)
    yield from ((hook, ended) for hook in agent.hooks_at[ON_RUN_END])


_ASKED: Final = tuple(field.name for field in fields(e.InterruptRaised))
