"""A pause: how a thread stands whose calls wait for somebody outside, when something else comes than an answer.

Pure. Whoever takes a new message in asks here, so that each does the same with what waits.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from runtime import events as e
from runtime.ending import closing_output
from runtime.entries import Call
from runtime.interrupts import EXPIRED, FORKED, by_itself
from runtime.thread import Thread

_ANOTHER_WAY = "Not run: the user went another way before anybody said that it may."


@dataclass(frozen=True, slots=True)
class Pause:
    """`waits` while somebody can still answer: then nothing may be done, not even for a new message. Otherwise `facts`
    are what a new message makes of the calls that were left open."""

    waits: bool
    facts: list[e.Event]


def abandoned(thread: Thread, calls: Collection[Call]) -> list[e.Event]:
    """What becomes of these calls, which were left open, when the user goes another way before them."""
    asked = [by_itself(interrupt.id, FORKED) for interrupt in thread.open_interrupts(calls)]
    return [*asked, *(e.output_of(call.call_id, call.name, _ANOTHER_WAY, "cancelled") for call in calls)]


def standing(thread: Thread, now: int) -> Pause:
    """How the thread stands at `now`, in ms since the epoch.

    What nobody can resolve any more is declined. A call that was let run, by a run that then was lost, is closed
    without having run: only the same answer given again would run it.
    """
    asked = thread.open_interrupts()
    if any(not interrupt.is_expired(now) for interrupt in asked):
        return Pause(True, [])
    if asked:
        return Pause(False, [by_itself(interrupt.id, EXPIRED) for interrupt in asked])
    return Pause(False, [closing_output(call, "not_run") for call in thread.held_calls()])
