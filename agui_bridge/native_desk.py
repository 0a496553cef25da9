"""The desk of the native API: takes one message to the run that answers it, or finds the run that did.

It waits for the runtime and knows the order of things: who asks the same again is told the same, whatever has become
of the agent or the thread since; only then is there anything to begin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from agui_bridge.media_intake import MediaIntake
from agui_bridge.native_intake import NewMessage, request_digest, run_request
from runtime.authority import Principal
from runtime.beginning import messages_alone
from runtime.errors import IdempotencyConflict, NotFound, ThreadBusy, ThreadQueueFull
from runtime.journal import Answered, Busy, Conflict, Idempotency, KeyReused, Moved, Queued, QueueFull, Replay, Started
from runtime.journal.inbox import REJECT
from runtime.media_shelf import Referred
from runtime.run import QUEUED, RunRecord
from runtime.sessions import owner_of
from runtime.supervisor import SUPERSEDED, Supervisor
from runtime.system import Mint, mint_uuid7

SETTLE_S: Final = 10.0
"""How long a superseded run may take to end before its thread counts as busy, in seconds."""

TRIES: Final = 16
"""How often a thread that moves under the reader is read again."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that was taken in, and the run that answers it."""

    message_id: str
    run: RunRecord


class NativeDesk:
    """Takes messages for the sessions of one supervisor."""

    def __init__(
        self,
        supervisor: Supervisor,
        media: MediaIntake,
        *,
        queue_limit: int | None = None,
        mint: Mint = mint_uuid7,
    ) -> None:
        self._supervisor = supervisor
        self._media = media
        self._queue_limit = queue_limit
        self._mint = mint

    async def take(self, principal: Principal, session_id: str, message: NewMessage, key_digest: str) -> Taken:
        """Begin the run that answers `message`, or find it.

        Raises NotFound (an agent, too, and media), InvalidInput (of media), IdempotencyConflict, ThreadBusy,
        ThreadQueueFull, ShuttingDown, StoreError.
        """
        session = await self._supervisor.sessions.find(principal, session_id, "run")
        wanted = request_digest(session_id, message)
        used = await self._supervisor.journal.find_keyed(owner_of(principal), key_digest)
        if used is not None:
            if used.request_digest != wanted:
                raise IdempotencyConflict(details={"run_id": used.run.run_id})
            return Taken(used.message_id, used.run)
        agent_id = message.agent_id or session.agent_id
        require_agent(self._supervisor, agent_id)
        idempotency = Idempotency(key_digest, wanted, self._mint("msg"))
        referred: Referred = {}
        content = await self._media.content(message.content, principal, session.thread_id, referred)
        message, waits = replace(message, content=content), False
        for _ in range(TRIES):
            thread = await self._supervisor.thread(session.thread_id)
            request = run_request(principal, session, thread, message, agent_id, idempotency, self._supervisor.now())
            if waits and (messages := messages_alone(request.facts)) is not None:
                limit = self._queue_limit
                request = replace(request, facts=messages, when_busy=message.busy, queue_limit=limit)
            await self._media.keep(request.facts, principal, session.thread_id, referred)
            match await self._supervisor.begin(request, session, thread):
                case Started(run):
                    return Taken(idempotency.message_id, run)
                case Replay(run, message_id):
                    return Taken(message_id or idempotency.message_id, run)
                case KeyReused(run):
                    raise IdempotencyConflict(details={"run_id": run.run_id})
                case Queued(run):
                    return Taken(idempotency.message_id, run)
                case QueueFull(run):
                    raise ThreadQueueFull(details={"run_id": run.run_id})
                case Busy(run):
                    waits = await self._has_to_wait(run, message.busy)
                case Conflict() | Answered() | Moved():
                    pass
        raise ThreadBusy("The thread kept changing while it was read; try again.")

    async def _has_to_wait(self, run: RunRecord, busy: str) -> bool:
        """Another run has the thread. False if it made way: nobody performed it any more, or nobody reads what a page
        asked for. Raises ThreadBusy for a message that is not to wait."""
        if run.status != QUEUED:
            if not self._supervisor.is_at_work(run.run_id) and await self._supervisor.close_lost(run):
                return False
            if await self._supervisor.is_unread(run.run_id):
                await self._supervisor.cancel(run.run_id, SUPERSEDED, SETTLE_S)
                return False
        if busy == REJECT:
            raise ThreadBusy(details={"run_id": run.run_id})
        return True


def require_agent(supervisor: Supervisor, agent_id: str) -> None:
    """Return if there is such an agent. Raises NotFound."""
    if agent_id not in supervisor.performers:
        raise NotFound(f"There is no agent {agent_id!r}.", details={"path": "/agent_id"})
