"""Executors: what performs a run in the place of the sampling loop's model, behind one port.

An executor is given the context of a round and answers with words of a closed vocabulary (see `words`). It writes
nothing itself: what its words become, when they are committed, how the run is stopped and who reads it are the
engine's business, the same for every executor.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from runtime.executors.context import RunContext
from runtime.executors.words import Word


class Executor(Protocol):
    """Anything that can perform a round of a run."""

    kind: str
    """What sort of executor it is (`function`, `langgraph`, …): shown where a model's provider would be."""

    def perform(self, context: RunContext) -> AsyncGenerator[Word, None]:
        """One round: its words, in order.

        Calls of tools that belong to the agent are run behind it, and then it is performed again, with their outputs
        in `context.items`; calls of the page's tools end the run, to be answered by the next. Otherwise its end is the
        run's. Raises AguiBridgeError for what the caller may read; of whatever else it raises, the page is told only
        that it failed. Closing the generator stops the work.
        """
        ...
