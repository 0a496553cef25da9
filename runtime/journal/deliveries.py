"""Deliveries: runs of which somebody outside has to be told when they are over. A part of the store's port.

Which runs those are is said when they begin. When one is over, its delivery is due, and stays so until somebody says
that it was done: a process that dies in between leaves it to the next. A claim keeps others away for a while, by the
store's clock.
"""

from __future__ import annotations

from typing import Protocol


class Deliveries(Protocol):
    """Every method may raise StoreError."""

    async def due_deliveries(self, limit: int) -> list[str]:
        """At most `limit` runs that are over and of which nobody has told yet, those that are due the longest first;
        without those that are claimed or put off."""
        ...

    async def claim_delivery(self, run_id: str, for_s: float) -> int | None:
        """Take the run's delivery for so many seconds; how often it was taken, this time included. None if it is not
        due: the run is not over, or somebody else has it, or was done with it."""
        ...

    async def put_off_delivery(self, run_id: str, for_s: float) -> None:
        """It did not come off: it is due again in so many seconds."""
        ...

    async def end_delivery(self, run_id: str) -> None:
        """It is done, or given up."""
        ...
