"""The catalogue: which sessions and runs there are. A part of the store's port.

The journal finds what it is given an id of; here stands what is listed, renamed and hidden. A hidden session is gone
for everybody who asks from outside: it is in no list, its runs are not found, none begins in it. Its facts stay until
they are purged. Lists go from the newest to the oldest by the time of creation (with equal times by id), which never
changes: what is added while somebody turns pages stands before the first page, and no page shifts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from runtime.journal import KeyedRun, Session
from runtime.run import RunRecord


class Place(NamedTuple):
    """Where a page ended: the time of creation (ms since the epoch) and the id of its last entry."""

    created_at: int
    id: str


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose sessions and runs are asked for."""

    tenant_id: str
    owner_id: str


@dataclass(frozen=True, slots=True)
class SessionChange:
    """What becomes different: another default agent if one is given, the title if `retitle` is set (with `if_untitled`
    only where there is none), and whether it is put away. `at` is when its owner did that, in ms since the epoch."""

    agent_id: str | None = None
    title: str | None = None
    retitle: bool = False
    archived: bool | None = None
    at: int | None = None
    if_untitled: bool = False


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions are wanted: those whose default agent this is, and also those that were put away."""

    agent_id: str | None = None
    archived: bool = False


@dataclass(frozen=True, slots=True)
class UsedSession:
    """A session, and when the last run on its thread was asked for (ms since the epoch)."""

    session: Session
    last_run_at: int | None

    @property
    def place(self) -> Place:
        """Where it stands among the sessions by their last use."""
        return Place(self.last_run_at or self.session.created_at, self.session.session_id)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are wanted: those of a session, those with one of these statuses. None: all."""

    session_id: str | None = None
    statuses: frozenset[str] | None = None


class Catalogue(Protocol):
    """Every method may raise StoreError."""

    async def add_session(self, session: Session) -> None:
        """A new session and its thread, before any run. Raises Unstorable if one of their ids is taken."""
        ...

    async def change_session(self, owner: Owner, session_id: str, change: SessionChange) -> Session | None:
        """The session after the change; None if there is none, or if it is hidden."""
        ...

    async def hide_session(self, owner: Owner, session_id: str, at: int) -> list[RunRecord] | None:
        """Hide the session, and name the runs of its thread that are not over; None if there is none, or if it is
        hidden already. No run begins in it afterwards."""
        ...

    async def list_sessions(self, owner: Owner, before: Place | None, limit: int) -> list[Session]:
        """At most `limit` of the owner's sessions behind a place, hidden ones left out."""
        ...

    async def list_used_sessions(
        self, owner: Owner, wanted: SessionFilter, before: Place | None, limit: int
    ) -> list[UsedSession]:
        """At most `limit` of the owner's sessions behind a place, hidden ones left out: the last used first, one
        without a run by its time of creation. One that is used meanwhile moves to the front."""
        ...

    async def list_runs(self, owner: Owner, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        """At most `limit` of the owner's runs behind a place, those below hidden sessions left out."""
        ...

    async def list_every_run(self, wanted: RunFilter, before: Place | None, limit: int) -> list[RunRecord]:
        """At most `limit` runs behind a place, whoever owns them, those below hidden sessions too: for operators."""
        ...

    async def find_visible_run(self, run_id: str) -> RunRecord | None:
        """A run by its id, unless the session of its root is hidden."""
        ...

    async def runs_of_tree(self, root_run_id: str) -> list[RunRecord]:
        """The root and all runs below it, in the order in which they began."""
        ...

    async def find_keyed(self, owner: Owner, key_digest: str) -> KeyedRun | None:
        """What an idempotency key of this owner was used for."""
        ...
