"""docs/run-states.md: the run's state machine, drawn from its own table."""

from __future__ import annotations

from runtime.events import EVENT_TYPES
from runtime.run import ACTIVE, QUEUED, TERMINAL, TRANSITIONS
from scripts.generate_markdown import NOTE, code, one_line, table

MEANINGS: dict[str, str] = {
    "queued": "The run has a record and no fact yet. `begin_run` leaves this state in the transaction that makes the "
    "record, so no reader ever sees it.",
    "running": "The run is at work.",
    "cancelling": "Somebody asked it to stop. Its model stream and tools are being stopped.",
    "succeeded": "It did its work. Frontend calls may still wait for the page.",
    "failed": "It cannot go on; `error` says why.",
    "suspended": "It waits for an answer from outside. No run of this release gets here: interrupts are not built yet.",
    "interrupted": "Its executor was lost: a crash or a shutdown. It is never run again by itself.",
    "cancelled": "It was stopped on purpose: a reader that went away for good, a newer request on the thread, or a "
    "budget.",
}


def page(_: str) -> str:
    """The page."""
    return "\n".join([NOTE, "", *_head(), "", _diagram(), "", _states(), "", _moves(), ""])


def moves() -> list[tuple[str, str, str]]:
    """Every legal move: from, event, to."""
    return [(before, event, after) for before, row in TRANSITIONS.items() for event, after in row.items()]


def _head() -> list[str]:
    return [
        "# Run states",
        "",
        "A run changes its state by events alone, and only by those below. The table is `TRANSITIONS` in "
        "`runtime/run.py`. A move",
        "that is not in it raises `IllegalTransition` and changes nothing: neither the record nor the journal.",
        "",
        f"A run that is {_listed(ACTIVE)} is *active*; a thread has at most one such run, and the store enforces it. "
        "The others",
        "are final: a run ends once, with one terminal event, and is never opened again.",
    ]


def _diagram() -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {QUEUED}"]
    lines += [f"    {before} --> {after}: {event}" for before, event, after in moves()]
    lines += [f"    {state} --> [*]" for state in TRANSITIONS if state in TERMINAL]
    return "\n".join([*lines, "```"])


def _states() -> str:
    rows = [(code(state), "final" if state in TERMINAL else "active", MEANINGS[state]) for state in TRANSITIONS]
    return table(("state", "kind", "meaning"), rows)


def _moves() -> str:
    rows = [(code(before), _event(event), code(after)) for before, event, after in moves()]
    return table(("from", "event", "to"), rows)


def _event(event: str) -> str:
    return code(event) if event in EVENT_TYPES else f"{code(event)} (no such event yet)"


def _listed(states: frozenset[str]) -> str:
    named = [state for state in TRANSITIONS if state in states]
    return one_line(", ".join(named[:-1]) + " or " + named[-1])
