"""The progress of one call: what its tool says of it, told at most so many times a second.

Of what comes too fast only the latest is told. So a chatty tool fills no journal, and an output that follows its
progress at once is not shown as progress before: it was no progress, which nobody can know when a generator yields it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from runtime.canonical import Json
from runtime.events import ToolCallCommitted, ToolCallProgress


class ToolProgress:
    """Tells the latest that was noted, `interval_s` seconds behind the first that was not told, until `close`. Belongs
    to the event loop on which it was made."""

    def __init__(self, call: ToolCallCommitted, tell: Callable[[ToolCallProgress], None], interval_s: float) -> None:
        self._call = call
        self._tell = tell
        self._interval_s = interval_s
        self._loop = asyncio.get_running_loop()
        self._number = 0
        self._latest: ToolCallProgress | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def note(self, value: Json) -> None:
        """The call is now so far."""
        if self._closed:
            return
        self._number += 1
        self._latest = ToolCallProgress(self._call.tool_call_id, self._call.tool_name, self._number, value)
        if self._timer is None:
            self._timer = self._loop.call_later(self._interval_s, self._tell_latest)

    def close(self) -> None:
        """The call has ended: what was not told is of no interest any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _tell_latest(self) -> None:
        self._timer = None
        if self._latest is not None:
            self._tell(self._latest)
