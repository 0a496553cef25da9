"""What a journal decides, apart from where it keeps things: pure rules that every implementation shares.

Given what the store holds and what somebody wants to write, these functions say whether it may be written and what
the run's record is afterwards. They know no database, no clock and no threads. Above stand the implementations of
the port; below, the run's state machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from runtime.errors import AppendConflict, FenceLost, NotFound
from runtime.events import (
    EVENT_TYPES,
    ChildStarted,
    Event,
    InterruptAnswered,
    Record,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    RunSuspended,
    encode,
)
from runtime.journal import (
    Answered,
    Busy,
    Conflict,
    KeyedRun,
    KeyReused,
    Moved,
    Opening,
    Queued,
    QueueFull,
    Replay,
    Session,
    Started,
)
from runtime.journal.aliases import NO_REQUEST, Alias
from runtime.journal.drafts import Draft, Unstorable, count_of
from runtime.journal.inbox import INTERRUPT, REJECT, Starting
from runtime.journal.interrupts import StoredInterrupt
from runtime.run import FAILED, INTERRUPTED, QUEUED, TERMINAL, RunRecord, status_after

REPEATABLE = frozenset({FAILED, INTERRUPTED})
"""How a run may have ended so that a repeatable request runs again."""


# --- appending ----------------------------------------------------------------------------------------------------


def is_repeat(run: RunRecord, last_seq: int, fence: int, expected_seq: int, count: int) -> bool:
    """Whether an append of `count` events can only be one that was committed before (to be compared then).

    Raises FenceLost for a wrong fence or a run that is over, AppendConflict if the journal ends elsewhere.
    """
    if fence != run.fence:
        raise FenceLost(f"Run {run.run_id} was taken over: its fence is {run.fence}, not {fence}.")
    if count and expected_seq + count <= last_seq:
        return True
    if run.is_over:
        raise FenceLost(f"Run {run.run_id} is over ({run.status}).")
    if expected_seq != last_seq:
        raise AppendConflict(f"Run {run.run_id} ends at {last_seq}, not at {expected_seq}.")
    return False


def are_same(stored: Sequence[Record], drafts: Sequence[Draft]) -> bool:
    """Whether the stored records are exactly these drafts."""
    there = [(record.event_type, record.payload) for record in stored]
    return there == [(event.event_type, encode(event)) for draft in drafts for event in draft.events]


def confirm_repeat(run: RunRecord, stored: Sequence[Record], drafts: Sequence[Draft]) -> None:
    """Return if the stored records are exactly these drafts. Raises FenceLost if the run is over, AppendConflict."""
    if are_same(stored, drafts):
        return
    if run.is_over:
        raise FenceLost(f"Run {run.run_id} is over ({run.status}).")
    raise AppendConflict(f"Run {run.run_id} has other events at this place.")


def leased(run: RunRecord, lease_s: float | None, now: int) -> RunRecord:
    """The run, held by its executor for so many seconds from `now`; without a lease, as it is."""
    return run if lease_s is None else replace(run, lease_expires_at=now + round(lease_s * 1000))


def lease_ran_out(run: RunRecord, now: int) -> bool:
    """Whether nobody holds the run any more at `now`, by the store's clock."""
    return run.lease_expires_at is None or run.lease_expires_at <= now


def moves(drafts: Sequence[Draft]) -> bool:
    """Whether any of these events changes the run's record beyond its last_seq."""
    return not _RUN_EVENTS.isdisjoint([type(draft.event) for draft in drafts])


def opens_tree(run: RunRecord, drafts: Sequence[Draft]) -> bool:
    """Whether events of a tree are counted from behind these on: the root has begun to hand out work."""
    return run.parent_run_id is None and ChildStarted in [type(draft.event) for draft in drafts]


def advance(run: RunRecord, last_seq: int, drafts: Sequence[Draft], occurred_at: int) -> RunRecord:
    """The run's record when these events have happened and its journal ends at `last_seq`.

    Raises IllegalTransition. Everything but the end of the journal follows from the events.
    """
    happened = [draft.event for draft in drafts]
    changes: dict[str, Any] = {"status": status_after(run.status, happened), "last_seq": last_seq}
    for event in happened:
        effect = _EFFECTS.get(type(event))
        if effect is not None:
            changes |= effect(event)
    if changes["status"] in TERMINAL:
        changes["finished_at"] = occurred_at
    return replace(run, **changes)


def _started(event: RunStarted) -> dict[str, Any]:
    return {"started_at": event.started_at}


def _completed(event: RunCompleted | RunSuspended) -> dict[str, Any]:
    return {"final_message_id": event.message_id, "usage": event.usage}


def _failed(event: RunFailed) -> dict[str, Any]:
    return {"error": event.error, "usage": event.usage}


def _stopped(event: RunCancelled | RunInterrupted) -> dict[str, Any]:
    return {"usage": event.usage}


_EFFECTS: dict[type[Event], Callable[[Any], dict[str, Any]]] = {
    RunStarted: _started,
    RunCompleted: _completed,
    RunFailed: _failed,
    RunCancelled: _stopped,
    RunInterrupted: _stopped,
    RunSuspended: _completed,
}

_RUN_EVENTS = frozenset(cls for name, cls in EVENT_TYPES.items() if name.startswith("run."))


# --- beginning ----------------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """An interrupt that somebody wants to answer, and the root run in which it was answered."""

    interrupt: StoredInterrupt
    answered_in: RunRecord | None


@dataclass(frozen=True, slots=True)
class Standing:
    """What the store holds where a run wants to begin.

    `owner` is the thread's `(tenant_id, owner_id)`, None for a new thread; `session` the stored one under the
    opening's key. `same` is the newest run of this thread with the opening's client_run_id and digest, `named` the
    newest with that client_run_id, `active` the one at work. `position` is that of the thread which the
    session has, or else of the run's. `hidden` says whether the stored session, or that of the thread, is;
    `keyed` is what the opening's idempotency key was used for. `followed` are the runs by which requests with the
    opening's client_run_id were answered though others had begun them, by the digests of those requests.
    `queued` runs wait for the thread, `first_queued` is the first in line; `continued` goes on already with the run
    that the opening continues. `asked` are the interrupts that the opening answers, by their ids.
    """

    owner: tuple[str, str] | None
    session: Session | None
    same: RunRecord | None
    named: RunRecord | None
    active: RunRecord | None
    position: int
    hidden: bool = False
    keyed: KeyedRun | None = None
    followed: Mapping[str, RunRecord] = field(default_factory=dict[str, RunRecord])
    first_queued: RunRecord | None = None
    queued: int = 0
    continued: RunRecord | None = None
    asked: Mapping[str, Asked] = field(default_factory=dict[str, Asked])


class Wait(NamedTuple):
    """The run may be stored, and waits for its thread behind another."""

    attempt: int
    behind: RunRecord


def attempt_or_refusal(
    opening: Opening, standing: Standing
) -> int | Wait | Replay | KeyReused | Conflict | Answered | Busy | QueueFull | Moved:
    """The number of the attempt that may begin, or wait; or why none may.

    Raises NotFound for somebody else's thread, and for one whose session is hidden; Unstorable for answers to what
    nobody asked.
    """
    run = opening.run
    same = standing.same or standing.followed.get(run.input_digest)
    named = standing.named or next(iter(standing.followed.values()), None)
    if standing.hidden or standing.owner not in (None, (run.tenant_id, run.owner_id)):
        raise NotFound
    if opening.idempotency is not None and (keyed := standing.keyed) is not None:
        if keyed.request_digest == opening.idempotency.request_digest:
            return Replay(keyed.run, keyed.message_id)
        return KeyReused(keyed.run)
    if standing.continued is not None:
        return Replay(standing.continued)
    if standing.session is not None and standing.session.thread_id != run.thread_id:
        return Moved(standing.position)
    attempt = run.attempt
    if same is not None:
        if not (opening.repeatable and same.status in REPEATABLE):
            return Replay(same)
        attempt = max(attempt, same.attempt + 1)
    elif named is not None and not opening.repeatable:
        return Conflict(named)
    # Before busy: while the run that has answered is at work, whoever repeats or contradicts it is told of the answer.
    if (taken := _taken_claim(opening, standing)) is not None:
        return taken
    if (other := standing.active or standing.first_queued) is not None:
        if opening.when_busy == REJECT:
            return Busy(other)
        if opening.queue_limit is not None and standing.queued >= opening.queue_limit:
            return QueueFull(other)
        return Wait(attempt, other)
    if standing.position != run.base:
        return Moved(standing.position)
    return attempt


def _taken_claim(opening: Opening, standing: Standing) -> Answered | None:
    """The first interrupt that the opening answers, and another tree has answered before."""
    run = opening.run
    for event in opening.events:
        if isinstance(event, InterruptAnswered):
            its, answered_in = standing.asked.get(event.interrupt_id, (None, None))
            if its is None or (its.tenant_id, its.owner_id) != (run.tenant_id, run.owner_id):
                raise Unstorable(f"Run {run.run_id} answers {event.interrupt_id}, which nobody has asked its owner.")
            if its.is_open or its.answering_run_id == run.root_run_id:
                continue
            if answered_in is None:
                raise Unstorable(f"Run {run.run_id} answers {event.interrupt_id}, as an erased run has done before.")
            return Answered(answered_in, its.interrupt_id)
    return None


def admitted(
    opening: Opening, answer: int | Wait, drafts: Sequence[Draft], now: int
) -> tuple[RunRecord, Sequence[Draft]]:
    """The record of a run that may begin, with its first facts; of one that waits, with none."""
    if isinstance(answer, Wait):
        waits = replace(opening.run, attempt=answer.attempt, base=0, executor_instance_id=None)
        return replace(waits, when_busy=opening.when_busy), ()
    asked = leased(replace(opening.run, attempt=answer), opening.lease_s, now)
    return advance(asked, count_of(drafts), drafts, opening.occurred_at), drafts


def begun_of(run: RunRecord, answer: int | Wait, records: list[Record]) -> Started | Queued:
    """What `begin_run` answers for a run that was stored."""
    return Queued(run, answer.behind) if isinstance(answer, Wait) else Started(run, records)


def place_in_line(run: RunRecord) -> tuple[bool, bool]:
    """Sorts the runs that wait for a thread; those of the same place stay in the order in which they came."""
    return run.continues is None, run.when_busy != INTERRUPT


def may_start(run: RunRecord | None, starting: Starting, standing: Standing) -> bool:
    """Whether a queued run may begin; see `Inbox.start_queued`."""
    is_next = standing.first_queued is not None and standing.first_queued.run_id == starting.run_id
    is_free = standing.active is None and standing.position == starting.base
    return run is not None and run.status == QUEUED and run.fence == starting.fence and is_next and is_free


def started(run: RunRecord, starting: Starting, drafts: Sequence[Draft], now: int) -> RunRecord:
    """The record of a queued run that begins."""
    executor, checksum = starting.executor_instance_id, starting.agent_snapshot_checksum
    placed = replace(run, base=starting.base, fence=run.fence + 1, executor_instance_id=executor)
    asked = leased(replace(placed, agent_snapshot_checksum=checksum), starting.lease_s, now)
    return advance(asked, count_of(drafts), drafts, starting.occurred_at)


def answered_before(alias: Alias, same: RunRecord | None, followed: Mapping[str, RunRecord]) -> RunRecord | None:
    """The run that has answered the alias's request already; None if the alias is to be kept.

    `same` and `followed` as in `Standing`, for the request of the alias.
    """
    if alias.input_digest == NO_REQUEST:
        return None
    return same or followed.get(alias.input_digest)
