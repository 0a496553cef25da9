"""Trees: a root run and the children below it, read as one stream.

A part of the store's port. Every event has its `root_seq`, given with its `seq` in the same commit: the events of a
tree are numbered from 1 without gaps, in the order of their commits. A run without children numbers itself: both are
the same. The first `child.started` in a root's journal opens its tree; only from then on is anything counted beside
the run itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from runtime.events import Record


class Trees(Protocol):
    """See the module's docstring. Every method may raise StoreError."""

    async def read_tree(self, places: Mapping[str, int], limit: int) -> list[Record]:
        """At most `limit` records of these runs, each from behind its place (a seq), in the order of `root_seq`.

        All as of one moment: nothing of these runs that was committed before what is returned is missing.
        """
        ...

    async def tree_end(self, root_run_id: str) -> int:
        """The last `root_seq` of a root run's tree; without children the end of its own journal. 0 if it is unknown."""
        ...
