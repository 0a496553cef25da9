"""The verifier: a stream of events against the schema, the rules of order and the rules of content. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from agui_check.contents import Contents
from agui_check.findings import Finding, JsonObject, as_object, shown
from agui_check.ordering import Ordering, can_be_placed
from agui_check.schema import EVENT_TYPES, event_errors


@dataclass(frozen=True, slots=True)
class Verdict:
    """What there is to say about a stream.

    `accepted` means that a conforming client reads it to its end, if with warnings. `exercised` are the requirements
    whose subject was seen, and `types` the types of its events in order.
    """

    findings: tuple[Finding, ...]
    exercised: frozenset[str]
    types: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """No finding is one that a client must refuse."""
        return not any(finding.fatal for finding in self.findings)

    @property
    def clean(self) -> bool:
        """Nothing but remarks."""
        return all(finding.remark for finding in self.findings)

    def against(self, requirement: str) -> list[Finding]:
        """The findings of one requirement, remarks left out."""
        return [each for each in self.findings if each.requirement == requirement and not each.remark]


def verify(events: Sequence[JsonObject], asked: JsonObject | None = None) -> Verdict:
    """Judge a stream, as the answer to `asked` (a RunAgentInput) if that is given.

    Without `asked`, rules that compare with the request are left out, and state begins as `{}`.
    """
    ordering, contents = Ordering(), Contents(asked)
    findings: list[Finding] = []
    types: list[str] = []
    exercised: set[str] = {"R-065", "R-081", "R-133", "R-141", "R-186", "R-187"}
    for number, event in enumerate(events, 1):
        kind = event["type"]
        types.append(kind)
        exercised |= _exercised_by(event, asked is not None)
        errors = event_errors(event, number)
        findings += errors
        if kind not in EVENT_TYPES:
            continue
        sound = not any(error.fatal for error in errors)
        found = list(ordering.feed(event)) if sound or can_be_placed(event) else []
        if sound:
            found += contents.feed(event)
        findings += [replace(finding, event=number) for finding in found]
    if not types:
        findings.append(Finding("R-065", "There is no event."))
    elif not ordering.ended:
        findings.append(Finding("R-013", "The stream ends without RUN_FINISHED or RUN_ERROR.", len(types)))
    findings += _echo(events, asked or {})
    findings += [Finding("R-081", "A client refuses this stream.")] if any(each.fatal for each in findings) else []
    return Verdict(tuple(findings), frozenset(exercised), tuple(types))


def _echo(events: Sequence[JsonObject], asked: JsonObject) -> list[Finding]:
    """The last run of an answer is the one that was asked for; those before it restate history."""
    started = [event.get("runId") for event in events if event["type"] == "RUN_STARTED"]
    if not started or started[-1] == asked.get("runId", started[-1]):
        return []
    return [Finding("R-051", f"RUN_STARTED names the run {shown(started[-1])}, another one was asked for.")]


def _exercised_by(event: JsonObject, answering: bool) -> set[str]:
    kind = event["type"]
    found = set(_BY_TYPE.get(kind, ()))
    for member, requirements in _BY_MEMBER.items():
        if member in event:
            found |= set(requirements)
    if answering:
        found |= set(_BY_TYPE_ANSWERING.get(kind, ()))
    if kind == "RUN_FINISHED" and "outcome" in event:
        found |= {"R-076"} | set(_BY_OUTCOME.get(str(as_object(event["outcome"]).get("type")), ()))
    return found


_BY_TYPE: Final[dict[str, tuple[str, ...]]] = {
    "RUN_STARTED": ("R-066", "R-067", "R-150", "R-157"),
    "RUN_FINISHED": ("R-068", "R-070", "R-077"),
    "RUN_ERROR": ("R-068", "R-078"),
    "STEP_STARTED": ("R-080",),
    "TEXT_MESSAGE_START": ("R-085", "R-088"),
    "TEXT_MESSAGE_CONTENT": ("R-089",),
    "TEXT_MESSAGE_CHUNK": ("R-088", "R-092", "R-093"),
    "TOOL_CALL_START": ("R-100", "R-102"),
    "TOOL_CALL_CHUNK": ("R-092", "R-093", "R-102"),
    "TOOL_CALL_RESULT": ("R-113",),
    "STATE_SNAPSHOT": ("R-124",),
    "STATE_DELTA": ("R-120", "R-121", "R-122"),
    "MESSAGES_SNAPSHOT": ("R-126", "R-129"),
    "ACTIVITY_SNAPSHOT": ("R-130",),
    "ACTIVITY_DELTA": ("R-120", "R-121", "R-130", "R-131"),
    "REASONING_START": ("R-135",),
    "REASONING_MESSAGE_START": ("R-135", "R-136"),
    "REASONING_ENCRYPTED_VALUE": ("R-137", "R-140"),
    "SUBAGENT_STARTED": ("R-143", "R-144", "R-145", "R-147"),
    "SUBAGENT_FINISHED": ("R-149",),
    "CUSTOM": ("R-184",),
}
"""The requirements that the sight of an event puts to the test."""

_BY_TYPE_ANSWERING: Final[dict[str, tuple[str, ...]]] = {"RUN_STARTED": ("R-051",), "TEXT_MESSAGE_START": ("R-071",)}

_BY_MEMBER: Final[dict[str, tuple[str, ...]]] = {
    "timestamp": ("R-188",),
    "metadata": ("R-180", "R-181", "R-182"),
    "usage": ("R-195", "R-196", "R-199"),
    "subagentRunId": ("R-146",),
    "input": ("R-052",),
    "parentRunId": ("R-062",),
    "parentMessageId": ("R-103",),
}

_BY_OUTCOME: Final[dict[str, tuple[str, ...]]] = {
    "success": (),
    "interrupt": ("R-109", "R-160", "R-161", "R-162", "R-163", "R-175"),
    "cancelled": ("R-074", "R-109"),
}
