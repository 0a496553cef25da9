"""What a stream restates right after RUN_STARTED, because the page lacks it.

Pure. A page that shows exactly what we hold is told nothing again. One that lacks something, or shows something that
is not ours, gets a MESSAGES_SNAPSHOT; two, when what it lacks stands before something that it shows: stock clients
replace in place and append, they never reorder, so the first snapshot cuts the page back to the common beginning.
A message that the page shows under an id of its own keeps that id in this stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import orjson

from agui_bridge.alignment import match_lines, says_the_same
from agui_bridge.shapes import NO_ACTIVITY
from agui_bridge.transcript import Line, transcript
from agui_bridge.wire import events as agui
from agui_bridge.wire.events import AguiEvent
from runtime.canonical import Json, JsonObject, canonical
from runtime.thread import PROGRESS, Thread

_NO_THOUGHT: JsonObject = {"id": "agui-bridge-no-thought", "role": "reasoning", "content": ""}
"""Stands for no reasoning in a first snapshot: without any, a stock client keeps what it shows of that role where it
is. The second snapshot takes it away again."""

_NO_ACTIVITY: JsonObject = {
    "id": "agui-bridge-no-activity",
    "role": "activity",
    "activityType": NO_ACTIVITY,
    "content": {},
}
"""The same for activities."""

_NO_PROGRESS: JsonObject = {"@ag-ui/client": {"authoritativeActivityTypes": [PROGRESS]}}
"""In the metadata of a snapshot without activities: otherwise a stock client would keep all that it shows. A snapshot
that has any speaks for all of them."""

UNANSWERABLE = frozenset({"reasoning", "activity"})
"""Roles that pages do not tell back, or not always: that one is not shown says nothing."""


@dataclass(frozen=True, slots=True)
class Prelude:
    """The events to restate, `base`: every message before this run, as this page names them, and the state then. `asks`
    if somebody was asked something before this run, and has not answered."""

    events: list[AguiEvent] = field(default_factory=list[AguiEvent])
    base: list[JsonObject] = field(default_factory=list[JsonObject])
    state: Json = field(default_factory=dict[str, Json])
    asks: bool = False


def prelude(
    thread: Thread, run_id: str, messages: list[JsonObject], believed_state: Json, *, anew: bool = False
) -> Prelude:
    """The prelude for a page that shows `messages` and believes in a state, on a thread that has taken its request in.

    `run_id` is the run whose stream this opens: what it says is streamed, not restated. With `anew` the page is told
    everything again, be it that it shows the same: it holds media that it need not hold.
    """
    lines = transcript(thread, without_run=run_id)
    shown = [message for message in messages if message["role"] != "activity"]
    matches = match_lines(shown, lines)
    base = _named_as_shown(lines, shown, matches)
    parts = _snapshots(base, matches) if anew or must_restate(thread, lines, shown, matches) else []
    events = [*_told(parts, thread.has_streamed), *state_prelude(thread.state, believed_state)]
    return Prelude(events, base, thread.state, bool(thread.open_interrupts()))


def restated(
    lines: Sequence[Line],
    messages: Iterable[JsonObject],
    live: Sequence[JsonObject] = (),
    *,
    had_progress: bool = False,
) -> Prelude:
    """The prelude that tells everything again, whatever a page shows (`messages`): `lines`, and behind them the
    messages of a run that is at work, which keep their ids. `had_progress` as in `letting_go`."""
    shown = [message for message in messages if message["role"] != "activity"]
    place_of = {message["id"]: place for place, message in enumerate(live, len(lines))}
    before = [message for message in shown if message["id"] not in place_of]
    matches = match_lines(before, lines)
    base = _named_as_shown(lines, before, matches)
    rest = iter(matches)
    places = [place_of[message["id"]] if message["id"] in place_of else next(rest) for message in shown]
    parts = _snapshots([*base, *live], places)
    return Prelude(_told(parts, had_progress), base)


def _told(parts: Iterable[list[JsonObject]], had_progress: bool) -> list[AguiEvent]:
    return [agui.messages_snapshot(part, metadata=letting_go(part, had_progress=had_progress)) for part in parts]


def letting_go(messages: Iterable[JsonObject], *, had_progress: bool) -> JsonObject | None:
    """The metadata of a snapshot of these messages. `had_progress` says that the page may show the progress of a call
    that is over, which it then lets go of."""
    speaks_for_none = not any(message["role"] == "activity" for message in messages)
    return _NO_PROGRESS if had_progress and speaks_for_none else None


def state_prelude(state: Json, believed: Json) -> list[AguiEvent]:
    """A STATE_SNAPSHOT, if the client believes in another state."""
    if not differs(state, believed):
        return []
    return [agui.state_snapshot(orjson.loads(orjson.dumps(state)))]  # as it is now: the thread's goes on changing


def differs(state: Json, believed: Json) -> bool:
    """Whether a client must be told the state. Absent, null and `{}` are the empty state."""
    return canonical(state) != canonical({} if believed is None else believed)


def must_restate(
    thread: Thread, lines: Sequence[Line], shown: Sequence[JsonObject], matches: Sequence[int | None]
) -> bool:
    """Whether a page must be told the messages again: it lacks one of `lines`, shows one with another content, or
    shows an answer that is none of ours, be it to a call. `matches` says which line each shown message is.

    Reasoning is no reason: many pages keep none. Nor is the place of a message, for a page may have put an answer of
    its own elsewhere.
    """
    due = sum(line.role not in UNANSWERABLE for line in lines)
    found = 0
    for message, index in zip(shown, matches, strict=True):
        if message["role"] in UNANSWERABLE:
            continue
        if index is None:
            if message["role"] == "assistant" or (message["role"] == "tool" and thread.owns(message["toolCallId"])):
                return True
        elif says_the_same(message, lines[index].message):
            found += 1
        else:
            return True
    return found != due


def _named_as_shown(
    lines: Sequence[Line], shown: Sequence[JsonObject], matches: Sequence[int | None]
) -> list[JsonObject]:
    named = [line.message for line in lines]
    for message, index in zip(shown, matches, strict=True):
        if index is not None and message["id"] != named[index]["id"]:
            named[index] = {**named[index], "id": message["id"]}
    return named


def _is_before_an_activity(base: list[JsonObject], common: int) -> bool:
    """Whether something that the page lacks stands before an activity, which it may show already: no request tells."""
    roles = [message["role"] for message in base[common:]]
    return "activity" in roles and any(
        role not in UNANSWERABLE for role in roles[: len(roles) - roles[::-1].index("activity")]
    )


def _snapshots(base: list[JsonObject], matches: Sequence[int | None]) -> list[list[JsonObject]]:
    """What to send so that a page that shows these of our messages ends with all of them, in our order."""
    found = [index for index in matches if index is not None]
    common = next((place for place, index in enumerate(found) if place != index), len(found))
    if common == len(found) and not (found and _is_before_an_activity(base, common)):
        return [base]
    beginning = base[:common]
    if not any(message["role"] == "reasoning" for message in beginning) and any(
        base[index]["role"] == "reasoning" for index in found[common:]
    ):
        beginning = [*beginning, _NO_THOUGHT]
    if any(message["role"] == "activity" for message in base) and not any(
        message["role"] == "activity" for message in beginning
    ):
        beginning = [*beginning, _NO_ACTIVITY]
    return [beginning, base]
