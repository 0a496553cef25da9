"""Aliases: the requests that were answered by a run which another request had begun. A part of the store's port.

A page that is loaded again asks under a new id for a run that is at work, and follows it. Kept is which run that was:
the same request later is a replay of it, not a wish for another answer. A page that only came back has asked for
nothing; its id is a further name of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from runtime.run import RunRecord

NO_REQUEST = ""
"""The digest of an alias that is a name and no request."""


@dataclass(frozen=True, slots=True)
class Alias:
    """Who asked under `client_run_id` on this thread was answered by `run_id`, a run of the thread."""

    thread_id: str
    client_run_id: str
    input_digest: str
    run_id: str


class Aliases(Protocol):
    """Every method may raise StoreError."""

    async def add_alias(self, alias: Alias) -> RunRecord:
        """The run that answers the request: the newest that the same request began, or the one by which it was
        answered before; else that of the alias, which is kept. A name without a request names the latest run that it
        was given. Raises NotFound if the thread has no such run.
        """
        ...

    async def find_named_run(self, thread_id: str, client_run_id: str) -> RunRecord | None:
        """The newest run of the thread that a request with this id began or was answered by."""
        ...
