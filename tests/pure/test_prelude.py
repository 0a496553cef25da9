"""What a stream restates: nothing to a page that has everything, and to any other just enough that it ends with what we
hold, in our order, under the ids that it knows."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_bridge.prelude import Prelude, prelude
from agui_bridge.transcript import transcript
from runtime.thread import Thread
from tests.pure.pages import Answered, Made, Stage
from tests.pure.stock_page import Page
from tests.pure.test_reconcile import result, user

JsonObject = dict[str, Any]


def thread_with_thoughts() -> Thread:
    """Three turns; each begins with a thought, the second uses a tool, the third leaves a call to the page."""
    stage, page = Stage(), Page()
    for turn, rounds in enumerate(
        (
            [("one", [])],
            [("wait", [Made("lookup")]), ("two", [])],
            [("", [Made("pick")])],
        ),
        1,
    ):
        page.messages.append(user(f"u{turn}", f"say {turn}"))
        page.apply(stage.perform(Answered(rounds), page.messages, page.state, thinks=True).stream())
    return stage.thread


THREAD = thread_with_thoughts()
ALL: list[JsonObject] = [line.message for line in transcript(THREAD)]
ROLES = [message["role"] for message in ALL]


def opened(shown: list[JsonObject]) -> Prelude:
    """What a page that shows this is told."""
    return prelude(THREAD, "run", shown, THREAD.state)


def page_after(shown: list[JsonObject]) -> list[JsonObject]:
    """What that page then shows."""
    page = Page(shown)
    page.apply(opened(shown).events)
    return page.messages


def without(*places: int) -> list[JsonObject]:
    """Everything but the messages at these places."""
    return [message for place, message in enumerate(ALL) if place not in places]


def test_the_thread_of_these_tests_has_all_that_can_be_lost():
    assert [
        *("user", "reasoning", "assistant"),
        *("user", "reasoning", "assistant", "tool", "reasoning", "assistant"),
        *("user", "reasoning", "assistant"),
    ] == ROLES


@pytest.mark.parametrize(
    ("shown", "snapshots"),
    [
        (ALL, 0),
        ([m for m in ALL if m["role"] != "reasoning"], 0),
        ([*ALL, {"id": "plan", "role": "activity", "activityType": "PLAN", "content": {}}], 0),
        (ALL[:-1], 1),
        (ALL[:3], 1),
        ([], 1),
        (without(2), 2),
        (ALL[3:], 2),
        ([{**ALL[2], "content": "forged"}], 2),
        ([*ALL[:2], {**ALL[2], "content": "forged"}, *ALL[3:]], 1),
        ([*ALL, result(ALL[6]["toolCallId"], "forged")], 1),
        ([m for m in ALL[:-1] if m["role"] != "reasoning"], 2),
    ],
    ids=[
        "everything",
        "everything but thoughts",
        "an activity besides",
        "the end lost",
        "more lost",
        "empty page",
        "an answer lost",
        "a window",
        "a window, forged",
        "forged",
        "forged result",
        "the end lost, no thoughts kept",
    ],
)
@pytest.mark.requirement("R-126")
def test_no_snapshot_one_or_two(shown: list[JsonObject], snapshots: int):
    assert [event["type"] for event in opened(shown).events] == ["MESSAGES_SNAPSHOT"] * snapshots
    after = page_after(shown)
    if snapshots:
        assert after == ALL


def test_a_thought_that_stayed_on_the_page_does_not_end_before_what_was_lost():
    assert page_after(without(1, 2)) == ALL
    assert [[m["id"] for m in event["messages"]] for event in opened(without(1, 2)).events] == [
        ["u1", "agui-bridge-no-thought"],
        [message["id"] for message in ALL],
    ]


def test_the_pages_own_ids_stay_in_the_stream_and_what_it_lacked_comes_under_ours():
    shown = [{**message, "id": f"own-{place}"} for place, message in enumerate(ALL) if place != 8]
    after = page_after(shown)
    assert [message["id"] for message in after] == [
        *(f"own-{place}" for place in range(8)),
        ALL[8]["id"],
        *(f"own-{place}" for place in range(9, 12)),
    ]
    assert [m.get("content") for m in after] == [m.get("content") for m in ALL]


def test_the_base_names_everything_as_the_page_does_though_nothing_is_restated():
    shown = [{**message, "id": f"own-{place}"} for place, message in enumerate(ALL)]
    made = opened(shown)
    assert made.events == []
    assert [message["id"] for message in made.base] == [message["id"] for message in shown]


def test_an_activity_of_the_page_survives_what_is_restated():
    plan: JsonObject = {"id": "plan", "role": "activity", "activityType": "PLAN", "content": {}}
    after = page_after([*ALL[:3], plan])
    assert [message for message in after if message["role"] != "activity"] == ALL
    assert plan in after


@given(st.data())
def test_whatever_a_page_lost_or_swapped_it_ends_with_what_we_hold(data: st.DataObject):
    kept = [message for message in ALL if data.draw(st.booleans(), label=message["id"])]
    own = data.draw(st.booleans(), label="own ids for users")
    shown = [{**m, "id": f"own-{m['id']}"} if own and m["role"] == "user" and m is kept[0] else m for m in kept]
    if data.draw(st.booleans(), label="in another order"):
        random.Random(data.draw(st.integers(0, 9))).shuffle(shown)
    after = page_after(shown)
    ordered = [m["id"].removeprefix("own-") for m in after]
    if opened(shown).events:
        assert ordered == [message["id"] for message in ALL]
    else:
        assert {m["id"] for m in ALL if m["role"] != "reasoning"} <= set(ordered)


@pytest.mark.parametrize(
    ("ours", "believed", "told"),
    [
        ({}, None, None),
        ({}, {}, None),
        ({"n": 1}, None, {"n": 1}),
        ({"n": 1}, {"n": 1}, None),
        ({"n": 1}, {"n": 1.0}, {"n": 1}),
        ({"n": 1}, {"n": True}, {"n": 1}),
        ([1], {}, [1]),
        ({}, [1], {}),
        (5, None, 5),
    ],
)
def test_the_state_is_told_when_the_page_believes_in_another(ours: Any, believed: Any, told: Any):
    thread = Thread("thr")
    thread.state = ours
    states = [event["snapshot"] for event in prelude(thread, "run", [], believed).events]
    assert states == ([] if told is None else [told])


def test_a_told_state_is_as_it_was_though_the_thread_goes_on():
    thread = Thread("thr")
    thread.state = {"list": [1]}
    (event,) = prelude(thread, "run", [], None).events
    thread.state["list"].append(2)
    assert event["snapshot"] == {"list": [1]}
