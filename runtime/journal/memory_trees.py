"""The trees of the store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from heapq import merge
from itertools import islice

from runtime.events import Record
from runtime.run import RunRecord


class MemoryTrees(ABC):
    """The `Trees` of a store that knows its runs and reads their records."""

    def __init__(self) -> None:
        super().__init__()
        self._trees: dict[str, int] = {}
        """The last root_seq of each root that has had children."""

    @abstractmethod
    def _require_open(self) -> None:
        """Raises StoreError if the store is closed."""

    @abstractmethod
    def _run(self, run_id: str) -> RunRecord | None:
        """A run by its id."""

    @abstractmethod
    def _behind(self, run_id: str, after: int, limit: int) -> list[Record]:
        """At most `limit` records of a run."""

    async def read_tree(self, places: Mapping[str, int], limit: int) -> list[Record]:
        """See the port."""
        self._require_open()
        pages = [self._behind(run_id, after, limit) for run_id, after in places.items()]
        return list(islice(merge(*pages, key=lambda record: record.root_seq), limit))

    async def tree_end(self, root_run_id: str) -> int:
        """See the port."""
        self._require_open()
        run = self._run(root_run_id)
        return self._trees.get(root_run_id, 0 if run is None else run.last_seq)

    def _grow(self, run: RunRecord, count: int, *, opens: bool) -> int | None:
        """Count events of a run in its tree: the root_seq before them; None if it numbers itself."""
        root = run.root_run_id
        before = self._trees.get(root)
        if before is not None:
            self._trees[root] = before + count
        elif opens:
            self._trees[root] = run.last_seq
        return before
