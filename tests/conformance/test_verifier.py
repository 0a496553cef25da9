"""The checker's verifier is judged by the recorded streams, whose verdicts come from the official client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_check import REQUIREMENTS, Finding, Verdict, read_stream, verify

Event = dict[str, Any]

STREAMS = Path(__file__).parent / "streams"
RECORDED: list[Event] = json.loads((STREAMS / "manifest.json").read_text("utf-8"))["streams"]

OFFENDED = {
    "invalid/01-first-not-run-started.jsonl": "R-065",
    "invalid/02-second-run-started-while-active.jsonl": "R-067",
    "invalid/03-event-after-finish.jsonl": "R-068",
    "invalid/04-finish-twice.jsonl": "R-068",
    "invalid/05-event-after-error.jsonl": "R-068",
    "invalid/06-error-twice.jsonl": "R-068",
    "invalid/07-finish-after-error.jsonl": "R-068",
    "invalid/08-content-without-start.jsonl": "R-085",
    "invalid/09-end-without-start.jsonl": "R-085",
    "invalid/10-content-after-end.jsonl": "R-085",
    "invalid/11-start-twice.jsonl": "R-085",
    "invalid/12-finish-with-open-message.jsonl": "R-070",
    "invalid/13-args-without-start.jsonl": "R-100",
    "invalid/14-args-after-end.jsonl": "R-100",
    "invalid/15-finish-with-open-tool-call.jsonl": "R-070",
    "invalid/16-tool-start-twice.jsonl": "R-100",
    "invalid/17-step-finish-unknown.jsonl": "R-080",
    "invalid/18-step-start-twice.jsonl": "R-080",
    "invalid/19-finish-with-open-step.jsonl": "R-070",
    "invalid/20-step-wrong-owner.jsonl": "R-080",
    "invalid/21-reasoning-content-without-start.jsonl": "R-135",
    "invalid/22-finish-with-open-reasoning-span.jsonl": "R-070",
    "invalid/23-finish-with-open-reasoning-message.jsonl": "R-070",
    "invalid/24-reasoning-start-no-role.jsonl": "R-136",
    "invalid/25-subagent-finish-unknown.jsonl": "R-144",
    "invalid/26-subagent-reused-id.jsonl": "R-143",
    "invalid/27-finish-with-open-subagent.jsonl": "R-070",
    "invalid/28-subagent-unknown-parent.jsonl": "R-147",
    "invalid/29-owner-mismatch-content.jsonl": "R-146",
    "invalid/30-toolcall-parent-owner-mismatch.jsonl": "R-146",
    "invalid/31-subagent-null-tag.jsonl": "R-143",
    "invalid/32-first-chunk-without-id.jsonl": "R-092",
    "invalid/33-tool-chunk-without-name.jsonl": "R-092",
    "invalid/34-chunk-role-changes.jsonl": "R-093",
    "invalid/35-chunk-after-explicit-start.jsonl": "R-091",
    "invalid/36-missing-required-field.jsonl": "R-089",
    "invalid/37-null-optional-name.jsonl": "R-187",
    "invalid/38-metadata-null.jsonl": "R-180",
    "invalid/39-timestamp-float.jsonl": "R-188",
    "invalid/40-bad-json-pointer.jsonl": "R-121",
    "invalid/41-interrupt-empty.jsonl": "R-160",
    "invalid/42-custom-without-value.jsonl": "R-184",
    "invalid/43-usage-negative.jsonl": "R-199",
    "invalid/44-content-null-in-snapshot.jsonl": "R-129",
    "invalid/45-activity-content-array.jsonl": "R-130",
}
"""The requirement that a refused stream offends."""

TOLERATED = {
    "valid/19-delta-that-does-not-apply.jsonl": "R-122",
    "valid/21-no-terminal.jsonl": "R-013",
    "valid/22-unknown-type-and-field.jsonl": "R-186",
    "valid/23-mismatched-run-ids.jsonl": "R-051",
    "valid/24-thinking-legacy.jsonl": "R-141",
}
"""What a client reads to its end although no server may send it."""


def events_of(name: str) -> list[Event]:
    return [json.loads(line) for line in (STREAMS / name).read_text("utf-8").splitlines() if line]


def a_run(*events: Event, **finished: Any) -> list[Event]:
    ids = {"threadId": "t1", "runId": "r1"}
    started = {"type": "RUN_STARTED", **ids, "protocolVersion": "1.0"}
    return [started, *events, {"type": "RUN_FINISHED", **ids, **finished}]


def offended(verdict: Verdict) -> set[str]:
    return {finding.requirement for finding in verdict.findings if not finding.remark}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["file"])
def test_the_verifier_and_the_official_client_accept_the_same_streams(recorded: Event) -> None:
    assert verify(events_of(recorded["file"])).accepted is recorded["accepted"]


def test_every_refused_stream_has_its_requirement() -> None:
    assert set(OFFENDED) == {recorded["file"] for recorded in RECORDED if not recorded["accepted"]}


@pytest.mark.parametrize("name", OFFENDED)
def test_a_refusal_names_the_requirement_in_a_sentence(name: str) -> None:
    first = next(finding for finding in verify(events_of(name)).findings if finding.fatal)
    assert first.requirement == OFFENDED[name]
    assert first.event is not None
    assert len(first.message.split()) > 2


@pytest.mark.parametrize("name", TOLERATED)
def test_what_clients_tolerate_is_told_all_the_same(name: str) -> None:
    assert TOLERATED[name] in offended(verify(events_of(name)))


def test_a_text_that_is_left_open_at_an_error_is_a_remark() -> None:
    verdict = verify(events_of("valid/04-error-with-open-items.jsonl"))
    assert {finding.requirement for finding in verdict.findings if finding.remark} == {"R-070"}


# --- what a client does not see -----------------------------------------------------------------------------------

MESSAGE: Event = {"messageId": "m1"}
CALL = [
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pick"},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
]
RESULT = {"type": "TOOL_CALL_RESULT", "messageId": "o1", "toolCallId": "c1", "content": "x"}
ASKED: Event = {"threadId": "t1", "runId": "r1", "messages": [{"id": "u1", "role": "user", "content": "Hi"}]}


def an_interrupt(**members: Any) -> Event:
    return {"outcome": {"type": "interrupt", "interrupts": [{"id": "i1", "reason": "x", **members}]}}


TEXT = [{"type": f"TEXT_MESSAGE_{kind}", **MESSAGE} for kind in ("START", "END")]
USAGE = {"inputTokens": 3, "outputTokens": 2}

SILENT: list[tuple[str, list[Event], Event | None]] = [
    ("R-051", a_run(), {**ASKED, "threadId": "t2"}),
    ("R-062", [{**a_run()[0], "parentRunId": "r0"}, a_run()[1]], ASKED),
    ("R-071", a_run(*({**each, "messageId": "u1"} for each in TEXT)), ASKED),
    ("R-074", a_run(outcome={"type": "cancelled"}, result=1), None),
    ("R-086", a_run({"type": "MESSAGES_SNAPSHOT", "messages": ASKED["messages"] * 2}), None),
    ("R-102", a_run(*CALL, {**CALL[0], "toolCallName": "other"}, CALL[1], RESULT), None),
    ("R-104", a_run(*CALL, RESULT), {**ASKED, "tools": [{"name": "pick", "description": ""}]}),
    ("R-107", a_run(*CALL, outcome={"type": "success", "pendingToolCallIds": ["c2"]}), None),
    ("R-107", a_run(*CALL, RESULT, outcome={"type": "success", "pendingToolCallIds": ["c1"]}), None),
    ("R-108", a_run(*CALL), ASKED),
    ("R-109", a_run(outcome={"type": "cancelled", "pendingToolCallIds": []}), None),
    ("R-120", a_run({"type": "ACTIVITY_DELTA", **MESSAGE, "activityType": "P", "patch": []}), None),
    ("R-122", a_run({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/n"}]}), {**ASKED, "state": {"m": 1}}),
    ("R-126", a_run({"type": "MESSAGES_SNAPSHOT", "messages": []}), ASKED),
    ("R-126", a_run(*TEXT, {"type": "MESSAGES_SNAPSHOT", "messages": ASKED["messages"]}), ASKED),
    ("R-150", [{**a_run()[0], "protocolVersion": "1.0.0"}, a_run()[1]], None),
    ("R-157", [*a_run(), {**a_run()[0], "protocolVersion": "1.1"}, a_run()[1]], None),
    ("R-161", a_run(outcome={"type": "interrupt", "interrupts": [{"id": "i1", "reason": "x"}] * 2}), None),
    ("R-163", a_run(**an_interrupt(expiresAt="tomorrow")), None),
    ("R-163", a_run(**an_interrupt(expiresAt="2026-01-01T00:00:00")), None),
    ("R-162", a_run(**an_interrupt(responseSchema=True)), None),
    ("R-181", a_run({**TEXT[0], "metadata": {"ag-ui": 1}}, TEXT[1]), None),
    ("R-182", a_run({**TEXT[0], "metadata": {"mine": 1}}, TEXT[1]), None),
    ("R-184", a_run({"type": "CUSTOM", "name": "mine", "value": None}), None),
    ("R-195", a_run(usage=[USAGE, USAGE]), None),
    ("R-196", a_run(usage=[{**USAGE, "totalTokens": 6}]), None),
    ("R-196", a_run(usage=[{**USAGE, "cachedInputTokens": 2, "cacheWriteInputTokens": 2}]), None),
    ("R-196", a_run(usage=[{**USAGE, "reasoningTokens": 3}]), None),
]


@pytest.mark.parametrize(("requirement", "events", "asked"), SILENT, ids=[each[0] for each in SILENT])
def test_a_fault_that_no_client_sees_is_found_alone(requirement: str, events: list[Event], asked: Event | None) -> None:
    assert offended(verify(events, asked)) - {"R-081"} == {requirement}


def test_what_is_right_is_clean() -> None:
    patch = [{"op": "replace", "path": "/n", "value": 2}]
    events = a_run(
        *TEXT,
        *CALL,
        {"type": "STATE_DELTA", "delta": patch},
        {"type": "CUSTOM", "name": "vendor:thing", "value": 1},
        outcome={"type": "success", "pendingToolCallIds": ["c1"]},
        usage=[{**USAGE, "totalTokens": 5, "cachedInputTokens": 3, "reasoningTokens": 2}],
    )
    tools = [{"name": "pick", "description": ""}]
    verdict = verify(events, {**ASKED, "tools": tools, "state": {"n": 1}})
    assert verdict.findings == ()
    assert {"R-051", "R-070", "R-122", "R-184", "R-196"} <= verdict.exercised


PICKING: Event = {**ASKED, "tools": [{"name": "pick", "description": ""}]}
PROGRESS: Event = {"type": "ACTIVITY_SNAPSHOT", **MESSAGE, "activityType": "agui-bridge.progress", "content": {}}
CLIENTS_OWN: Event = {"@ag-ui/client": {"authoritativeActivityTypes": ["agui-bridge.progress"]}}


@pytest.mark.parametrize(
    ("requirement", "events", "asked"),
    [
        ("R-104", a_run(*CALL, RESULT, outcome={"type": "cancelled"}), PICKING),
        ("R-104", [*a_run(*CALL, RESULT)[:-1], {"type": "RUN_ERROR", "message": "It broke."}], PICKING),
        ("R-126", a_run(PROGRESS, {"type": "MESSAGES_SNAPSHOT", "messages": ASKED["messages"]}), ASKED),
    ],
    ids=["answer of a stopped run", "answer of a failed run", "progress that is over"],
)
def test_a_stated_departure_is_told_as_one(requirement: str, events: list[Event], asked: Event) -> None:
    findings = [finding for finding in verify(events, asked).findings if not finding.remark]
    assert [(finding.requirement, finding.departure) for finding in findings] == [(requirement, True)]


def test_the_name_of_a_package_is_a_prefix() -> None:
    events = a_run({"type": "MESSAGES_SNAPSHOT", "messages": ASKED["messages"], "metadata": CLIENTS_OWN})
    assert verify(events, ASKED).findings == ()


def test_a_rule_whose_subject_was_not_there_counts_as_not_exercised() -> None:
    exercised = verify(a_run()).exercised
    assert not {"R-085", "R-100", "R-122", "R-135", "R-144", "R-160", "R-051"} & exercised


@given(st.lists(st.sampled_from([event for each in RECORDED for event in events_of(each["file"])]), max_size=12))
def test_any_events_in_any_order_are_judged_by_known_requirements(events: list[Event]) -> None:
    verdict = verify(events)
    assert {finding.requirement for finding in verdict.findings} | verdict.exercised <= set(REQUIREMENTS)
    assert verdict.accepted is not any(finding.fatal for finding in verdict.findings)


# --- frames -------------------------------------------------------------------------------------------------------

GOOD = b'data: {"type":"RUN_ERROR","message":"x"}\n\n'


def told(body: bytes) -> list[Finding]:
    return read_stream(body).findings


def test_frames_as_they_should_be_say_nothing() -> None:
    stream = read_stream(b": hello\n\n" + b"id: 7\nevent: x\nretry: 5\n" + GOOD)
    assert stream.findings == []
    assert (stream.ids, stream.comments, len(stream.events)) == (["7"], 1, 1)


@pytest.mark.parametrize(
    ("requirement", "body"),
    [
        ("R-005", GOOD.replace(b"\n", b"\r\n")),
        ("R-005", GOOD.replace(b"\n", b"\r")),
        ("R-004", b"data: [DONE]\n\n"),
        ("R-004", b"data: {\n\n"),
        ("R-004", b"data: 5\n\n"),
        ("R-004", b"data: {}\n\n"),
        ("R-004", b'data: [{"type":"RUN_ERROR","message":"x"}]\n\n'),
        ("R-004", b"data: " + b'{"type":"A"}{"type":"B"}' + b"\n\n"),
        ("R-031", b'data: {"type":"' + b"x" * (10 * 1024 * 1024) + b'"}\n\n'),
    ],
)
def test_a_fault_of_framing_has_its_requirement(requirement: str, body: bytes) -> None:
    assert {(each.requirement, each.fatal) for each in told(body)} == {(requirement, True)}


def test_a_body_that_ends_within_a_frame_is_cut() -> None:
    assert [each.requirement for each in told(GOOD[:-1])] == ["R-013"]


def test_data_without_a_space_is_legal_and_told() -> None:
    assert [(each.requirement, each.remark) for each in told(GOOD.replace(b"data: ", b"data:"))] == [("R-004", True)]


def test_events_are_read_in_spite_of_faulty_framing() -> None:
    assert read_stream(GOOD.replace(b"\n", b"\r\n") * 2).events == read_stream(GOOD * 2).events
