"""The aliases of the store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod

from runtime.errors import NotFound
from runtime.journal.aliases import NO_REQUEST, Alias
from runtime.journal.changes import answered_before
from runtime.run import RunRecord


class MemoryAliases(ABC):
    """The `Aliases` of a store that knows the runs of a thread."""

    def __init__(self) -> None:
        super().__init__()
        self._aliases: dict[tuple[str, str], dict[str, str]] = {}
        """By thread and client_run_id: the run that answers each digest."""

    @abstractmethod
    def _require_open(self) -> None:
        """Raises StoreError if the store is closed."""

    @abstractmethod
    def _runs_of(self, thread_id: str) -> list[RunRecord]:
        """The runs of a thread, in the order in which they began."""

    async def add_alias(self, alias: Alias) -> RunRecord:
        """See the port."""
        self._require_open()
        run = next((run for run in self._runs_of(alias.thread_id) if run.run_id == alias.run_id), None)
        if run is None:
            raise NotFound
        same = self._newest_same(alias.thread_id, alias.client_run_id, alias.input_digest)
        answer = answered_before(alias, same, self._followed(alias.thread_id, alias.client_run_id))
        if answer is None:
            named = self._aliases.setdefault((alias.thread_id, alias.client_run_id), {})
            named[alias.input_digest] = alias.run_id
        return answer or run

    async def find_named_run(self, thread_id: str, client_run_id: str) -> RunRecord | None:
        """See the port."""
        self._require_open()
        aliased = set(self._aliases.get((thread_id, client_run_id), {}).values())
        runs = reversed(self._runs_of(thread_id))
        return next((run for run in runs if run.client_run_id == client_run_id or run.run_id in aliased), None)

    def _newest_same(self, thread_id: str, client_run_id: str, input_digest: str) -> RunRecord | None:
        wanted = (client_run_id, input_digest)
        same = [run for run in self._runs_of(thread_id) if (run.client_run_id, run.input_digest) == wanted]
        return max(same, key=lambda run: run.attempt, default=None)

    def _followed(self, thread_id: str, client_run_id: str) -> dict[str, RunRecord]:
        """The runs by which requests with this id were answered, by the requests' digests."""
        named = self._aliases.get((thread_id, client_run_id), {})
        runs = {run.run_id: run for run in self._runs_of(thread_id)}
        return {digest: runs[run_id] for digest, run_id in named.items() if digest != NO_REQUEST}
