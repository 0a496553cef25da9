"""A pause: how a thread stands whose calls wait for somebody outside, when something else comes than an answer.

Pure. Whoever takes a new message in asks here, so that each does the same with what waits.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from runtime import events as e
from runtime.ending import closing_output
from runtime.entries import Call, Turn
from runtime.interrupts import EXPIRED, FORKED, by_itself
from runtime.thread import Thread

_ANOTHER_WAY = "Not run: the user went another way before anybody said that it may."


@dataclass(frozen=True, slots=True)
class Pause:
    """`waits` while somebody can still answer: then nothing may be done, not even for a new message. Otherwise `facts`
    are what a new message makes of the calls that were left open."""

    waits: bool
    facts: list[e.Event]


def abandoned(thread: Thread, turns: Collection[Turn], told: Collection[e.Event] = ()) -> list[e.Event]:
    """What becomes of what these turns ask and of the calls that they left open when the user goes another way before
    them, as far as the facts before these have not `told` it."""
    over = {fact.interrupt_id for fact in told if isinstance(fact, e.InterruptAnswered)}
    over |= {fact.tool_call_id for fact in told if isinstance(fact, e.ToolCallCompleted)}
    asked = [each.id for each in thread.open_interrupts(turns) if each.id not in over]
    left = [call for turn in turns for call in turn.held if call.call_id not in over]
    return [
        *(by_itself(id_, FORKED) for id_ in asked),
        *(e.output_of(call.call_id, call.name, _ANOTHER_WAY, "cancelled") for call in left),
    ]


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


def sleeps(thread: Thread, call: Call) -> bool:
    """Whether a call that has asked, itself or in a child, has still no answer: performed again it would only ask the
    same. Whether it may run at all is another question."""
    questions = [ask for ask in call.asks if ask.raised.number]
    last = [ask.id for ask in questions if ask.run_id == questions[-1].run_id]
    children = [child for child in thread.children.values() if child.tool_call_id == call.call_id]
    for child in children:
        if isinstance(child.over, e.ChildSuspended) and not child.continued:
            last += child.over.interrupt_ids
    return bool(last) and not any(id_ in thread.answers for id_ in last)
