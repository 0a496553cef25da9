"""How a run begins: what its first transaction holds.

Pure. Whoever begins a run asks here, so that each has its record, its frozen agent and context, and first of all facts
`run.started`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runtime import events as e
from runtime.canonical import JsonObject, canonical, digest_of
from runtime.ending import closing_output
from runtime.hooks import delivers
from runtime.journal import Opening, Session
from runtime.journal.inbox import Starting
from runtime.pause import standing
from runtime.request import RunRequest
from runtime.run import QUEUED, RunRecord
from runtime.stored_request import stored_request
from runtime.thread import Thread
from runtime.titles import first_words


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
    agent, context, asked = canonical(agent_snapshot), canonical(_context(request)), stored_request(request)
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
        request_checksum=digest_of(asked),
        continues=request.continues,
    )
    return Opening(
        run=run,
        session=_new_session(request, thread.thread_id, now) if session is None else None,
        events=_first_facts(request, run.client_run_id, thread, now),
        occurred_at=now,
        contents={digest_of(agent): agent, digest_of(context): context, digest_of(asked): asked},
        repeatable=request.repeatable,
        lease_s=lease_s,
        idempotency=request.idempotency,
        when_busy=request.when_busy,
        queue_limit=request.queue_limit,
        default_title=None if session is None or session.default_title is not None else first_words(request.facts),
        delivers=delivers(agent_snapshot),
    )


def starting_of(
    run: RunRecord,
    request: RunRequest,
    thread: Thread,
    agent_snapshot: JsonObject,
    *,
    executor_instance_id: str,
    now: int,
    lease_s: float,
) -> Starting:
    """What `start_queued` is given for a queued run on `thread`, as it stands now.

    What still waits for the page is closed, as by every new message; messages that were said meanwhile are not said
    again, and if that leaves none the run has nothing to answer. Nor has it while somebody is asked something.
    """
    agent = canonical(agent_snapshot)
    unsaid = [fact for fact in request.facts if not _is_said(fact, thread)]
    pause = standing(thread, now)
    closed = [*pause.facts, *(closing_output(call, "unanswered") for call in thread.open_calls())] if unsaid else []
    answers = (bool(unsaid) or not request.facts) and not pause.waits
    facts = unsaid if pause.waits else [*closed, *unsaid]
    placed = replace(request, facts=facts, call_model=answers)
    return Starting(
        run_id=run.run_id,
        fence=run.fence,
        base=thread.position,
        executor_instance_id=executor_instance_id,
        events=_first_facts(placed, run.client_run_id, thread, now),
        occurred_at=now,
        lease_s=lease_s,
        agent_snapshot_checksum=digest_of(agent),
        contents={digest_of(agent): agent},
    )


def unsaid_messages(request: RunRequest, thread: Thread) -> list[e.Event]:
    """The messages of a request that waits, without those that were said meanwhile."""
    return [fact for fact in request.facts if not _is_said(fact, thread)]


def messages_alone(facts: Sequence[e.Event]) -> list[e.Event] | None:
    """The new user messages, if a request brings nothing else that matters while its thread is busy; None if it does.

    What it would close is closed when its turn has come. What it says of the state is not taken: the run at work is
    changing that.
    """
    messages = [fact for fact in facts if isinstance(fact, e.MessageCompleted) and fact.runtime_role is None]
    beside = [fact for fact in facts if fact not in messages and not _may_be_dropped(fact)]
    return [*messages] if messages and not beside else None


def _may_be_dropped(fact: e.Event) -> bool:
    match fact:
        case e.ToolCallCompleted(kind="unanswered" | "not_run") | e.StateSnapshot():
            return True
        case e.InterruptAnswered(by_itself=why):
            return why is not None
        case _:
            return False


def _is_said(fact: e.Event, thread: Thread) -> bool:
    return isinstance(fact, e.MessageCompleted) and fact.message_id in thread.user_ids


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
    return Session(
        principal.tenant_id,
        principal.id,
        request.session_id,
        thread_id,
        request.agent_id,
        None,
        now,
        default_title=first_words(request.facts),
    )


def _first_facts(request: RunRequest, client_run_id: str, thread: Thread, now: int) -> list[e.Event]:
    started = e.RunStarted(
        started_at=now,
        client_run_id=client_run_id,
        agent_id=request.agent_id,
        base_state_digest=digest_of(canonical(thread.state)),
        snapshots=request.snapshots,
        continues=request.continues,
    )
    over: list[e.Event] = [] if request.call_model else [_over_at_once(thread, request.facts)]
    return [started, *request.facts, *over]


def _over_at_once(thread: Thread, facts: Sequence[e.Event]) -> e.Event:
    """The end of a run that has nothing to do: what is still asked on the thread is asked again."""
    answered = {fact.interrupt_id for fact in facts if isinstance(fact, e.InterruptAnswered)}
    asked = [interrupt.as_payload() for interrupt in thread.open_interrupts() if interrupt.id not in answered]
    return e.RunSuspended(asked) if asked else e.RunCompleted()
