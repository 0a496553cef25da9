"""Interrupts as the store keeps them: which there are, and in which run each was answered. A part of the store's port.

The facts say the same; the rows are what is listed, found by an id, and claimed. They change in the commits of the
facts and in no other way. `interrupt.raised` makes a row. `interrupt.answered` closes it, if it is open: among the
events of an opening that is a claim, and `begin_run` refuses the whole opening if another root run has answered before;
among those of an append it leaves an answered row as it is. Rows belong to the thread of the run that raised them, and
are gone when that has expired, answered or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import orjson

from runtime.canonical import Json, digest
from runtime.errors import StoreError
from runtime.events import Event, InterruptAnswered, InterruptRaised, decode, encode
from runtime.journal.catalogue import Place
from runtime.run import RunRecord


@dataclass(frozen=True, slots=True)
class StoredInterrupt:
    """An interrupt with what became of it. Times are ms since the epoch.

    `run_id` is the run that raised it, `thread_id` its thread, `session_id` that of its root. As long as it is open,
    `status` and all below it is None; it may be open beyond `expires_at`.
    """

    interrupt_id: str
    run_id: str
    thread_id: str
    root_run_id: str
    tenant_id: str
    owner_id: str
    session_id: str | None
    agent_id: str
    raised: InterruptRaised
    raised_at: int
    expires_at: int | None
    status: str | None = None
    """`resolved` or `cancelled`."""
    answer_digest: str | None = None
    """See `answer_digest`: whether another answer is the same."""
    answered_at: int | None = None
    answering_run_id: str | None = None
    """The root run in whose tree it was answered."""

    @property
    def is_open(self) -> bool:
        """Whether nobody has answered."""
        return self.status is None


def answer_digest(status: str, payload: Json) -> str:
    """What makes two answers the same."""
    return digest([status, payload])


class Interrupts(Protocol):
    """Every method may raise StoreError."""

    async def find_interrupt(self, interrupt_id: str) -> StoredInterrupt | None:
        """An interrupt by its id, answered or not, unless the session of its root is hidden."""
        ...

    async def open_interrupts(
        self, tenant_id: str, owner_id: str | None, before: Place | None, limit: int
    ) -> list[StoredInterrupt]:
        """At most `limit` open interrupts of an owner, or of a whole tenant, behind a place; those below hidden
        sessions left out. Like all lists from the newest to the oldest, by `raised_at` and id."""
        ...


# --- what facts change --------------------------------------------------------------------------------------------


class Raised(NamedTuple):
    """A new row; what else is in it is in the row of the run."""

    interrupt_id: str
    run_id: str
    payload: bytes
    raised_at: int
    expires_at: int | None


class Closed(NamedTuple):
    """What is written into a row that is open."""

    interrupt_id: str
    status: str
    answer_digest: str
    answered_at: int
    answering_run_id: str


def raised_in(run: RunRecord, events: Iterable[Event], occurred_at: int) -> list[Raised]:
    """The rows that these events of a run make."""
    return [
        Raised(event.interrupt_id, run.run_id, encode(event), occurred_at, event.expires_at)
        for event in events
        if isinstance(event, InterruptRaised)
    ]


def closed_in(run: RunRecord, events: Iterable[Event], occurred_at: int) -> list[Closed]:
    """The rows that these events of a run close, each once: the first answer counts."""
    closed: dict[str, Closed] = {}
    for event in events:
        if isinstance(event, InterruptAnswered):
            answer = answer_digest(event.status, event.payload)
            its = Closed(event.interrupt_id, event.status, answer, occurred_at, run.root_run_id)
            closed.setdefault(event.interrupt_id, its)
    return list(closed.values())


# --- reading ------------------------------------------------------------------------------------------------------


def raised_of(interrupt_id: str, payload: bytes) -> InterruptRaised:
    """The event of a stored row. Raises StoreError if it cannot be read."""
    try:
        event = decode(InterruptRaised.event_type, payload)
    except (TypeError, orjson.JSONDecodeError) as error:
        raise StoreError(f"Interrupt {interrupt_id} cannot be read.", code="store_corrupt") from error
    assert isinstance(event, InterruptRaised), "events are decoded as what they are"
    return event
