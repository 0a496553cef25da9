"""Interrupts on the wire: how they are shown to a page, and what of a request answers them.

Pure. An answer is matched to what is open on the thread, by its id; what fits nothing is left out and warned of, and
then the thread is restated. Pages made for LangGraph answer by a value alone: that counts only where it cannot be
meant for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import cast

import orjson

from agui_bridge.langgraph_pages import value_of
from agui_bridge.run_input import RunInput
from agui_bridge.times import iso
from runtime.canonical import Json, JsonObject, canonical
from runtime.errors import AnswerExpired, UnfitAnswer
from runtime.events import InterruptAnswered
from runtime.interrupts import RESOLVED, Interrupt, answer
from runtime.thread import Thread

_SHOWN = {"reason": "reason", "message": "message", "response_schema": "responseSchema", "metadata": "metadata"}


def shown(payload: JsonObject, subagents: Collection[str] = ()) -> JsonObject:
    """An interrupt as AG-UI shows it, from its payload in `run.suspended`; one that a child raised is attributed, if
    that child is among the `subagents` that the page was told of."""
    interrupt: JsonObject = {"id": payload["interrupt_id"]}
    interrupt |= {name: payload[ours] for ours, name in _SHOWN.items() if payload.get(ours) is not None}
    if (tool_call_id := payload.get("tool_call_id")) is not None:
        interrupt["toolCallId"] = tool_call_id
    if (expires_at := payload.get("expires_at")) is not None:
        interrupt["expiresAt"] = iso(expires_at)
    if payload["run_id"] in subagents:
        interrupt["subagentRunId"] = payload["run_id"]
    return interrupt


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answers, when (ms since the epoch), and what they may answer."""

    principal_id: str | None
    now: int
    may_answer: Callable[[Interrupt], bool] = lambda _: True


@dataclass(slots=True)
class Answers:
    """What a request answers. `repeated` is the run that took the very same answer in before."""

    facts: list[InterruptAnswered] = field(default_factory=list[InterruptAnswered])
    repeated: str | None = None
    warnings: list[str] = field(default_factory=list[str])


def resumes(run_input: RunInput) -> bool:
    """Whether the request answers interrupts: by `resume`, or in the way of older LangGraph pages."""
    return bool(run_input.resume) or "resume" in _command(run_input)


def answers_in(run_input: RunInput, thread: Thread, answerer: Answerer) -> Answers:
    """What the request answers of what is asked on the thread."""
    answers = Answers()
    asked = {interrupt.id: interrupt for interrupt in thread.open_interrupts()}
    entries = run_input.resume or _legacy_entries(run_input, thread, list(asked.values()), answers)
    for entry in entries:
        interrupt = asked.get(entry["interruptId"])
        if any(fact.interrupt_id == entry["interruptId"] for fact in answers.facts):
            answers.warnings.append(f"interrupt {entry['interruptId']} is answered twice; the first answer counts")
        elif interrupt is not None:
            _take(entry, interrupt, answerer, answers)
        else:
            _known(entry, thread, answers)
    return answers


def _take(entry: JsonObject, interrupt: Interrupt, answerer: Answerer, answers: Answers) -> None:
    if not answerer.may_answer(interrupt):
        answers.warnings.append(f"interrupt {interrupt.id} is not for {answerer.principal_id} to answer")
        return
    status, payload = entry["status"], entry.get("payload")
    try:
        fact = answer(interrupt, status, payload, answered_by=answerer.principal_id, now=answerer.now)
    except (AnswerExpired, UnfitAnswer) as error:
        answers.warnings.append(f"the answer to interrupt {interrupt.id} does nothing: {error.message}")
    else:
        answers.facts.append(fact)


def _known(entry: JsonObject, thread: Thread, answers: Answers) -> None:
    given = thread.answers.get(entry["interruptId"])
    if given is None:
        answers.warnings.append(f"there is no interrupt {entry['interruptId']} on this thread")
        return
    before, now = [given.event.status, given.event.payload], [entry["status"], entry.get("payload")]
    if given.event.by_itself is None and canonical(before) == canonical(now):
        answers.repeated = given.run_id
    else:
        answers.warnings.append(f"interrupt {entry['interruptId']} was answered already, in another way")


# --- pages made for LangGraph -------------------------------------------------------------------------------------


def _command(run_input: RunInput) -> JsonObject:
    props = run_input.forwarded_props
    command = cast("JsonObject", props).get("command") if isinstance(props, dict) else None
    return cast("JsonObject", command) if isinstance(command, dict) else {}


def _legacy_entries(run_input: RunInput, thread: Thread, asked: list[Interrupt], answers: Answers) -> list[JsonObject]:
    command = _command(run_input)
    if "resume" not in command:
        return []
    if len(asked) != 1 or not _is_meant(command.get("interruptEvent"), asked[0], run_input, thread):
        answers.warnings.append("the value in command.resume names no interrupt, and none is certainly meant")
        return []
    [interrupt] = asked
    value = command["resume"]
    if isinstance(value, str):
        read: Json = _read(value)
        if interrupt.raised.response_schema is not None or read.__class__ in (dict, list):
            value = read
    return [{"interruptId": interrupt.id, "status": RESOLVED, "payload": value}]


def _is_meant(event: Json, interrupt: Interrupt, run_input: RunInput, thread: Thread) -> bool:
    last = thread.last_run
    if last is not None and last.status == "suspended" and last.client_run_id == run_input.run_id:
        return True
    value = _read(event) if isinstance(event, str) else event
    if value == interrupt.id or (isinstance(value, dict) and cast("JsonObject", value).get("id") == interrupt.id):
        return True
    told = shown(interrupt.as_payload())
    return value is not None and canonical(value) in (canonical(told), canonical(value_of(told)))


def _read(text: str) -> Json:
    """What a text says as JSON; the text itself, if it is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
