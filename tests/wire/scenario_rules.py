"""What holds of every scenario of chance: of each stream, of what both sides hold behind it, and of the facts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from agui_check import read_stream, verify
from agui_check.extensions import DEPARTURES
from runtime import events as e
from runtime.dialects.openai_chat import OpenAIChat
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message
from tests.pure import anthropic_histories, responses_histories
from tests.pure.agui_rules import Rules
from tests.wire.cast import Company
from tests.wire.scenario import Stream

JsonObject = dict[str, Any]

GUARDED = ("send", "look at a secret")
"""The tools of chance that run only behind somebody's yes, as `Company.done` names them."""


def by_speaker(messages: Iterable[JsonObject]) -> dict[str | None, list[JsonObject]]:
    """The messages of each run in their order: what runs say side by side has no order that matters."""
    found: defaultdict[str | None, list[JsonObject]] = defaultdict(list)
    for message in messages:
        found[message.get("subagentRunId")].append(message)
    return dict(found)


# --- streams ------------------------------------------------------------------------------------------------------


def judge_stream(stream: Stream) -> None:
    """The stream is legal, and behind it the page and the store hold what the server does."""
    rules = Rules()
    rules.check(stream.events)
    assert stream.page.surprises == []
    if not stream.whole:
        return
    assert rules.ended
    if stream.fresh:  # what is told again may have been shown before
        findings = verify(stream.events, stream.asked).findings
        left_out = {"R-126"} if _shows_what_came_to_nothing(stream) else set[str]()
        assert {finding.requirement for finding in findings if not finding.departure} <= left_out
        assert {finding.requirement for finding in findings} <= set(DEPARTURES)
    assert read_stream(stream.body).findings == []
    assert sorted(stream.stored_ids) == sorted(stream.open_ids)
    if stream.newest:
        page, server = _page_and_server(stream)
        assert by_speaker(page) == by_speaker(server)
        assert stream.page.state == stream.state
        last = stream.events[-1]
        if last["type"] == "RUN_FINISHED":
            asked = [interrupt["id"] for interrupt in last["outcome"].get("interrupts", [])]
            assert sorted(asked) == sorted(stream.open_ids)


def _page_and_server(stream: Stream) -> tuple[list[JsonObject], list[JsonObject]]:
    """What the page and the server hold, but for what no page is told again: the metadata of a message whose end it has
    missed, and thoughts that it has missed; and but for what stock clients keep where a snapshot has nothing of the
    kind: thoughts and activities of what was forked away or lost. Where a page that missed something has a thought is
    its own affair, for it never reorders."""
    held = {message["id"]: message for message in stream.messages}
    known = {message["id"]: message for message in stream.asked["messages"]}
    told = {event["messageId"] for event in stream.events if "messageId" in event} | known.keys() & held.keys()
    left = {id_ for id_, message in known.items() if message["role"] == "activity" and id_ not in held}
    left |= {m["id"] for m in (*stream.page.messages, *stream.messages) if m["role"] == "reasoning"} - told
    missed = {
        id_: {"metadata": ours["metadata"]}
        for id_, ours in held.items()
        if "metadata" in ours and "metadata" not in known.get(id_, ours)
    }
    page = [
        {**message, **missed.get(message["id"], {})} for message in stream.page.messages if message["id"] not in left
    ]
    server = [message for message in stream.messages if message["id"] not in left]
    return (page, server) if stream.intact else (_thoughts_last(page), _thoughts_last(server))


def _thoughts_last(messages: list[JsonObject]) -> list[JsonObject]:
    thoughts = [message for message in messages if message["role"] == "reasoning"]
    others = [message for message in messages if message["role"] != "reasoning"]
    return [*others, *sorted(thoughts, key=lambda message: message["id"])]


def _shows_what_came_to_nothing(stream: Stream) -> bool:
    """Whether the page shows answers that were cut and are nowhere any more: they are to be left out."""
    held = {message["id"] for message in stream.messages}
    return any(m["role"] == "assistant" and m["id"] not in held for m in stream.asked["messages"])


# --- facts --------------------------------------------------------------------------------------------------------


def judge_facts(trees: Sequence[Sequence[e.Record]], company: Company) -> None:
    """Each run has its one end, each call one output, and what needs a yes ran once behind one, or not at all."""
    for records in trees:
        assert [record.root_seq for record in records] == list(range(1, len(records) + 1))
        for own in _by_run(records).values():
            ends = [record.seq for record in own if type(record.event) in e.TERMINAL]
            assert ends == [own[-1].seq]
    facts = [record.event for records in trees for record in records]
    outputs = Counter(fact.tool_call_id for fact in facts if isinstance(fact, e.ToolCallCompleted))
    assert [call for call, count in outputs.items() if count > 1] == []
    answered = Counter(
        (record.run_id, record.event.interrupt_id)
        for records in trees
        for record in records
        if isinstance(record.event, e.InterruptAnswered)
    )
    assert [each for each, count in answered.items() if count > 1] == []
    raised = {fact.interrupt_id: fact for fact in facts if isinstance(fact, e.InterruptRaised)}
    assert {interrupt_id for _, interrupt_id in answered} <= raised.keys()
    _judge_executions(facts, raised, company)


def _by_run(records: Iterable[e.Record]) -> dict[str, list[e.Record]]:
    found: defaultdict[str, list[e.Record]] = defaultdict(list)
    for record in records:
        found[record.run_id].append(record)
    return found


def _judge_executions(facts: Sequence[e.Event | None], raised: dict[str, e.InterruptRaised], company: Company) -> None:
    done = Counter(company.done)
    assert [call for call, count in done.items() if count > 1] == []
    approved = {
        raised[fact.interrupt_id].tool_call_id
        for fact in facts
        if isinstance(fact, e.InterruptAnswered) and isinstance(fact.payload, dict) and fact.payload.get("approved")
    }
    asked = {fact.tool_call_id for fact in raised.values()}
    for call, name in done:
        if name in GUARDED and not (name == "look at a secret" and call not in asked):
            assert call in approved, f"{name} ran in {call} without anybody's yes"
    begun = Counter(fact.tool_call_id for fact in facts if isinstance(fact, e.ToolExecutionStarted))
    assert {call for call, _ in done} <= begun.keys()
    answers = Counter(raised[fact.interrupt_id].tool_call_id for fact in facts if isinstance(fact, e.InterruptAnswered))
    handed_on = {fact.tool_call_id for fact in facts if isinstance(fact, e.ChildStarted)}
    for call, count in begun.items():
        assert count <= 1 + answers[call] or call in handed_on, f"{call} was begun {count} times"


# --- prompts ------------------------------------------------------------------------------------------------------


def judge_prompts(company: Company) -> None:
    """Every history that a model was given is one that the providers take."""
    for model in company.models:
        for items in model.prompts:
            _judge_pairs(items)
            anthropic_histories.encode(*items)
            responses_histories.encode(*items)
            orjson.dumps(OpenAIChat("openai").encode(items, (), {"model": "m"}))


def _judge_pairs(items: Sequence[Item]) -> None:
    """Each call has exactly one output, before anything else is said."""
    assert list(_unpaired(items)) == []


def _unpaired(items: Sequence[Item]) -> Iterator[str]:
    waiting: dict[str, None] = {}
    for item in items:
        match item:
            case FunctionCall(call_id=call):
                if call in waiting:
                    yield f"{call} was called twice"
                waiting[call] = None
            case FunctionCallOutput(call_id=call):
                if call not in waiting:
                    yield f"{call} was answered without a call"
                waiting.pop(call, None)
            case Message(role=role) if role != "assistant":
                yield from (f"{call} stays without an answer" for call in waiting)
                waiting = {}
            case _:
                pass
    yield from (f"{call} stays without an answer" for call in waiting)
