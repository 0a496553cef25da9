"""Wakes: what processes over one store tell each other so that nobody has to poll. A part of the store's port.

A wake carries no facts: it says where to look. It may be lost, doubled or late, and is sent only after what it tells
of was committed; the tables stay the authority, and whoever waits also looks now and then by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

WakeKind: TypeAlias = Literal["events", "cancel", "read", "inbox"]
"""`events`: the run has events up to `seq`; `cancel`: a mark was set; `read`: another process has begun to read the
run; `inbox`: something waits for the run at its next round boundary, or for its thread."""


class Wake(NamedTuple):
    """A hint about one run. `seq` belongs to `events` alone."""

    kind: WakeKind
    run_id: str
    seq: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """Where a run's journal ends at present, and whether that is its end for good."""

    last_seq: int
    is_over: bool


class Wakes(Protocol):
    """Every method but `subscribe` may raise StoreError."""

    def subscribe(self, on_wake: Callable[[Wake | None], None]) -> None:
        """Call this, on the event loop, for every wake from another process; with None when wakes may have been lost
        (a listener that connected again): then everything that waits looks for itself. One subscriber; before `open`.
        """
        ...

    async def wake(self, wake: Wake) -> None:
        """Tell the other processes. Returns at once in a store that no other process can have open."""
        ...

    async def ends(self, run_ids: Sequence[str]) -> dict[str, End]:
        """Where these runs' journals end, in one question; runs that are not there are left out."""
        ...
