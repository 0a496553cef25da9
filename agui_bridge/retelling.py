"""Retelling: what a run has said so far, kept so that a snapshot of all messages can tell it again.

Pure. It keeps facts and folds them only when a snapshot is wanted, which is rare. Words are kept as they come, and
those of a round that is complete as one piece for each part.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter

from agui_bridge.transcript import OWNER, own_messages, result_message
from runtime import events as e
from runtime.canonical import JsonObject
from runtime.entries import Turn
from runtime.thread import Thread


class Retelling:
    """What one run has said, and with it those below it. A child run is kept under its id, a root under none."""

    def __init__(self, run_id: str = "") -> None:
        self._run_id = run_id
        self._facts: list[e.Event] = []
        self._words: list[e.MessageDelta | e.ReasoningDelta] = []
        """The words of the round that is open."""
        self._late_results: list[e.ToolCallCompleted] = []
        """Outputs of calls that earlier runs have made."""
        self.progress: dict[str, e.ToolCallProgress] = {}
        """How far the calls are that tell of it and are at work."""
        self.below: dict[str, Retelling] = {}
        """What the child runs have said, by id."""

    def take(self, event: e.Event) -> None:
        """The next fact; those that show in no message are left out."""
        kind = type(event)
        if isinstance(event, e.MessageDelta | e.ReasoningDelta):
            self._words.append(event)
        elif kind in _SHOWN:
            if kind is e.RoundCompleted:
                self._facts += self._joined()
            self._facts.append(event)

    def late_result(self, event: e.ToolCallCompleted) -> None:
        """The output of a call of an earlier run, whose message stands before all that this run says."""
        self._late_results.append(event)

    @property
    def has_begun(self) -> bool:
        """Whether the run's own message has begun."""
        return any(isinstance(fact, e.MessageStarted) for fact in self._facts)

    def messages(self, base: Iterable[JsonObject]) -> list[JsonObject]:
        """All messages: those before this run, with what it has made of them, and its own."""
        thread = Thread("")
        self._fold_into(thread)
        own = {message["id"]: message for message in own_messages(thread, "")}
        before = [own.pop(message["id"], message) for message in base]  # an activity may be older than the run
        known = {message["id"] for message in before}
        for result in self._results_of_older_calls():
            if result["id"] not in known:
                _put_behind_its_call(before, result)
        return [*before, *own.values()]

    def _results_of_older_calls(self) -> Iterator[JsonObject]:
        """The outputs of calls whose messages stand before this run, those that runs below it told of, too."""
        owner: JsonObject = {OWNER: self._run_id} if self._run_id else {}
        yield from (result_message(event.tool_call_id, event.result) | owner for event in self._late_results)
        for below in self.below.values():
            yield from below._results_of_older_calls()

    def _joined(self) -> Iterator[e.Event]:
        """The words of the round, which is complete."""
        words, self._words = self._words, []
        by_part: dict[str, list[e.MessageDelta | e.ReasoningDelta]] = {}
        for word in words:
            by_part.setdefault(word.part_id, []).append(word)
        for said in by_part.values():
            yield replace(said[0], delta="".join(word.delta for word in said))

    def _fold_into(self, thread: Thread) -> None:
        """Fold what was said into an empty thread, and what the children said into those below it."""
        for seq, event in enumerate([*self._facts, *self.progress.values()], 1):
            thread.apply(self._run_id, 0, seq, event)
        for entry in thread.entries:
            if isinstance(entry, Turn):
                entry.parts.sort(key=attrgetter("index"))  # a round's words are told behind its calls
        for run_id, child in self.below.items():
            if run_id in thread.below:
                child._fold_into(thread.below[run_id])


def _put_behind_its_call(messages: list[JsonObject], result: JsonObject) -> None:
    """Put a result where a page has it: behind the message with its call, and the results that are there already."""
    calls = ({call["id"] for call in message.get("toolCalls", [])} for message in messages)
    found = next(((place, beside) for place, beside in enumerate(calls) if result["toolCallId"] in beside), None)
    if found is None:
        messages.append(result)
        return
    place, beside = found
    behind = itertools.takewhile(lambda message: message.get("toolCallId") in beside, messages[place + 1 :])
    messages.insert(place + 1 + len(list(behind)), result)


_SHOWN = frozenset(
    {
        e.MessageStarted,
        e.RoundStarted,
        e.RoundCompleted,
        e.ReasoningStarted,
        e.ReasoningCompleted,
        e.ToolCallStarted,
        e.ToolCallCommitted,
        e.ToolCallCompleted,
        e.ActivitySnapshot,
        e.ActivityDelta,
        e.ArtifactCreated,
        e.ChildStarted,
        e.MessageCompleted,
    }
)
