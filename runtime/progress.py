"""Progress: how far a run had come, read from its own facts, so that another executor can go on with it.

Pure. Everything that a sampling loop knows between two rounds follows from what was committed. Of attempts that failed
and were tried again only the facts are known, not what they used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from runtime import events as e
from runtime.canonical import JsonObject
from runtime.items import REJECTION


@dataclass(slots=True)
class Progress:
    """A run between two rounds. `parts` counts those of its message; `pauses` the rounds that the provider paused
    last, in a row; `mends` the answers that did not fit. `open_calls` are committed and have no output."""

    message_id: str = ""
    rounds: int = 0
    parts: int = 0
    pauses: int = 0
    mends: int = 0
    usage: list[JsonObject] = field(default_factory=list[JsonObject])
    calls: list[e.ToolCallCommitted] = field(default_factory=list[e.ToolCallCommitted])
    answered: set[str] = field(default_factory=set[str])
    begun: set[str] = field(default_factory=set[str])
    is_within_a_round: bool = False

    @property
    def open_calls(self) -> list[e.ToolCallCommitted]:
        """The committed calls without an output, in order."""
        return [call for call in self.calls if call.tool_call_id not in self.answered]

    @property
    def can_go_on(self) -> bool:
        """Whether nothing is in the midst of being done: what was, may have happened."""
        in_hand = any(call.tool_call_id in self.begun for call in self.open_calls)
        return bool(self.message_id) and not self.is_within_a_round and not in_hand


def progress_of(events: Iterable[e.Event | None], paused: str) -> Progress:
    """How far these facts of one run, in order, have brought it; `paused` is the finish of a paused round."""
    progress = Progress()
    for event in events:
        match event:
            case e.MessageStarted():
                progress.message_id = event.message_id
            case e.RoundStarted():
                progress.rounds, progress.is_within_a_round = event.round, True
            case e.RoundCompleted():
                progress.is_within_a_round = False
                has_paused = event.finish == paused and not event.tool_call_ids
                progress.pauses = progress.pauses + 1 if has_paused else 0
                if event.usage is not None:
                    progress.usage.append(event.usage)
            case e.MessageDelta() | e.ReasoningStarted() | e.ReasoningDelta() | e.ToolCallStarted():
                progress.parts = max(progress.parts, event.content_index + 1)
            case e.ToolCallCommitted():
                progress.calls.append(event)
            case e.ToolExecutionStarted():
                progress.begun.add(event.tool_call_id)
            case e.ToolCallCompleted():
                progress.answered.add(event.tool_call_id)
            case e.MessageCompleted(runtime_role=role) if role == REJECTION:
                progress.mends += 1
            case e.ChildStarted():
                progress.begun.add(event.tool_call_id)
            case _:
                pass
    return progress
