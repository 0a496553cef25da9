"""How a run begins: what its first transaction holds.

Pure. Whoever begins a run asks here, so that each has its record, its frozen agent and context, and first of all facts
`run.started`.
"""

from __future__ import annotations

from runtime import events as e
from runtime.canonical import JsonObject, canonical, digest_of
from runtime.journal import Opening, Session
from runtime.request import RunRequest
from runtime.run import QUEUED, RunRecord
from runtime.thread import Thread


def opening_of(
    request: RunRequest,
    session: Session | None,
    thread: Thread,
    agent_snapshot: JsonObject,
    *,
    run_id: str,
    executor_instance_id: str,
    now: int,
    lease_s: float | None = None,
) -> Opening:
    """What `begin_run` is given for this request on `thread`, as it was read; without a session one is made."""
    agent, context = canonical(agent_snapshot), canonical(_context(request))
    run = RunRecord(
        run_id=run_id,
        tenant_id=request.principal.tenant_id,
        owner_id=request.principal.id,
        thread_id=thread.thread_id,
        session_id=request.session_id,
        agent_id=request.agent_id,
        client_run_id=request.client_run_id or run_id,
        input_digest=request.input_digest,
        attempt=1,
        status=QUEUED,
        base=request.base,
        last_seq=0,
        fence=1,
        root_run_id=request.root_run_id or run_id,
        created_at=now,
        parent_run_id=request.parent_run_id,
        executor_instance_id=executor_instance_id,
        agent_snapshot_checksum=digest_of(agent),
        context_snapshot_checksum=digest_of(context),
    )
    return Opening(
        run=run,
        session=_new_session(request, thread.thread_id, now) if session is None else None,
        events=_first_facts(request, run.client_run_id, thread, now),
        occurred_at=now,
        contents={digest_of(agent): agent, digest_of(context): context},
        repeatable=request.repeatable,
        lease_s=lease_s,
        idempotency=request.idempotency,
    )


def _context(request: RunRequest) -> JsonObject:
    return {
        "context": request.context,
        "client_tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.client_tools
        ],
        "budget": request.budget.as_payload() if request.budget is not None else None,
        "input_digest": request.input_digest,
        "history_position": request.base,
    }


def _new_session(request: RunRequest, thread_id: str, now: int) -> Session | None:
    if request.session_id is None:  # a child's thread has none
        return None
    principal = request.principal
    return Session(principal.tenant_id, principal.id, request.session_id, thread_id, request.agent_id, None, now)


def _first_facts(request: RunRequest, client_run_id: str, thread: Thread, now: int) -> list[e.Event]:
    started = e.RunStarted(
        started_at=now,
        client_run_id=client_run_id,
        agent_id=request.agent_id,
        base_state_digest=digest_of(canonical(thread.state)),
        snapshots=request.snapshots,
    )
    over: list[e.Event] = [] if request.call_model else [e.RunCompleted()]
    return [started, *request.facts, *over]
