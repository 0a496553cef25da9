"""The desk of the native API: takes one message to the run that answers it, or finds the run that did.

It waits for the runtime and knows the order of things: who asks the same again is told the same, whatever has become
of the agent or the thread since; only then is there anything to begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agui_bridge.native_intake import NewMessage, request_digest, run_request
from runtime.authority import Principal
from runtime.errors import IdempotencyConflict, NotFound, ThreadBusy
from runtime.journal import Busy, Conflict, Idempotency, KeyReused, Moved, Replay, Started
from runtime.run import RunRecord
from runtime.sessions import owner_of
from runtime.supervisor import Supervisor
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

    def __init__(self, supervisor: Supervisor, *, mint: Mint = mint_uuid7) -> None:
        self._supervisor = supervisor
        self._mint = mint

    async def take(self, principal: Principal, session_id: str, message: NewMessage, key_digest: str) -> Taken:
        """Begin the run that answers `message`, or find it.

        Raises NotFound (an agent, too), IdempotencyConflict, ThreadBusy, ShuttingDown, StoreError.
        """
        session = await self._supervisor.sessions.find(principal, session_id, "run")
        wanted = request_digest(session_id, message)
        used = await self._supervisor.journal.find_keyed(owner_of(principal), key_digest)
        if used is not None:
            if used.request_digest != wanted:
                raise IdempotencyConflict(details={"run_id": used.run.run_id})
            return Taken(used.message_id, used.run)
        agent_id = message.agent_id or session.agent_id
        self.require_agent(agent_id)
        idempotency = Idempotency(key_digest, wanted, self._mint("msg"))
        for _ in range(TRIES):
            thread = await self._supervisor.thread(session.thread_id)
            request = run_request(principal, session, thread, message, agent_id, idempotency)
            match await self._supervisor.begin(request, session, thread):
                case Started(run):
                    return Taken(idempotency.message_id, run)
                case Replay(run, message_id):
                    return Taken(message_id or idempotency.message_id, run)
                case KeyReused(run):
                    raise IdempotencyConflict(details={"run_id": run.run_id})
                case Busy(run):
                    await self._make_way(run)
                case Conflict() | Moved():
                    pass
        raise ThreadBusy("The thread kept changing while it was read; try again.")

    def require_agent(self, agent_id: str) -> None:
        """Return if there is such an agent. Raises NotFound."""
        if agent_id not in self._supervisor.performers:
            raise NotFound(f"There is no agent {agent_id!r}.", details={"path": "/agent_id"})

    async def _make_way(self, run: RunRecord) -> None:
        """Another run has the thread. It makes way if nobody performs it any more, or nobody reads what a page asked
        for. Raises ThreadBusy. Policies that let a message wait or join in have their place here."""
        if not self._supervisor.is_at_work(run.run_id):
            if not await self._supervisor.close_lost(run):
                raise ThreadBusy(details={"run_id": run.run_id})
        elif self._supervisor.is_unread(run.run_id):
            await self._supervisor.cancel(run.run_id, "superseded", SETTLE_S)
        else:
            raise ThreadBusy(details={"run_id": run.run_id})
