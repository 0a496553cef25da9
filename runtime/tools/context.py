"""What a running tool knows of its run: one plain object, handed to the tools that ask for it by annotation.

It holds what the engine gives it and does nothing by itself: it does not record changes of the state, write facts or
talk to anybody.
"""

from __future__ import annotations

from typing import Any, Protocol

from runtime.canonical import Json
from runtime.run import RunRecord


class Flag(Protocol):
    """Something that is set once and can be read from any thread, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether it was set."""
        ...


class ToolContext:
    """The surroundings of one tool call. A parameter with this annotation receives it; the model never sees it."""

    __slots__ = (
        "_run_stopped",
        "_stop_requested",
        "deps",
        "forwarded_props",
        "idempotency_key",
        "principal",
        "run",
        "state",
        "tool_call_id",
    )

    def __init__(
        self,
        *,
        run: RunRecord,
        tool_call_id: str,
        idempotency_key: str,
        cancelled: Flag,
        state: Json = None,
        deps: Any = None,
        principal: Any = None,
        forwarded_props: Json = None,
    ):
        self.run = run
        self.tool_call_id = tool_call_id
        self.idempotency_key = idempotency_key
        """The same for every execution of this call: give it to services that can refuse to do a thing twice."""
        self.state = state
        """The run's shared state, a dict or list that the tool may change."""
        self.deps = deps
        """What the program gave its agent (database handles, clients, …)."""
        self.principal = principal
        """Who asked for the run."""
        self.forwarded_props = forwarded_props
        """What the client sent along for the agent."""
        self._run_stopped = cancelled
        self._stop_requested = False

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for this call any more: the run is being stopped, or the call has timed out.

        A synchronous tool cannot be stopped from outside; one that takes long should look here now and then.
        """
        return self._stop_requested or self._run_stopped.is_set()

    def request_stop(self) -> None:
        """For whoever executes the call: make `cancelled` true for this call alone."""
        self._stop_requested = True
