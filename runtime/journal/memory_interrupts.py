"""The interrupts of the store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from runtime.events import InterruptAnswered, InterruptRaised
from runtime.journal import Opening
from runtime.journal.catalogue import Place
from runtime.journal.changes import Asked
from runtime.journal.drafts import Draft, Unstorable
from runtime.journal.interrupts import StoredInterrupt, closed_in, raised_in, raised_of
from runtime.journal.memory_catalogue import page_of
from runtime.run import RunRecord


class MemoryInterrupts(ABC):
    """The `Interrupts` of a store that knows its runs and which of them are hidden."""

    def __init__(self) -> None:
        super().__init__()
        self._interrupts: dict[str, tuple[StoredInterrupt, bytes]] = {}
        """Each with the payload that it is read from, so that no reader can change what is stored."""
        self._runs: dict[str, RunRecord]

    @abstractmethod
    def _require_open(self) -> None:
        """Raises StoreError if the store is closed."""

    @abstractmethod
    def _is_below_hidden(self, run: RunRecord) -> bool:
        """Whether the session of the run's root is hidden."""

    async def find_interrupt(self, interrupt_id: str) -> StoredInterrupt | None:
        """See the port."""
        self._require_open()
        found = self._interrupts.get(interrupt_id)
        return None if found is None or self._is_below_hidden(self._runs[found[0].run_id]) else _as_read(*found)

    async def open_interrupts(
        self, tenant_id: str, owner_id: str | None, before: Place | None, limit: int
    ) -> list[StoredInterrupt]:
        """See the port."""
        self._require_open()
        shown = {
            Place(interrupt.raised_at, interrupt.interrupt_id): (interrupt, payload)
            for interrupt, payload in self._interrupts.values()
            if interrupt.is_open
            and interrupt.tenant_id == tenant_id
            and owner_id in (None, interrupt.owner_id)
            and not self._is_below_hidden(self._runs[interrupt.run_id])
        }
        return [_as_read(*shown[place]) for place in page_of(shown, before, limit)]

    def _require_unasked(self, drafts: Sequence[Draft]) -> None:
        """Raises Unstorable if one of the interrupts that these raise is there already."""
        for draft in drafts:
            if isinstance(draft.event, InterruptRaised) and draft.event.interrupt_id in self._interrupts:
                raise Unstorable(f"There is an interrupt {draft.event.interrupt_id} already.")

    def _keep_interrupts(self, run: RunRecord, drafts: Sequence[Draft], occurred_at: int) -> None:
        """Do what these facts of the run say."""
        events = [draft.event for draft in drafts]
        root = self._runs.get(run.root_run_id, run)
        for new in raised_in(run, events, occurred_at):
            raised = raised_of(new.interrupt_id, new.payload)
            place = (run.run_id, run.thread_id, run.root_run_id)
            owner = (run.tenant_id, run.owner_id, root.session_id, run.agent_id)
            row = StoredInterrupt(new.interrupt_id, *place, *owner, raised, new.raised_at, new.expires_at)
            self._interrupts[new.interrupt_id] = (row, new.payload)
        for closed in closed_in(run, events, occurred_at):
            row, payload = self._interrupts.get(closed.interrupt_id, (None, b""))
            if row is not None and row.is_open:
                self._interrupts[closed.interrupt_id] = (replace(row, **closed._asdict()), payload)

    def _asked(self, opening: Opening) -> dict[str, Asked]:
        """The interrupts that the opening answers."""
        asked: dict[str, Asked] = {}
        for event in opening.events:
            if isinstance(event, InterruptAnswered) and (found := self._interrupts.get(event.interrupt_id)):
                asked[event.interrupt_id] = Asked(found[0], self._runs.get(found[0].answering_run_id or ""))
        return asked


def _as_read(interrupt: StoredInterrupt, payload: bytes) -> StoredInterrupt:
    return replace(interrupt, raised=raised_of(interrupt.interrupt_id, payload))
