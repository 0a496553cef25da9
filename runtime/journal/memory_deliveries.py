"""The deliveries of the store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from runtime.run import RunRecord


@dataclass(slots=True)
class _Delivery:
    due_at: int = 0
    attempts: int = 0


class MemoryDeliveries(ABC):
    """The `Deliveries` of a store that knows its runs."""

    def __init__(self) -> None:
        super().__init__()
        self._deliveries: dict[str, _Delivery] = {}

    @abstractmethod
    def _require_open(self) -> None:
        """Raises StoreError if the store is closed."""

    @abstractmethod
    def _now(self) -> int:
        """The store's clock."""

    @abstractmethod
    def _run(self, run_id: str) -> RunRecord | None:
        """A run by its id."""

    async def due_deliveries(self, limit: int) -> list[str]:
        """See the port."""
        self._require_open()
        due = [run_id for run_id in self._deliveries if self._is_due(run_id)]
        return sorted(due, key=lambda run_id: self._deliveries[run_id].due_at)[:limit]

    async def claim_delivery(self, run_id: str, for_s: float) -> int | None:
        """See the port."""
        self._require_open()
        if not self._is_due(run_id):
            return None
        delivery = self._deliveries[run_id]
        delivery.due_at, delivery.attempts = self._now() + round(for_s * 1000), delivery.attempts + 1
        return delivery.attempts

    async def put_off_delivery(self, run_id: str, for_s: float) -> None:
        """See the port."""
        self._require_open()
        if (delivery := self._deliveries.get(run_id)) is not None:
            delivery.due_at = self._now() + round(for_s * 1000)

    async def end_delivery(self, run_id: str) -> None:
        """See the port."""
        self._require_open()
        self._deliveries.pop(run_id, None)

    def _add_delivery(self, run_id: str) -> None:
        """Somebody is to be told of this run."""
        self._deliveries[run_id] = _Delivery()

    def _is_due(self, run_id: str) -> bool:
        delivery, run = self._deliveries.get(run_id), self._run(run_id)
        return delivery is not None and run is not None and run.is_over and delivery.due_at <= self._now()
