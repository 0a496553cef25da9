"""What the rooms of one run share: who runs, with what, and whether it is still wanted.

A value made by the engine. The model call, the tools and the hooks each take it and nothing of one another's.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

from runtime.agent import Agent
from runtime.artifacts import ArtifactShelf
from runtime.children import Children
from runtime.items import ToolSpec
from runtime.limits import Limits
from runtime.media_shelf import MediaShelf
from runtime.models import Model
from runtime.output import Output
from runtime.request import RunRequest
from runtime.run import RunRecord
from runtime.run_log import RunLog
from runtime.sampling import Sampling
from runtime.system import Clock, Mint
from runtime.thread import Thread
from runtime.tools.threads import ThreadLimiter


@dataclass(frozen=True, slots=True)
class RunScope:
    """One run. `stopped` is set once it is to stop, by whomever."""

    run: RunRecord
    request: RunRequest
    agent: Agent
    model: Model
    thread: Thread
    sampling: Sampling
    log: RunLog
    clock: Clock
    threads: ThreadLimiter
    limits: Limits
    tools: list[ToolSpec]
    """All that the model is told of."""
    client_tools: dict[str, ToolSpec]
    shelf: ArtifactShelf
    media: MediaShelf
    children: Children
    mint: Mint
    output: Output | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    def require_wanted(self) -> None:
        """A model, a tool or a library may have swallowed the cancellation: then it is raised again here."""
        if self.stopped.is_set():
            raise asyncio.CancelledError
