"""The transcript of a thread as the native API shows it: one message a run, the tools' results behind it.

Pure. AG-UI shows a message for each round, because its clients put a message's text and calls together as they come;
here a run's one message (its id is the record's `final_message_id`) has all of its parts in order. Everything that was
shown is here, marked whether the model sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from agui_bridge.content import content_out
from agui_bridge.transcript import result_message_id
from runtime.canonical import JsonObject
from runtime.entries import LATE_ANSWER, Call, Entry, Said, Turn
from runtime.items import FINAL
from runtime.parts import REASONING, TOOL_CALL, Part
from runtime.thread import Thread

AgentName = Callable[[str], str]
"""From an agent's id to its name."""


def messages_of(thread: Thread, agent_name: AgentName) -> list[JsonObject]:
    """All messages of the branch, oldest first."""
    return [message for entry in thread.entries for message in _messages(entry, thread, agent_name)]


def _messages(entry: Entry, thread: Thread, agent_name: AgentName) -> Iterator[JsonObject]:
    if isinstance(entry, Said) and entry.runtime_role == LATE_ANSWER:
        return  # shown as the result of its call
    agent_id = thread.agents.get(entry.run_id, "")
    by: JsonObject = {"run_id": entry.run_id, "agent_id": agent_id, "agent_name": agent_name(agent_id)}
    yield _said(entry, by) if isinstance(entry, Said) else _turn(entry, by)
    yield from _results(entry.calls, by)
    if isinstance(entry, Turn):
        yield from _below(entry, thread, agent_name)


def _below(turn: Turn, thread: Thread, agent_name: AgentName) -> Iterator[JsonObject]:
    """What child runs said: shown, and seen by no model but their own."""
    for run_id in turn.children:
        below = thread.below[run_id]
        for entry in below.entries:
            if isinstance(entry, Turn):
                for message in _messages(entry, below, agent_name):
                    yield message | {"model_visible": False}


def _said(said: Said, by: JsonObject) -> JsonObject:
    message: JsonObject = {
        "message_id": said.id,
        "role": said.role,
        **by,
        "content": content_out(said.content),
        "model_visible": said.model_visible,
    }
    if said.tool_call_id is not None:
        message |= {"tool_call_id": said.tool_call_id, "is_error": said.error is not None}
    if said.calls:
        message["parts"] = [{"kind": TOOL_CALL, **_call(call)} for call in said.calls]
    return message


def _turn(turn: Turn, by: JsonObject) -> JsonObject:
    calls = {call.call_id: call for call in turn.calls}
    return {
        "message_id": turn.key,
        "role": "assistant",
        **by,
        "content": _text(turn),
        "model_visible": any(round_.committed for round_ in turn.rounds.values()),
        "parts": [_part(part, calls) for part in turn.parts],
    }


def _text(turn: Turn) -> str:
    """What the run answered; while it has not, or if it never did, all that it said."""
    final = {number for number, round_ in turn.rounds.items() if round_.role == FINAL}
    spoken = [part for part in turn.parts if part.kind not in (REASONING, TOOL_CALL)]
    return "".join(part.text for part in spoken if part.round in final or not final)


def _part(part: Part, calls: dict[str, Call]) -> JsonObject:
    shown = part.as_payload()
    call = calls.get(part.tool_call_id or "")
    return shown if call is None else shown | _call(call)


def _call(call: Call) -> JsonObject:
    return {"tool_call_id": call.call_id, "tool_name": call.name, "arguments_json": call.arguments_json}


def _results(calls: Iterable[Call], by: JsonObject) -> Iterator[JsonObject]:
    for call in calls:
        if call.output is None:
            continue
        said = call.output.output if call.answer is None else call.answer
        yield {
            "message_id": call.answered_by or result_message_id(call.call_id),
            "role": "tool",
            **by,
            "content": content_out(said),
            "model_visible": True,
            "tool_call_id": call.call_id,
            "tool_name": call.name,
            "is_error": call.output.is_error,
            "kind": call.output_kind,
        }
