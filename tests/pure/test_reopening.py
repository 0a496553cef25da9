"""A page that comes back, whenever it comes, ends with what a page has that was there from the start."""

from __future__ import annotations

import copy
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from agui_bridge.encoders import reopening_encoder
from agui_bridge.projection import Echo
from agui_bridge.reopening import Reopening, at_rest
from runtime import events as e
from runtime.run import RUNNING, RunRecord
from runtime.thread import Thread
from tests.pure.agui_rules import Rules
from tests.pure.conversation import Conversation, Turn
from tests.pure.histories import Chance, Drawn, Performed
from tests.pure.stock_page import Page
from tests.serving import events_in

JsonObject = dict[str, Any]
ECHO = Echo("t1", "back")
STEPS = 3


def record(performed: Performed, last_seq: int) -> RunRecord:
    """The run's record when its journal ended at `last_seq`."""
    return RunRecord(
        performed.run_id,
        "-",
        "me",
        "thr_1",
        "t1",
        "assistant",
        "asked",
        "d1",
        1,
        RUNNING,
        performed.base,
        last_seq,
        1,
        performed.run_id,
        0,
    )


def before(runs: list[Performed]) -> Thread:
    """The thread that these runs have left."""
    thread = Thread("thr_1")
    for run in runs:
        for each in run.records:
            thread.apply(each.run_id, run.base, each.seq, each.event)
    return thread


def first_facts(performed: Performed) -> int:
    """How many facts began the run, in one transaction."""
    return next(r.seq for r in performed.records if isinstance(r.event, e.MessageStarted)) - 1


def coming_back(runs: list[Performed], at: int, page: Page) -> list[JsonObject]:
    """The stream of a page that comes back to the last of these runs when its journal ends at `at`."""
    *earlier, run = runs
    thread = before(earlier)
    reopening = Reopening(ECHO, record(run, at), thread, copy.deepcopy(page.messages))
    encode = reopening_encoder(reopening)
    return events_in(b"".join(encode([each]) for each in run.records))


def at_any_point(turn: Turn, chance: Chance) -> tuple[int, Page] | None:
    """Where the journal ends when the page comes back, and what it shows then; None for a run that was over at once."""
    run = turn.performed
    if not any(isinstance(r.event, e.MessageStarted) for r in run.records):
        return None
    at = chance.pick(range(first_facts(run), len(run.records)))
    if chance.pick((True, False)):
        return at, Page()
    page, projector = Page(turn.messages, turn.state), run.projector()
    seen = chance.pick(range(at + 1))
    page.apply(event for each in run.records[:seen] for event in projector.feed(each.event))
    return at, page


def without_closed_thoughts(messages: list[JsonObject]) -> list[JsonObject]:
    return [message for message in messages if message["role"] != "reasoning"]


@given(st.data())
def test_whenever_a_page_comes_back_it_ends_with_what_a_page_has_that_read_from_the_start(data: st.DataObject) -> None:
    chance = Drawn(data)
    conversation = Conversation(chance)
    for _ in range(STEPS):
        turn = conversation.step()
        if (came := at_any_point(turn, chance)) is None:
            continue
        at, page = came
        stream = coming_back(conversation.theatre.runs, at, page)
        rules = Rules()
        rules.check(stream)
        assert rules.ended
        page.apply(stream)
        assert page.messages == conversation.page.messages
        assert page.state == conversation.page.state
        assert page.surprises == []


@given(st.data())
def test_what_is_open_is_begun_anew_in_one_piece_and_what_follows_is_what_the_others_get(data: st.DataObject) -> None:
    chance = Drawn(data)
    conversation = Conversation(chance)
    turn = conversation.step()
    if (came := at_any_point(turn, chance)) is None:
        return
    at, page = came
    stream = coming_back(conversation.theatre.runs, at, page)
    projector = turn.performed.projector()
    for each in turn.performed.records[:at]:
        projector.feed(each.event)
    rest = [event for each in turn.performed.records[at:] for event in projector.feed(each.event)]
    opening = stream[: len(stream) - len(rest)]
    said = [(e["type"], e.get("messageId") or e.get("toolCallId")) for e in opening if "delta" in e]
    assert len(said) == len(set(said))
    assert _comparable(stream[len(opening) :]) == _comparable(orjson.loads(orjson.dumps(rest)))


@given(st.data())
def test_a_run_that_is_over_when_the_page_comes_is_told_with_its_end(data: st.DataObject) -> None:
    conversation = Conversation(Drawn(data))
    for _ in range(STEPS):
        conversation.step()
    page = Page()
    runs = conversation.theatre.runs
    stream = coming_back(runs, len(runs[-1].records), page)
    rules = Rules()
    rules.check(stream)
    assert rules.ended
    page.apply(stream)
    assert page.messages == conversation.page.messages
    assert page.state == conversation.page.state


def _comparable(events: list[JsonObject]) -> list[JsonObject]:
    """Streams under different run ids, whose closing snapshots name what each page shows."""
    return [{k: v for k, v in event.items() if k not in ("runId", "messages")} for event in events]


@given(st.data())
def test_a_page_that_comes_back_to_a_thread_at_rest_is_told_all_of_it(data: st.DataObject) -> None:
    chance = Drawn(data)
    conversation = Conversation(chance)
    for _ in range(STEPS):
        conversation.step()
    page = chance.pick((Page(), Page(conversation.page.messages, {"old": True}), Page(conversation.page.messages[1:])))
    stream = at_rest(conversation.theatre.thread, ECHO, page.messages)
    Rules().check(stream)
    page.apply(stream)
    assert page.messages == conversation.page.messages
    assert page.state == conversation.page.state
    assert stream[-1]["type"] == "RUN_FINISHED"
    assert stream[-1]["outcome"] == {"type": "success"}
