"""The inbox: what is asked, wherever it was raised, and answers to it from outside the page.

It waits for the runtime. An answer begins the run that goes on with it, on the thread and for the principal that asked
for the work; it is claimed once, whichever way it came. Who may see and answer is the owner, or whom the tool's
`approvers` allow; what is not for somebody does not exist for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from agui_bridge.times import iso, iso_or_none
from runtime import events as e
from runtime.authority import Principal
from runtime.canonical import Json, JsonObject, digest
from runtime.errors import AlreadyAnswered, InvalidInput, NotAnApprover, NotFound, ThreadBusy
from runtime.interrupts import STATUSES, answer
from runtime.journal import Answered, Busy, Conflict, KeyReused, Moved, Queued, QueueFull, Replay, Started
from runtime.journal.catalogue import Place
from runtime.journal.interrupts import StoredInterrupt, answer_digest
from runtime.run import FAILED, INTERRUPTED, RunRecord
from runtime.supervisor import Supervisor
from runtime.thread import Thread

TRIES: Final = 16
"""How often a thread that moves under the reader is read again."""

_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Given:
    """An answer of the native API."""

    status: Literal["resolved", "cancelled"]
    payload: Json = None


def answer_in(document: Json) -> Given:
    """The answer in a request's document. Raises InvalidInput."""
    members = cast("JsonObject", document) if isinstance(document, dict) else {}
    status, unknown = members.get("status"), members.keys() - {"status", "payload"}
    if status not in STATUSES:
        raise InvalidInput("/status must be resolved or cancelled.", details={"path": "/status"})
    if unknown:
        name = sorted(unknown)[0][:80]
        raise InvalidInput(f"There is no member {name!r}; known are status, payload.", details={"path": f"/{name}"})
    return Given(status, members.get("payload") if status == "resolved" else None)


class Inbox:
    """The open interrupts of one supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    async def open(self, principal: Principal, before: Place | None, limit: int) -> list[StoredInterrupt]:
        """At most `limit` of what the principal may answer, behind a place, the newest first. Raises StoreError."""
        store, tenant = self._supervisor.journal, principal.tenant_id
        if not self._supervisor.has_approvers:
            return await store.open_interrupts(tenant, principal.id, before, limit)
        found: list[StoredInterrupt] = []
        while len(found) < limit:
            batch = await store.open_interrupts(tenant, None, before, _BATCH)
            found += [each for each in batch if self._is_for(principal, each)]
            if len(batch) < _BATCH:
                break
            before = Place(batch[-1].raised_at, batch[-1].interrupt_id)
        return found[:limit]

    def document(self, asked: StoredInterrupt) -> JsonObject:
        """An interrupt as the API shows it."""
        raised, now = asked.raised, self._supervisor.now()
        return {
            "interrupt_id": asked.interrupt_id,
            "run_id": asked.run_id,
            "root_run_id": asked.root_run_id,
            "session_id": asked.session_id,
            "owner_id": asked.owner_id,
            "agent_id": asked.agent_id,
            "agent_name": self._supervisor.agent_name(asked.agent_id),
            "tool_call_id": raised.tool_call_id,
            "tool_name": raised.tool_name,
            "reason": raised.reason,
            "message": raised.message,
            "response_schema": raised.response_schema,
            "metadata": raised.metadata,
            "raised_at": iso(asked.raised_at),
            "expires_at": iso_or_none(asked.expires_at),
            "expired": asked.expires_at is not None and asked.expires_at <= now,
        }

    async def answer(self, principal: Principal, interrupt_id: str, given: Given) -> RunRecord:
        """The run that goes on with this answer; the same answer again gives the same run.

        Raises NotFound, NotAnApprover, AlreadyAnswered, AnswerExpired, UnfitAnswer, ThreadBusy, ShuttingDown,
        StoreError.
        """
        for _ in range(TRIES):
            asked = await self._find(principal, interrupt_id)
            run = await (self._claim(principal, asked, given) if asked.is_open else self._again(asked, given))
            if run is not None:
                return run
        raise ThreadBusy("The thread kept changing while it was read; try again.")

    async def _find(self, principal: Principal, interrupt_id: str) -> StoredInterrupt:
        asked = await self._supervisor.journal.find_interrupt(interrupt_id)
        if asked is None or asked.tenant_id != principal.tenant_id:
            raise NotFound
        if not self._is_for(principal, asked):
            raise NotAnApprover if asked.owner_id == principal.id else NotFound
        return asked

    def _is_for(self, principal: Principal, asked: StoredInterrupt) -> bool:
        policy = self._supervisor.approvers(asked.agent_id, asked.raised.tool_name)
        return asked.owner_id == principal.id if policy is None else policy(principal, asked.owner_id)

    async def _again(self, asked: StoredInterrupt, given: Given) -> RunRecord | None:
        """It was answered: the run that did, if the answer was the same. One that failed or was lost is gone on with
        by another."""
        run = await self._supervisor.journal.find_run(asked.answering_run_id or "")
        same = asked.answer_digest == answer_digest(given.status, given.payload)
        if run is None or not same:
            raise AlreadyAnswered(details={"run_id": asked.answering_run_id})
        if run.status not in (FAILED, INTERRUPTED):
            return run
        thread = await self._supervisor.thread(run.thread_id)
        if thread.last_run is None or thread.last_run.run_id != run.run_id:
            return run  # something else came meanwhile
        return await self._begin(asked, run, thread, given, [])

    async def _claim(self, principal: Principal, asked: StoredInterrupt, given: Given) -> RunRecord | None:
        root = await self._supervisor.journal.find_run(asked.root_run_id)
        if root is None:
            raise NotFound
        thread = await self._supervisor.thread(root.thread_id)
        interrupt = next((each for each in thread.open_interrupts() if each.id == asked.interrupt_id), None)
        if interrupt is None:
            return None
        now = self._supervisor.now()
        fact = answer(interrupt, given.status, given.payload, answered_by=principal.id, now=now)
        return await self._begin(asked, root, thread, given, [fact])

    async def _begin(
        self, asked: StoredInterrupt, root: RunRecord, thread: Thread, given: Given, facts: list[e.Event]
    ) -> RunRecord | None:
        """Begin the run that goes on, as the one before it was asked for."""
        supervisor = self._supervisor
        session = await supervisor.journal.find_session(root.tenant_id, root.owner_id, root.session_id or "")
        request = replace(
            await supervisor.line.request_of(root),
            client_run_id=None,
            input_digest=digest(["answer", asked.interrupt_id, given.status, given.payload]),
            base=thread.position,
            facts=facts,
            snapshots=[],
            when_busy="reject",
            continues=None,
            cancel_when_unread=False,
        )
        match await supervisor.begin(request, session, thread):
            case Started(run) | Replay(run):
                return run
            case Busy(run):
                if not supervisor.is_at_work(run.run_id) and await supervisor.close_lost(run):
                    return None
                raise ThreadBusy(details={"run_id": run.run_id})
            case Answered() | Moved() | Conflict() | KeyReused() | Queued() | QueueFull():
                return None
