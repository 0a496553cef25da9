"""Sessions as their owners see them: made, listed, renamed, deleted.

It waits for the store and knows who may see what; what runs in a session is the supervisor's business. A deleted
session is hidden: from then on it is for everybody as if it had never been, but for its facts, which stay until they
are purged.
"""

from __future__ import annotations

from dataclasses import replace

from runtime.authority import Principal, authorize
from runtime.errors import NotFound
from runtime.journal import Session
from runtime.journal.catalogue import Catalogue, Owner, Place, SessionChange, SessionFilter, UsedSession
from runtime.journal.store import Store
from runtime.run import RunRecord
from runtime.system import Clock, Mint


class Sessions:
    """The sessions of one store. Every method may raise StoreError."""

    def __init__(self, store: Store, clock: Clock, mint: Mint) -> None:
        self._store = store
        self._catalogue: Catalogue = store
        self._clock = clock
        self._mint = mint

    async def create(self, principal: Principal, agent_id: str, title: str | None) -> Session:
        """A new session with nothing in it."""
        now = self._clock.now()
        ids = self._mint("ses"), self._mint("thr")
        session = Session(principal.tenant_id, principal.id, *ids, agent_id, title, now)
        await self._catalogue.add_session(session)
        return session

    async def lookup(self, principal: Principal, session_id: str, action: str) -> Session | None:
        """The principal's session with this id; None if there never was one. Raises NotFound for a deleted one: its id
        stands for it until it is purged."""
        session = await self._store.find_session(principal.tenant_id, principal.id, session_id)
        if session is None:
            return None
        authorize(principal, action, session)
        if session.hidden_at is not None:
            raise NotFound
        return session

    async def find(self, principal: Principal, session_id: str, action: str = "read") -> Session:
        """The principal's session with this id. Raises NotFound."""
        session = await self.lookup(principal, session_id, action)
        if session is None:
            raise NotFound
        return session

    async def page(self, principal: Principal, before: Place | None, limit: int) -> list[Session]:
        """At most `limit` of the principal's sessions behind a place, the newest first."""
        return await self._catalogue.list_sessions(owner_of(principal), before, limit)

    async def used(
        self, principal: Principal, wanted: SessionFilter, before: Place | None, limit: int
    ) -> list[UsedSession]:
        """At most `limit` of the principal's sessions behind a place, the last used first."""
        return await self._catalogue.list_used_sessions(owner_of(principal), wanted, before, limit)

    async def change(self, principal: Principal, session_id: str, change: SessionChange) -> Session:
        """Rename a session, give it another agent, put it away or take it back. Raises NotFound."""
        await self.find(principal, session_id, "update")
        change = replace(change, at=self._clock.now())
        changed = await self._catalogue.change_session(owner_of(principal), session_id, change)
        if changed is None:
            raise NotFound
        return changed

    async def hide(self, principal: Principal, session_id: str) -> list[RunRecord]:
        """Hide a session; the runs that are at work in it, which are to be stopped. Raises NotFound."""
        await self.find(principal, session_id, "delete")
        active = await self._catalogue.hide_session(owner_of(principal), session_id, self._clock.now())
        if active is None:
            raise NotFound
        return active

    async def close(self, principal: Principal, session_id: str) -> None:
        """Hide a session that is about to be erased, if it is not hidden already. Raises NotFound."""
        session = await self._store.find_session(principal.tenant_id, principal.id, session_id)
        authorize(principal, "delete", session)
        await self._catalogue.hide_session(owner_of(principal), session_id, self._clock.now())


def owner_of(principal: Principal) -> Owner:
    """Whose sessions and runs a principal may see."""
    return Owner(principal.tenant_id, principal.id)
