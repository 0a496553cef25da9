"""The shape for clients before 1.0: what they refuse is told otherwise or left out, all else stays as it is."""

from __future__ import annotations

from typing import Any

import pytest

from agui_bridge.encoders import Rendering, agui_encoder
from agui_bridge.shapes import NO_ACTIVITY
from agui_bridge.wire import events as e
from agui_bridge.wire.versions.before_1_0 import Before10
from tests.pure.conversation import Conversation
from tests.pure.histories import Seeded
from tests.serving import events_in

JsonObject = dict[str, Any]
IMAGE: JsonObject = {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}}
FILE: JsonObject = {"type": "document", "source": {"type": "file", "value": "file-1"}}


class Told:
    """The shape, and what it warned of."""

    def __init__(self, **options: bool) -> None:
        self.warnings: list[str] = []
        self._shape = Before10(self.warnings.append, **options)

    def __call__(self, *events: JsonObject) -> list[JsonObject]:
        return list(self._shape(events))


# --- how a run ends ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-155")
def test_a_cancelled_run_is_an_error_of_its_own_code_with_what_it_used():
    told = Told()(e.run_finished("t", "r", outcome=e.cancelled(), usage=[{"inputTokens": 3}]))
    assert told == [e.run_error("The run was stopped.", "run_cancelled", [{"inputTokens": 3}])]


def test_a_cancelled_run_that_answered_interrupts_is_finished_before_it_is_an_error():
    told = Told(resumes=True)(e.run_finished("t", "r", outcome=e.cancelled()))
    assert told == [e.run_finished("t", "r"), e.run_error("The run was stopped.", "run_cancelled")]


def test_a_success_names_no_pending_calls():
    told = Told()(e.run_finished("t", "r", outcome=e.success(["c1"]), result={"a": None}))
    assert told == [e.run_finished("t", "r", outcome={"type": "success"}, result={"a": None})]


@pytest.mark.parametrize("subagents", [False, True])
def test_interrupts_stay_and_name_their_subagent_only_to_those_who_know_subagents(subagents: bool):
    interrupts: list[JsonObject] = [{"id": "i1", "reason": "tool_call", "subagentRunId": "s"}]
    ((told),) = Told(subagents=subagents)(e.run_finished("t", "r", outcome=e.interrupt(interrupts)))
    assert told["outcome"]["type"] == "interrupt"
    assert ("subagentRunId" in told["outcome"]["interrupts"][0]) is subagents


@pytest.mark.parametrize(
    "event",
    [
        e.run_started("t", "r", protocol_version="1.0"),
        e.run_finished("t", "r"),
        e.run_error("m", "c"),
        e.text_message_content("m", "x"),
        e.text_message_end("m", metadata={"agui-bridge:role": "final_response"}),
        e.tool_call_result("m", "c", "text"),
        e.step_started("round-1"),
        e.state_snapshot({"subagentRunId": "data of somebody's"}),
        e.custom("agui-bridge:round", {"outcome": {"type": "cancelled"}}),
        e.messages_snapshot([{"id": "u", "role": "user", "content": [IMAGE]}]),
    ],
)
def test_what_older_clients_can_read_is_told_as_it_is(event: JsonObject):
    told = Told()
    assert told(event) == [event]
    assert told.warnings == []


# --- contents ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-116")
def test_a_result_in_parts_is_its_text_and_what_is_lost_is_warned_of():
    told = Told()
    parts: list[JsonObject] = [{"type": "text", "text": "see "}, IMAGE, {"type": "text", "text": "this"}]
    ((result),) = told(e.tool_call_result("m", "c1", parts))
    assert result["content"] == "see this"
    assert told.warnings == ["the result c1 has a part of type image that an older client cannot be told"]


def test_a_result_that_loses_every_part_is_an_empty_text():
    ((result),) = Told()(e.tool_call_result("m", "c1", [IMAGE]))
    assert result["content"] == ""


def test_a_snapshot_tells_tool_messages_as_text_and_leaves_file_sources_out():
    told = Told()
    messages: list[JsonObject] = [
        {"id": "u", "role": "user", "content": [{"type": "text", "text": "look"}, FILE]},
        {"id": "o", "role": "tool", "toolCallId": "c", "content": [{"type": "text", "text": "seen"}]},
    ]
    ((snapshot),) = told(e.messages_snapshot(messages))
    assert [message["content"] for message in snapshot["messages"]] == [[{"type": "text", "text": "look"}], "seen"]
    assert told.warnings == ["message u has a source of type file that an older client cannot be told"]


def test_the_stand_in_for_no_activity_is_not_told_because_older_pages_would_keep_it():
    none = {"id": "x", "role": "activity", "activityType": NO_ACTIVITY, "content": {}}
    some = {"id": "y", "role": "activity", "activityType": "plan", "content": {}}
    assert Told()(e.messages_snapshot([none, some])) == [e.messages_snapshot([some])]


# --- child runs -------------------------------------------------------------------------------------------------------

CHILD: list[JsonObject] = [
    {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "researcher"},
    e.step_started("round-1", subagent_run_id="s"),
    e.text_message_start("m", role="assistant", subagent_run_id="s"),
    {**e.text_message_content("m", "found"), "subagentRunId": "s"},
    e.text_message_end("m", subagent_run_id="s"),
    e.step_finished("round-1", subagent_run_id="s"),
    {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"},
]


def test_a_childs_words_stand_among_the_runs_own():
    assert Told()(e.step_started("round-2"), *CHILD, e.step_finished("round-2")) == [
        e.step_started("round-2"),
        e.text_message_start("m", role="assistant"),
        e.text_message_content("m", "found"),
        e.text_message_end("m"),
        e.step_finished("round-2"),
    ]


def test_a_childs_messages_in_a_snapshot_have_no_owner():
    message = {"id": "m", "role": "assistant", "content": "found", "subagentRunId": "s"}
    ((snapshot),) = Told()(e.messages_snapshot([message]))
    assert snapshot["messages"] == [{"id": "m", "role": "assistant", "content": "found"}]


def test_child_runs_are_told_as_such_to_those_of_whom_it_is_said_that_they_know_them():
    assert Told(subagents=True)(*CHILD) == CHILD


# --- whatever is told -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.requirement("R-155")
def test_nothing_that_they_refuse_is_left_and_nothing_else_changes(seed: int):
    conversation = Conversation(Seeded(seed))
    for _ in range(3):
        run = conversation.step().performed
        newest = events_in(agui_encoder(run.projector())(run.records))
        shape = Before10(pytest.fail)
        older = events_in(agui_encoder(run.projector(), rendering=Rendering(shape=shape))(run.records))
        assert [as_text(event) for event in older[:-1]] == [as_text(event) for event in newest[:-1]]
        for event in older:
            assert isinstance(event.get("content", ""), str) or event["type"] == "ACTIVITY_SNAPSHOT"
        outcome = older[-1].get("outcome", {})
        assert outcome in ({}, {"type": "success"})
        assert older[-1]["type"] == newest[-1]["type"] or newest[-1]["outcome"] == {"type": "cancelled"}


def as_text(event: JsonObject) -> JsonObject:
    """The event with the text of results for results, so that all else can be compared."""
    if event["type"] == "MESSAGES_SNAPSHOT":
        told = (message for message in event["messages"] if message.get("activityType") != NO_ACTIVITY)
        return {**event, "messages": [as_text({"type": message["role"], **message}) for message in told]}
    content = event.get("content")
    if event["type"] in ("TOOL_CALL_RESULT", "tool") and isinstance(content, list):
        return {**event, "content": "".join(part["text"] for part in content)}
    return event
