"""What a stream restates right after RUN_STARTED, because the page lacks it.

Pure. A page that shows exactly what we hold is told nothing again. One that lacks something, or shows something that
is not ours, gets a MESSAGES_SNAPSHOT; two, when what it lacks stands before something that it shows: stock clients
replace in place and append, they never reorder, so the first snapshot cuts the page back to the common beginning.
A message that the page shows under an id of its own keeps that id in this stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from agui_bridge.alignment import match_lines, says_the_same
from agui_bridge.transcript import Line, transcript
from agui_bridge.wire import events as agui
from agui_bridge.wire.events import AguiEvent
from runtime.canonical import Json, JsonObject, canonical
from runtime.thread import Thread


@dataclass(frozen=True, slots=True)
class Prelude:
    """The events to restate, and `base`: every message before this run, as this page names them."""

    events: list[AguiEvent] = field(default_factory=list[AguiEvent])
    base: list[JsonObject] = field(default_factory=list[JsonObject])


def prelude(thread: Thread, run_id: str, messages: list[JsonObject], believed_state: Json) -> Prelude:
    """The prelude for a page that shows `messages` and believes in a state, on a thread that has taken its request in.

    `run_id` is the run whose stream this opens: what it says is streamed, not restated.
    """
    lines = transcript(thread, without_run=run_id)
    shown = [message for message in messages if message["role"] not in ("activity", "reasoning")]
    matches = match_lines(shown, lines)
    base = _named_as_shown(lines, shown, matches)
    events = [agui.messages_snapshot(part) for part in _snapshots(thread, lines, shown, matches, base)]
    events += state_prelude(thread.state, believed_state)
    return Prelude(events, base)


def state_prelude(state: Json, believed: Json) -> list[AguiEvent]:
    """A STATE_SNAPSHOT, if the client believes in another state."""
    if not differs(state, believed):
        return []
    return [agui.state_snapshot(orjson.loads(orjson.dumps(state)))]  # as it is now: the thread's goes on changing


def differs(state: Json, believed: Json) -> bool:
    """Whether a client must be told the state. Absent, null and `{}` are the empty state."""
    return canonical(state) != canonical({} if believed is None else believed)


def _named_as_shown(lines: list[Line], shown: list[JsonObject], matches: list[int | None]) -> list[JsonObject]:
    named = [line.message for line in lines]
    for message, index in zip(shown, matches, strict=True):
        if index is not None and message["id"] != named[index]["id"]:
            named[index] = {**named[index], "id": message["id"]}
    return named


def _snapshots(
    thread: Thread,
    lines: list[Line],
    shown: list[JsonObject],
    matches: list[int | None],
    base: list[JsonObject],
) -> list[list[JsonObject]]:
    due = [index for index, line in enumerate(lines) if line.role != "reasoning"]
    found = [index for index in matches if index is not None]
    if sorted(found) == due:  # everything is there; a page may have put an answer of its own elsewhere
        return [base] if _shows_what_is_not_ours(thread, lines, shown, matches) else []
    agreed = 0
    while agreed < min(len(due), len(found)) and due[agreed] == found[agreed]:
        agreed += 1
    if agreed == len(found):
        return [base]
    common = due[agreed] if agreed < len(due) else len(lines)
    return [base[:common], base]


def _shows_what_is_not_ours(
    thread: Thread, lines: list[Line], shown: list[JsonObject], matches: list[int | None]
) -> bool:
    """Whether the page shows another content under a message of ours, or an answer to a call of ours."""
    for message, index in zip(shown, matches, strict=True):
        if index is None:
            if message["role"] == "tool" and message["toolCallId"] in thread.calls:
                return True
        elif not says_the_same(message, lines[index].message):
            return True
    return False
